import Bluejay
import XCTest

/// What the guide of Bluejay spells as Swift 5 alone takes it: protocols as types without `any`.
final class BluejaySpellingTests: XCTestCase {
    private struct WriteRequest: Sendable {
        var handle: UInt16
        var data: Sendable

        func toBluetoothData() -> Data { Bluejay.combine(sendables: [handle.bigEndian, data]) }
    }

    private final class Handler: DisconnectHandler {
        func didDisconnect(
            from peripheral: Peripheral, with error: Error?, willReconnect autoReconnect: Bool
        ) -> AutoReconnectMode {
            return .change(shouldAutoReconnect: false)
        }
    }

    func testProtocolsAreTypesAsTheGuideWritesThem() {
        XCTAssertEqual(WriteRequest(handle: 0x0102, data: UInt8(3)).toBluetoothData(), Data([1, 2, 3]))
        let bluejay = Bluejay()
        let handler = Handler()
        bluejay.registerDisconnectHandler(handler: handler)
        bluejay.removeDisconnectHandler()
    }
}
