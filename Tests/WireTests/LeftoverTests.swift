import BlueCapKit
import BlueZSimulator
import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import TestSupport
import XCTest

/// Threads, descriptors and messages after the end of managers and of buses.
final class LeftoverTests: XCTestCase {
    func testTwoHundredManagersLeaveNeitherThreadsNorDescriptors() throws {
        let simulator = try Simulator.onPrivateBus(room: .furnished)
        defer { simulator.end() }
        // Objects that exist once in a process are created now. Those of other tests may remain.
        try openAndDrop(on: simulator, untilReceived: true)
        let (threads, descriptors) = (loopThreads(), openDescriptors().count)

        for round in 0..<200 { try openAndDrop(on: simulator, untilReceived: round.isMultiple(of: 4)) }

        XCTAssertTrue(
            Shortage.wait(limit: 20) { loopThreads() <= threads && openDescriptors().count <= descriptors },
            "\(threads) threads became \(loopThreads()), \(descriptors) descriptors \(openDescriptors())")
        XCTAssertTrue(simulator.wait(until: { simulator.discoverySessions.isEmpty }, limit: 20))
    }

    /// Some are dropped at once, some in the middle of a scan.
    private func openAndDrop(on simulator: Simulator, untilReceived: Bool) throws {
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
        guard untilReceived else { return }
        let journal = Journal()
        journal.watchStates(of: manager)
        XCTAssertTrue(journal.wait(limit: 20) { $0.states == [.poweredOn] })
        journal.watch(manager.startScanning())
        XCTAssertTrue(journal.wait(limit: 20) { !$0.sightings.isEmpty })
    }

    func testMessagesSentBeforeTheEndOfTheBusAreReceived() throws {
        let bus = try PrivateBus()
        let loop = ManualLoop()
        let received = Locked((signals: 0, isReady: false, isLost: false))
        let receiver = Connection.open(.custom(bus.address), loop: loop) { state in
            if case .closed = state { received.withLock { $0.isLost = true } }
        }
        let subscription = receiver.subscribe(
            MatchRule(interface: "org.example.Test"), accepted: { _ in received.withLock { $0.isReady = true } }
        ) { _ in received.withLock { $0.signals += 1 } }
        defer { subscription.cancel() }
        XCTAssertTrue(loop.wait(until: { received.withLock(\.isReady) }, limit: 20))

        // All of it is in the receiver's socket when the bus ends, and much more than libdbus reads at once.
        let sender = Connection.open(.custom(bus.address))
        let text = String(repeating: "x", count: 500)
        for _ in 0..<100 {
            sender.send(.signal(path: "/", interface: "org.example.Test", member: "Said") { $0.string(text) })
        }
        let isRead = expectation(description: "read by the bus")
        sender.call(
            .call(
                destination: "org.freedesktop.DBus", path: "/", interface: "org.freedesktop.DBus", member: "GetId")
        ) { _ in isRead.fulfill() }
        wait(for: [isRead], timeout: 20)
        bus.stop()

        XCTAssertTrue(loop.wait(until: { received.withLock(\.isLost) }, limit: 20))
        XCTAssertEqual(received.withLock(\.signals), 100)
    }
}
