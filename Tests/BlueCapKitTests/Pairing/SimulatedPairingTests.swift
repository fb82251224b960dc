import BlueCapKit
import BlueZSimulator
import Futures
import TestSupport
import XCTest

/// A central manager that pairs with virtual peripherals, with each version of BlueZ.
final class SimulatedPairingTests: EachVersionTestCase {
    private let service = ServiceIdentifier(uuid: "B001")
    private lazy var encrypted = CharacteristicIdentifier(uuid: "B002", service: service)
    private lazy var authenticated = CharacteristicIdentifier(uuid: "B003", service: service)
    private lazy var simulator = Simulator.inProcess(room: .empty, bluez: bluez)
    private var manager: CentralManager?

    /// A manager with that policy that has found a lock.
    private func lock(
        _ policy: PairingPolicy, _ security: VirtualSecurity = VirtualSecurity(.noInputNoOutput)
    ) throws -> Peripheral {
        simulator.add(
            VirtualPeripheral(
                "C0:00:00:00:00:0A", addressType: .random,
                advertisement: Advertisement(localName: "Lock", serviceUUIDs: ["B001"]), interval: 0.1,
                services: [
                    VirtualService(
                        "B001",
                        characteristics: [
                            VirtualCharacteristic("B002", [.read, .write], value: [2], security: .encrypted),
                            VirtualCharacteristic("B003", [.read], value: [3], security: .authenticated),
                        ])
                ], security: security))
        let manager = CentralManager(options: [
            CentralManagerOptionBusAddressKey: simulator.address, CentralManagerOptionPairingPolicyKey: policy,
        ])
        self.manager = manager
        let found = Locked<[Peripheral]>([])
        manager.whenStateChanges().onSuccess(context: ImmediateContext()) { state in
            guard state == .poweredOn else { return }
            manager.startScanning().onSuccess(context: ImmediateContext()) { peripheral in
                found.withLock { $0.append(peripheral) }
            }
        }
        XCTAssertTrue(simulator.advance(until: { !found.withLock { $0.isEmpty } }, limit: 10))
        manager.stopScanning()
        simulator.advance(by: 0.5)
        return try XCTUnwrap(found.withLock { $0.first })
    }

    /// Answers each request, and returns their descriptions.
    private func answer(_ answer: @escaping @Sendable (PairingRequest) -> Void) -> Locked<[String]> {
        let seen = Locked<[String]>([])
        manager?.whenPairingIsRequested().onSuccess(context: ImmediateContext()) { request in
            seen.withLock { $0.append("\(request)") }
            answer(request)
        }
        return seen
    }

    private func outcome<T>(_ future: Future<T>, within limit: TimeInterval = 120) -> Try<T>? {
        XCTAssertTrue(simulator.advance(until: { future.completed }, limit: limit), "the future is not completed")
        return future.result
    }

    private func error<T>(of future: Future<T>) -> (any Error)? {
        if case .failure(let error)? = outcome(future) { error } else { nil }
    }

    private func connect(_ peripheral: Peripheral) {
        peripheral.connect()
        XCTAssertTrue(simulator.advance(until: { peripheral.state == .connected }, limit: 30))
    }

    func testJustWorksPairs() throws {
        let peripheral = try lock(.justWorks)
        XCTAssertNil(error(of: peripheral.pair()))
        XCTAssertTrue(peripheral.isPaired && peripheral.isBonded)
        let read: Future<Data> = peripheral.read(encrypted)
        XCTAssertEqual(try outcome(read)?.get(), Data([2]))
        XCTAssertEqual(manager?.bonds().map(\.identifier), [peripheral.identifier])
        XCTAssertEqual(simulator.links.map(\.security), [.encrypted])
    }

    func testANumberIsCompared() throws {
        let peripheral = try lock(.ask, VirtualSecurity(.displayYesNo))
        let seen = answer { $0.confirm() }
        XCTAssertNil(error(of: peripheral.pair()))
        XCTAssertEqual(seen.withLock { $0.map { $0.prefix(32) } }, ["PairingRequest(confirm a number,"])
        let read: Future<Data> = peripheral.read(authenticated)
        XCTAssertEqual(try outcome(read)?.get(), Data([3]))
    }

    func testARejectedNumberFailsAndLeavesNoBond() throws {
        let peripheral = try lock(.ask, VirtualSecurity(.displayYesNo))
        _ = answer { $0.reject() }
        XCTAssertEqual(error(of: peripheral.pair()) as? PairingError, .rejected(by: .application))
        simulator.advance(by: 5)
        XCTAssertFalse(peripheral.isPaired || peripheral.isBonded)
    }

    func testAPasskeyIsEntered() throws {
        let peripheral = try lock(
            .ask(.keyboardOnly), VirtualSecurity(.displayOnly, user: VirtualUser(displays: 4711)))
        _ = answer { $0.enter(4711) }
        XCTAssertNil(error(of: peripheral.pair()))
        XCTAssertTrue(peripheral.isBonded)
    }

    func testAWrongPasskeyFails() throws {
        let peripheral = try lock(
            .ask(.keyboardOnly), VirtualSecurity(.displayOnly, user: VirtualUser(displays: 4711)))
        _ = answer { $0.enter(4712) }
        guard case .failed? = error(of: peripheral.pair()) as? PairingError else {
            return XCTFail("another outcome")
        }
        XCTAssertFalse(peripheral.isBonded)
    }

    func testAnUnansweredRequestIsRejected() throws {
        let peripheral = try lock(.ask, VirtualSecurity(.displayYesNo))
        let seen = answer { _ in }
        XCTAssertEqual(error(of: peripheral.pair()) as? PairingError, .timedOut)
        XCTAssertEqual(seen.withLock { $0.count }, 1)
        XCTAssertFalse(peripheral.isBonded)
    }

    func testAnEncryptedReadPairsOnDemandAndIsRepeated() throws {
        let peripheral = try lock(.justWorks)
        connect(peripheral)
        let read: Future<Data> = peripheral.read(encrypted)
        XCTAssertEqual(try outcome(read)?.get(), Data([2]))
        XCTAssertTrue(peripheral.isBonded)
    }

    func testWithoutPermissionAnEncryptedReadFails() throws {
        let peripheral = try lock(.reject)
        connect(peripheral)
        let read: Future<Data> = peripheral.read(encrypted, timeout: 20)
        XCTAssertNotNil(error(of: read))
        XCTAssertFalse(peripheral.isPaired)
    }

    func testABondedPeripheralIsReadAfterItReconnects() throws {
        let peripheral = try lock(.justWorks)
        XCTAssertNil(error(of: peripheral.pair()))
        peripheral.disconnect()
        XCTAssertTrue(simulator.advance(until: { peripheral.state == .disconnected }, limit: 10))
        connect(peripheral)
        let read: Future<Data> = peripheral.read(encrypted)
        XCTAssertEqual(try outcome(read)?.get(), Data([2]))
    }

    func testUnpairEndsTheLinkAndTheBond() throws {
        let peripheral = try lock(.justWorks)
        XCTAssertNil(error(of: peripheral.pair()))
        XCTAssertNil(error(of: peripheral.unpair()))
        XCTAssertFalse(peripheral.isPaired || peripheral.isBonded)
        XCTAssertEqual(manager?.bonds(), [])
        XCTAssertEqual(simulator.links.count, 0)
    }
}
