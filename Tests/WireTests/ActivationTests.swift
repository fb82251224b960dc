import DBus
import Foundation
import Futures
import Reactor
import XCTest

/// A bus that would start `bluetoothd` for whoever calls it. In the radio lab a call after the daemon's death was answered
/// with `…Error.Spawn.ChildExited`, seconds later, instead of at once with the news that it is gone.
final class ActivationTests: XCTestCase {
    func testACallToADaemonThatIsAwayDoesNotStartIt() throws {
        let mark = FileManager.default.temporaryDirectory.appendingPathComponent(
            "started-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: mark) }
        let bus = try PolicedBus(services: ["org.bluez": "touch \(mark.path)"])
        let loop = ManualLoop()
        let connection = Connection.open(.custom(bus.address), loop: loop)
        let answer = Locked<Result<Message, DBusError>?>(nil)

        connection.call(.call(destination: "org.bluez", path: "/", interface: "a.b", member: "C")) { result in
            answer.withLock { $0 = result }
        }
        XCTAssertTrue(loop.wait(until: { answer.withLock { $0 != nil } }, limit: 20))

        XCTAssertThrowsError(try answer.withLock { $0 }?.get()) { error in
            XCTAssertEqual((error as? DBusError)?.name, DBusError.Name.nameHasNoOwner)
        }
        XCTAssertFalse(FileManager.default.fileExists(atPath: mark.path))
    }
}
