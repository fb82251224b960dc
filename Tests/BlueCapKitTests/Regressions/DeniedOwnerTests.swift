import BlueCapKit
import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import XCTest

/// A bus with a policy that denies `GetNameOwner` was connected to twice a second, without end.
final class DeniedOwnerTests: XCTestCase {
    func testABusThatDeniesTheOwnersNameIsAskedLessAndLessOften() throws {
        let loop = ManualLoop()
        let bus = LoopbackBus(loop: loop)
        let calls = Locked(0)
        let denied = DBusError(name: DBusError.Name.accessDenied, message: "Rejected")
        bus.answer("GetNameOwner") { call in
            calls.withLock { $0 += 1 }
            return .error(to: call, denied)
        }
        let manager = try CentralManager(configuration: .init(busAddress: bus.address))
        loop.run()
        XCTAssertEqual(calls.withLock { $0 }, 1)
        XCTAssertEqual(manager.state, .unauthorized)
        loop.advance(by: 60)
        // After 0.5, 1, 2, 4, 8, 16 seconds; the next pause is one of 30.
        XCTAssertEqual(calls.withLock { $0 }, 7)
        XCTAssertTrue(manager.stateExplanation.contains("Rejected"), manager.stateExplanation)
        withExtendedLifetime(bus) {}
    }
}
