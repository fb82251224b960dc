import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

/// `CentralManager.reset()` closed its connection to the bus and opened another one, while the link stayed: reads that were under
/// way failed as if the link had been lost, and subscriptions ended without a report.
final class ResetOperationTests: XCTestCase {
    private static let address: VirtualAddress = "C0:00:00:00:00:01"
    private let simulator = Simulator.inProcess(room: .empty)
    private let location = CharacteristicIdentifier.strap("2A38")
    private let control = CharacteristicIdentifier.strap("2A39")
    private let rate = CharacteristicIdentifier.strap("2A37")

    private func connected(link: VirtualLink = VirtualLink(callLatency: 1)) throws -> (CentralManager, Peripheral) {
        try simulator.connected(
            to: .strap(
                [
                    VirtualCharacteristic("2A37", [.notify], value: [0]),
                    VirtualCharacteristic("2A38", [.read], value: [1]),
                    VirtualCharacteristic("2A39", [.write], value: [0]),
                ], link: link))
    }

    func testReadsAndWritesGoOn() throws {
        let (manager, strap) = try connected()
        let found = try simulator.outcome(of: strap.characteristic(location))
        let reads: [Future<Characteristic>] = (0..<3).map { _ in found.read() }
        let writes = (UInt8(1)...3).map { strap.write(Data([$0]), to: control) }
        simulator.advance(by: 0.5)
        manager.reset()
        for read in reads { XCTAssertEqual(try simulator.outcome(of: read).dataValue, Data([1])) }
        for write in writes { try simulator.outcome(of: write) }
        XCTAssertEqual(simulator.value(of: .uuid("2A39"), at: Self.address), [3])
        XCTAssertEqual(strap.state, .connected)
        XCTAssertEqual(strap.disconnectionCount, 0)
        XCTAssertTrue(manager.poweredOn)
    }

    func testEverythingIsAskedForAnew() throws {
        let (manager, strap) = try connected()
        let before = simulator.statistics.count(of: "GetManagedObjects")
        manager.reset()
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.statistics.count(of: "GetManagedObjects"), before + 1)
        XCTAssertTrue(strap.state == .connected && manager.poweredOn)
    }

    func testADiscoveryGoesOn() throws {
        let (manager, strap) = try connected(link: VirtualLink(resolveLatency: 2))
        let read: Future<Data> = strap.read(location)
        simulator.advance(by: 0.5)
        manager.reset()
        XCTAssertEqual(try simulator.outcome(of: read), Data([1]))
    }

    func testASubscriptionGoesOn() throws {
        let (manager, strap) = try connected(link: VirtualLink())
        let received = Locked<[Data]>([])
        let stream = strap.notifications(rate)
        stream.onSuccess(context: ImmediateContext()) { data in received.withLock { $0.append(data) } }
        let found = try simulator.outcome(of: strap.characteristic(rate))
        XCTAssertTrue(simulator.advance(until: { found.isNotifying }, limit: 5))
        manager.reset()
        simulator.advance(by: 5)
        simulator.notify(Self.address, characteristic: .uuid("2A37"), value: [9])
        simulator.advance(by: 1)
        XCTAssertEqual(received.withLock { $0 }, [Data([9])])
        XCTAssertTrue(found.isNotifying)
    }

    func testAReadIsSettledWhenTheDaemonIsGoneInThatMoment() throws {
        let (manager, strap) = try connected()
        let found = try simulator.outcome(of: strap.characteristic(location))
        let read: Future<Characteristic> = found.read()
        simulator.advance(by: 0.5)
        simulator.simulateDaemonDeath()
        manager.reset()
        XCTAssertThrowsError(try simulator.outcome(of: read))
        XCTAssertEqual(strap.state, .disconnected)
    }

    func testAReadFailsWhenTheLinkFallsDuringTheReset() throws {
        let (manager, strap) = try connected()
        let found = try simulator.outcome(of: strap.characteristic(location))
        let read: Future<Characteristic> = found.read()
        simulator.advance(by: 0.5)
        manager.reset()
        simulator.simulateLinkLoss(of: Self.address)
        XCTAssertThrowsError(try simulator.outcome(of: read)) {
            XCTAssertEqual("\($0)", "\(PeripheralError.disconnected)")
        }
    }
}
