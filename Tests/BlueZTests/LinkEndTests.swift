import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import XCTest

@testable import BlueCapBlueZ

/// The ends of links as each version signals them, and the removal of devices.
final class LinkEndTests: XCTestCase {
    private let device = ObjectKey(BlueZMessages.device)
    private var daemon = FakeDaemon()
    /// Keeps the client.
    private var observation: CancelHandle?

    private func readyClient(_ observer: RecordingObserver = RecordingObserver()) -> BlueZClient {
        daemon.objects.append((BlueZMessages.device, [("org.bluez.Device1", BlueZMessages.fullDevice)]))
        daemon.appear()
        let client = BlueZClient.shared(at: daemon.bus.address)
        observation = client.observe(observer)
        daemon.loop.run()
        daemon.forgetCalls()
        return client
    }

    private func change(_ properties: TestProperties) {
        daemon.send(BlueZMessages.propertiesChanged(BlueZMessages.device, "org.bluez.Device1", properties))
    }

    private func disconnected(_ name: String, _ message: String) {
        daemon.send(
            .signal(path: BlueZMessages.device, interface: "org.bluez.Device1", member: "Disconnected") {
                $0.string(name)
                $0.string(message)
            })
    }

    private func linkEnd(_ client: BlueZClient) throws -> LinkEnd? {
        XCTAssertTrue(client.daemon.objects.contains(device))
        return client.daemon.objects.linkEnd(of: device)
    }

    // MARK: Disconnected

    func testTheReasonIsThereWhenTheLinkIsDown() throws {
        let client = readyClient()
        change([("ServicesResolved", .bool(false))])
        disconnected("org.bluez.Reason.Remote", "Connection terminated by remote user")
        change([("Connected", .bool(false))])

        let end = try XCTUnwrap(linkEnd(client))
        XCTAssertEqual(end.name, "org.bluez.Reason.Remote")
        XCTAssertEqual(end.message, "Connection terminated by remote user")
    }

    func testBefore583ThereIsNone() throws {
        let client = readyClient()
        change([("ServicesResolved", .bool(false))])
        change([("Connected", .bool(false))])
        XCTAssertNil(try linkEnd(client))
    }

    func testTheReasonOfAnEarlierLinkIsForgotten() throws {
        let client = readyClient()
        for news in [("Connected", TestValue.bool(true)), ("ServicesResolved", .bool(true))] {
            change([("ServicesResolved", .bool(false))])
            disconnected("org.bluez.Reason.Timeout", "Connection timeout")
            change([("Connected", .bool(false))])
            XCTAssertEqual(try linkEnd(client)?.name, "org.bluez.Reason.Timeout")
            // The daemon does not always signal that a device is connected.
            change([news])
            XCTAssertNil(try linkEnd(client))
        }
    }

    func testAReasonOfAnUnknownDeviceIsPassedOver() {
        let client = readyClient()
        daemon.send(
            .signal(
                path: "/org/bluez/hci0/dev_00_00_00_00_00_01", interface: "org.bluez.Device1", member: "Disconnected"
            ) {
                $0.string("org.bluez.Reason.Local")
                $0.string("")
            })
        daemon.send(
            .signal(path: BlueZMessages.device, interface: "org.bluez.Device1", member: "Disconnected") { $0.uint32(1) }
        )
        XCTAssertTrue(client.daemon.objects.linkEnds.isEmpty)
    }

    // MARK: RemoveDevice

    func testTheLinkIsEndedBeforeADeviceIsRemoved() {
        let notConnected = DBusError(name: "org.bluez.Error.NotConnected", message: "Not Connected")
        let noReply = "org.freedesktop.DBus.Error.NoReply"
        let table: [(name: String, minor: Int?, error: DBusError?, isSilent: Bool, result: String)] = [
            ("a link", nil, nil, false, "done"), ("no link", nil, notConnected, false, "done"),
            ("a link that cannot be ended", 82, nil, true, "done"),
            ("a link that cannot be ended, by 5.87", 87, nil, true, noReply),
        ]
        for row in table {
            daemon = FakeDaemon()
            if let minor = row.minor { daemon.objects = [(BlueZMessages.adapterPath, BlueZMessages.adapter(minor))] }
            let client = readyClient()
            daemon.errors["Disconnect"] = row.error.map { [$0] }
            if row.isSilent { daemon.silent = ["Disconnect"] }
            let result = Locked("")
            client.removeDevice(device) { outcome in result.withLock { $0 = outcome.failure?.name ?? "done" } }
            daemon.loop.run()
            daemon.loop.advance(by: 15)
            XCTAssertEqual(daemon.calls, ["Disconnect"] + (row.result == "done" ? ["RemoveDevice"] : []), row.name)
            XCTAssertEqual(result.withLock { $0 }, row.result, row.name)
        }
    }
}
