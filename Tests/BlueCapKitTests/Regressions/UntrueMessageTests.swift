import BlueCapKit
import BlueCapDBus
import BlueCapReactor
import XCTest

/// The errors of a manager if the owner of BlueZ's name is not BlueZ. A reply of the wrong type was reported as a missing reply,
/// and an empty owner of the name as a `bluetoothd` that does not reply.
final class UntrueMessageTests: XCTestCase {
    private let loop = ManualLoop()

    /// Returns a manager on a bus with an `org.bluez` that gives this reply to every call.
    private func manager(_ answer: @escaping @Sendable (Message) -> Message?) -> (CentralManager, Any) {
        let bus = LoopbackBus(loop: loop)
        let service = Connection.open(.custom(bus.address), loop: loop)
        service.answerCalls { [weak service] call in
            if let reply = answer(call) { service?.send(reply) }
        }
        service.requestName("org.bluez")
        loop.run()
        let manager = try! CentralManager(configuration: .init(busAddress: bus.address))
        loop.run()
        return (manager, (bus, service))
    }

    func testAnAnswerOfTheWrongTypeIsReportedWithBothTypes() {
        let (manager, kept) = manager { .reply(to: $0) { $0.string("hello") } }
        XCTAssertFalse(manager.stateExplanation.contains("not answer"), manager.stateExplanation)
        XCTAssertTrue(
            manager.stateExplanation.contains(
                "The reply to GetManagedObjects has the signature \"s\" instead of \"a{oa{sa{sv}}}\"."),
            manager.stateExplanation)
        loop.advance(by: 60)
        XCTAssertTrue(manager.stateExplanation.contains("signature"), manager.stateExplanation)
        withExtendedLifetime(kept) {}
    }

    func testARefusalIsReportedAsItCame() {
        let (manager, kept) = manager { .error(to: $0, DBusError(name: "org.example.Closed", message: "On Sundays")) }
        XCTAssertTrue(
            manager.stateExplanation.contains("org.example.Closed: On Sundays"), manager.stateExplanation)
        withExtendedLifetime(kept) {}
    }

    func testAnEmptyOwnerIsReportedAsADaemonThatDoesNotRun() throws {
        let bus = LoopbackBus(loop: loop)
        bus.answer("GetNameOwner") { .reply(to: $0) { $0.string("") } }
        let manager = try CentralManager(configuration: .init(busAddress: bus.address))
        loop.run()
        XCTAssertTrue(manager.stateExplanation.contains("bluetoothd is not running"), manager.stateExplanation)
        loop.advance(by: 60)
        XCTAssertTrue(manager.stateExplanation.contains("bluetoothd is not running"), manager.stateExplanation)
        withExtendedLifetime(bus) {}
    }

    func testNoAnswerIsReportedAsNone() {
        let (manager, kept) = manager { _ in nil }
        XCTAssertTrue(manager.stateExplanation.contains("has not answered yet"), manager.stateExplanation)
        loop.advance(by: 31)
        XCTAssertTrue(manager.stateExplanation.contains("does not answer"), manager.stateExplanation)
        withExtendedLifetime(kept) {}
    }
}
