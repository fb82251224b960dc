import BlueCapDBus
import BlueCapFutures
import BlueCapGATT
import BlueCapReactor
import XCTest

@testable import BlueCapBlueZ

/// What flags forbid, and what becomes of values that are not confirmed.
final class ServerAnsweringTests: XCTestCase {
    private func registered(_ flags: GattFlags, descriptor: GattFlags = .read) -> ServerScene {
        let scene = ServerScene()
        scene.serve(
            ServerService(
                id: ServerAttributeID(1), uuid: CBUUID(string: "180F"),
                characteristics: [
                    ServerCharacteristic(
                        id: ServerAttributeID(2), uuid: CBUUID(string: "2A19"), flags: flags,
                        descriptors: [
                            ServerDescriptor(id: ServerAttributeID(3), uuid: CBUUID(string: "2901"), flags: descriptor)
                        ])
                ]))
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

    func testAnIndicationThatIsNotConfirmedInTimeDoesNotDelayTheNext() {
        let scene = registered(.indicate)
        scene.listen()
        scene.send("/service0/char0", "StartNotify")
        for value in UInt8(1)...3 { scene.notify(2, [value]) }
        scene.daemon.loop.advance(by: 31)
        XCTAssertEqual(scene.source.outcomes, ["unconfirmed [1]"])
        XCTAssertEqual(scene.values, [[1], [2]])
    }
}
