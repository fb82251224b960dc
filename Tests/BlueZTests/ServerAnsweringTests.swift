import DBus
import Foundation
import Futures
import GATT
import Reactor
import XCTest

@testable import BlueZ

/// What flags forbid, and what becomes of values that not everybody takes.
final class ServerAnsweringTests: XCTestCase {
    private func registered(_ flags: GattFlags, descriptor: GattFlags = .read, socket: Bool = false) -> ServerScene {
        let scene = ServerScene()
        scene.serve([
            ServerService(
                id: ServerAttributeID(1), uuid: CBUUID(string: "180F"),
                characteristics: [
                    ServerCharacteristic(
                        id: ServerAttributeID(2), uuid: CBUUID(string: "2A19"), flags: flags,
                        descriptors: [
                            ServerDescriptor(id: ServerAttributeID(3), uuid: CBUUID(string: "2901"), flags: descriptor)
                        ], givesNotifySocket: socket)
                ])
        ])
        scene.accept()
        return scene
    }

    /// 5.66 asks for whatever has neither flag.
    func testWhatHasNoSuchFlagIsNeitherReadNorWritten() {
        let scene = registered(.notify, descriptor: [])
        for path in ["/service0/char0", "/service0/char0/desc0"] {
            XCTAssertTrue(scene.read(path).hasPrefix("NotPermitted"), scene.read(path))
        }
        XCTAssertTrue(scene.write("/service0/char0", [1]).hasPrefix("NotPermitted"))
        XCTAssertEqual(scene.delegate.log, [])
    }

    func testAFlagThatAsksForEncryptionIsAFlag() {
        let scene = registered([.encryptRead, .encryptWrite])
        XCTAssertEqual(scene.read("/service0/char0"), "[1, 2, 3]")
        XCTAssertEqual(scene.write("/service0/char0", [1]), "ok")
    }

    func testWhatWaitsBehindAnUnconfirmedIndicationFailsWithIt() {
        let scene = registered(.indicate)
        scene.listen()
        scene.tell("/service0/char0", "StartNotify")
        for value in UInt8(1)...3 { scene.notify(2, [value]) }
        scene.daemon.loop.advance(by: 31)
        XCTAssertEqual(scene.results.withLock { $0 }, ["ok", "noReply [1]", "noReply [2]", "noReply [3]"])
        XCTAssertEqual(scene.values, [[1]])
        scene.notify(2, [1])
        XCTAssertEqual(scene.values, [[1], [1]])
    }

    /// As since 5.69, which fetches a socket for each central.
    func testAValueIsTakenWhereOneOfSeveralSocketsTakesIt() throws {
        let scene = registered(.notify, socket: true)
        let sockets = try (0..<2).map { _ in try acquire(scene) }
        sockets[0].close()
        scene.notify(2, [7])
        XCTAssertEqual(scene.results.withLock { $0 }, ["ok", "sent [7]"])
        sockets[1].close()
        XCTAssertTrue(scene.daemon.loop.wait(until: { scene.delegate.log.last == "-2" }, limit: 5))
    }

    private func acquire(_ scene: ServerScene) throws -> OwnedDescriptor {
        let result = scene.call(scene.path("/service0/char0"), "org.bluez.GattCharacteristic1", "AcquireNotify") {
            BlueZMessages.write(properties: ServerScene.peer, &$0)
        }
        guard case .success(let reply)? = result else { throw DBusError.failed(ServerScene.text(result)) }
        var reader = reply.reader
        return try XCTUnwrap(reader.descriptor())
    }
}
