import BlueCapGATT
import XCTest

@testable import BlueCapBlueZ
@testable import BlueCapKit

/// What a peripheral's state keeps of BlueZ's reason for the end of a link.
final class DisconnectDetailTests: XCTestCase {
    private func connected() throws -> (PeripheralState, ObjectKey) {
        let adapter = try XCTUnwrap(ObjectKey(adapter: 0))
        let device = try XCTUnwrap(ObjectKey(device: BluetoothAddress(rawValue: 0x1234), on: adapter))
        var state = PeripheralState(backOff: BackOff(seed: 1))
        _ = state.managerStateChanged(.poweredOn)
        _ = state.statusChanged(.init(device: device, isConnected: true))
        _ = state.connect(.connectAsked(ConnectionPolicy()))
        XCTAssertEqual(state.connection.state, .connected)
        return (state, device)
    }

    func testTheReasonOfALostLinkIsKeptUntilTheNextOne() throws {
        var (state, device) = try connected()
        let end = LinkEnd(name: "org.bluez.Reason.Timeout", message: "Connection timeout")
        var lost = LinkStatus(device: device)
        lost.linkEnd = end
        _ = state.statusChanged(lost)
        XCTAssertEqual(state.lastLoss, .linkLost)
        XCTAssertEqual(state.linkEnd, end)

        _ = state.statusChanged(.init(device: device))
        XCTAssertEqual(state.linkEnd, end)
        _ = state.statusChanged(.init(device: device, isConnected: true))
        _ = state.connect(.connectAsked(ConnectionPolicy()))
        XCTAssertNil(state.linkEnd)
    }

    func testWithoutASignalThereIsNone() throws {
        var (state, device) = try connected()
        _ = state.statusChanged(.init(device: device))
        XCTAssertEqual(state.lastLoss, .linkLost)
        XCTAssertNil(state.linkEnd)
    }

    func testTheTextIsBlueZs() {
        let detail = DisconnectDetail(
            LinkEnd(name: "org.bluez.Reason.Local", message: "Connection terminated by local host"))
        XCTAssertEqual(detail.cause, .local)
        XCTAssertEqual(detail.description, "org.bluez.Reason.Local: Connection terminated by local host")
    }

    func testEachReason() {
        let causes: [(String, DisconnectDetail.Cause)] = [
            ("Unknown", .unspecified), ("Timeout", .timeout), ("Local", .local), ("Remote", .remote),
            ("Authentication", .authentication), ("Suspend", .suspend),
        ]
        XCTAssertEqual(Set(causes.map(\.1)), Set(DisconnectDetail.Cause.allCases))
        for (name, cause) in causes {
            XCTAssertEqual(DisconnectDetail(LinkEnd(name: "org.bluez.Reason.\(name)", message: "")).cause, cause)
        }
        let other = DisconnectDetail(LinkEnd(name: "org.bluez.Reason.Eclipse", message: "Dark"))
        XCTAssertEqual(other.cause, .unspecified)
        XCTAssertEqual(other.name, "org.bluez.Reason.Eclipse")
        XCTAssertEqual(DisconnectDetail(LinkEnd(name: "com.example.Timeout", message: "")).cause, .unspecified)
    }

    func testABlockedAdapterSaysSo() {
        let adapter = AdapterChoice.Candidate(name: "hci0", address: "00:1A:7D:DA:71:13")
        func text(_ power: Adapter1.PowerState?) -> String {
            Explanation.of(adapter, isPowered: false, power, wanted: nil, present: ["hci0"])
        }
        XCTAssertTrue(text(.blocked).contains("is blocked"))
        XCTAssertTrue(text(.turningOn).contains("being switched on"))
        XCTAssertTrue(text(.off).contains("bluetoothctl power on"))
        XCTAssertTrue(text(nil).contains("rfkill unblock bluetooth"))
    }
}
