import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import XCTest

@testable import BlueCapBlueZ

/// The ends of links as each version signals them, and the removal of devices.
final class LinkEndTests: XCTestCase {
    private let device = ObjectKey(BlueZMessages.device)
    private let daemon = FakeDaemon()
    /// Keeps the client.
    private var observation: CancelHandle?
    private let results = Locked<[String]>([])

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

    private func remove(_ client: BlueZClient) throws {
        let results = results
        client.removeDevice(device) { result in
            results.withLock { $0.append(result.failure?.name ?? "done") }
        }
        daemon.loop.run()
        daemon.loop.advance(by: 15)
    }

    func testTheLinkIsEndedBeforeADeviceIsRemoved() throws {
        let client = readyClient()
        try remove(client)
        XCTAssertEqual(daemon.calls, ["Disconnect", "RemoveDevice"])
        XCTAssertEqual(results.withLock { $0 }, ["done"])
    }

    func testADeviceWithoutALinkIsRemoved() throws {
        let client = readyClient()
        daemon.errors["Disconnect"] = [DBusError(name: "org.bluez.Error.NotConnected", message: "Not Connected")]
        try remove(client)
        XCTAssertEqual(daemon.calls, ["Disconnect", "RemoveDevice"])
        XCTAssertEqual(results.withLock { $0 }, ["done"])
    }

    func testADeviceWhoseLinkCannotBeEndedIsRemovedByADaemonThatIsNot587() throws {
        daemon.objects = [(BlueZMessages.adapterPath, BlueZMessages.adapter(82))]
        let client = readyClient()
        daemon.silent = ["Disconnect"]
        try remove(client)
        XCTAssertEqual(daemon.calls, ["Disconnect", "RemoveDevice"])
        XCTAssertEqual(results.withLock { $0 }, ["done"])
    }

    func testADeviceWhoseLinkCannotBeEndedIsNotRemoved() throws {
        daemon.objects = [(BlueZMessages.adapterPath, BlueZMessages.adapter(87))]
        let client = readyClient()
        daemon.silent = ["Disconnect"]
        try remove(client)
        XCTAssertEqual(daemon.calls, ["Disconnect"])
        XCTAssertEqual(results.withLock { $0 }, ["org.freedesktop.DBus.Error.NoReply"])
    }
}
