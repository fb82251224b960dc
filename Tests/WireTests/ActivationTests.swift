import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import XCTest

/// A bus that starts `bluetoothd` when a client calls it. In the radio lab the reply to a call after the end of the daemon was
/// `…Error.Spawn.ChildExited`, seconds later, instead of an immediate error that the daemon is not running.
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
