import BlueCapDBus
import BlueCapFutures
import XCTest

@testable import BlueZSimulator

/// Reading, writing and subscriptions as clients see them.
final class AttributeTests: XCTestCase {
    // MARK: Objects

    func testEachKindOfObjectHasThePropertiesOfTheRadioLab() {
        let (_, client) = GattCast.scene()
        XCTAssertEqual(
            client.properties(at: "/org/bluez/hci0/dev_C0_00_00_00_00_01/service000a"),
            [
                "UUID=0000180d-0000-1000-8000-00805f9b34fb", "Device=/org/bluez/hci0/dev_C0_00_00_00_00_01",
                "Primary=true", "Includes=ao",
            ])
        XCTAssertEqual(
            client.properties(at: GattCast.rate),
            [
                "UUID=00002a37-0000-1000-8000-00805f9b34fb",
                "Service=/org/bluez/hci0/dev_C0_00_00_00_00_01/service000a", "Value=", "Notifying=false",
                "Flags=notify,indicate", "NotifyAcquired=false", "MTU=247",
            ])
        XCTAssertEqual(
            client.properties(at: GattCast.control),
            [
                "UUID=00002a39-0000-1000-8000-00805f9b34fb",
                "Service=/org/bluez/hci0/dev_C0_00_00_00_00_01/service000a", "Value=",
                "Flags=read,write-without-response,write", "WriteAcquired=false", "MTU=247",
            ])
        XCTAssertEqual(
            client.properties(at: GattCast.controlText),
            [
                "UUID=00002901-0000-1000-8000-00805f9b34fb",
                "Characteristic=/org/bluez/hci0/dev_C0_00_00_00_00_01/service000a/char0010", "Value=",
            ])
    }

    // MARK: Reading

    func testAReadSignalsTheValueBeforeItsReply() {
        var bench = DaemonBench.connected
        XCTAssertEqual(bench.ask(.readValue(GattCast.place.rawValue)), [])
        bench.link(DaemonBench.strap, .response(id: 1, .bytes([1])), now: 1)
        XCTAssertEqual(bench.settle().outline, ["r000e Value", "reply"])
    }

    func testAReadTakesTheTimeOfOneRequestForEachPacket() {
        let (simulator, client) = GattCast.scene()
        simulator.setValue(Array(repeating: 7, count: 500), of: "2A38", at: GattCast.strap.address)
        let begin = simulator.seconds
        XCTAssertEqual(client.read(GattCast.place), Array(repeating: 7, count: 500))
        XCTAssertEqual(simulator.seconds - begin, 0.015, accuracy: 0.0001)
    }

    func testAReadFromAnOffsetSignalsAllThatIsKnownAndReturnsTheRest() {
        let (simulator, client) = GattCast.scene()
        simulator.setValue([1, 2, 3, 4], of: "2A38", at: GattCast.strap.address)
        XCTAssertEqual(client.read(GattCast.place, offset: 2), [3, 4])
        client.expectLog("char000e Value=00000304")
        XCTAssertEqual(client.read(GattCast.place), [1, 2, 3, 4])
        XCTAssertEqual(
            client.error(of: "ReadValue", at: GattCast.place) { $0.options(offset: 5) },
            .bluez("InvalidArguments", "Invalid offset"))
    }

    func testReadsOfTheSameAreOneRequest() {
        let (simulator, client) = GattCast.scene()
        let first = client.begin("ReadValue", at: GattCast.place)
        let second = client.begin("ReadValue", at: GattCast.place)
        let other = client.begin("ReadValue", at: GattCast.place) { $0.options(offset: 1) }
        simulator.advance(by: 1)
        XCTAssertEqual(first.bytes, [1])
        XCTAssertEqual(second.bytes, [1])
        XCTAssertEqual(other.error?.name, "org.bluez.Error.InProgress")
        XCTAssertEqual(simulator.links.first?.requests, 1)
    }

    func testWhatCannotBeReadIsNotPermitted() {
        let (_, client) = GattCast.scene()
        XCTAssertEqual(client.error(of: "ReadValue", at: GattCast.rate), .bluez("NotPermitted", "Read not permitted"))
    }

    // MARK: Writing

    func testAWriteIsStoredAndReadBack() {
        let (simulator, client) = GattCast.scene()
        XCTAssertNil(client.write([1, 2, 3], to: GattCast.control, type: "request"))
        XCTAssertEqual(simulator.value(of: "2A39", at: GattCast.strap.address), [1, 2, 3])
        XCTAssertEqual(client.read(GattCast.control), [1, 2, 3])
        XCTAssertNil(client.write([9], to: GattCast.control))
        XCTAssertNil(client.write([4, 5], to: GattCast.control, type: "command"))
        XCTAssertEqual(simulator.value(of: "2A39", at: GattCast.strap.address), [4, 5])
    }

    func testOneWriteIsUnderWayAtATime() {
        let (simulator, client) = GattCast.scene()
        let first = client.begin("WriteValue", at: GattCast.control) { writer in
            writer.bytes([1])
            writer.options()
        }
        XCTAssertEqual(client.write([2], to: GattCast.control)?.name, "org.bluez.Error.InProgress")
        simulator.advance(by: 1)
        XCTAssertEqual(first.succeeded, true)
    }

    func testErrorsOfWritesHaveBlueZsNamesAndTexts() {
        let (_, client) = GattCast.scene()
        let table: [(ObjectPath, Int, String?, DBusError)] = [
            (GattCast.place, 1, "request", .bluez("NotPermitted", "Write not permitted")),
            (GattCast.place, 1, nil, .bluez("NotSupported", "Operation is not supported")),
            (GattCast.control, 1, "loud", .bluez("NotSupported", "Operation is not supported")),
            (GattCast.control, 245, "command", .bluez("Failed", "Failed to initiate write")),
            (GattCast.control, 513, "request", .bluez("InvalidArguments", "Invalid Length")),
        ]
        for (path, count, type, error) in table {
            XCTAssertEqual(client.write(Array(repeating: 0, count: count), to: path, type: type), error)
        }
    }

    func testADescriptorIsReadAndTheOneForSubscriptionsIsNotWritten() {
        let (_, client) = GattCast.scene()
        XCTAssertEqual(client.read(GattCast.controlText), Array("Control".utf8))
        let path: ObjectPath = "/org/bluez/hci0/dev_C0_00_00_00_00_01/service000a/char000b/desc000d"
        XCTAssertEqual(client.write([1, 0], to: path), .bluez("NotPermitted", "Write not permitted"))
    }

    // MARK: Subscriptions

    func testNotificationsComeAsChangesOfTheValueEachOneAndInOrder() {
        let (simulator, client) = GattCast.scene()
        XCTAssertFalse(simulator.notify(GattCast.strap.address, characteristic: "2A37", value: [0]))
        XCTAssertNil(client.error(of: "StartNotify", at: GattCast.rate))
        client.expectLog("char000b Notifying=true")
        for number: UInt8 in 1...5 {
            XCTAssertTrue(simulator.notify(GattCast.strap.address, characteristic: "2A37", value: [0, number / 2]))
        }
        client.expectLog(
            "char000b Value=0000", "char000b Value=0001", "char000b Value=0001", "char000b Value=0002",
            "char000b Value=0002")
        XCTAssertNil(client.error(of: "StopNotify", at: GattCast.rate))
        client.expectLog("char000b Notifying=false")
        simulator.advance(by: 1)
        XCTAssertFalse(simulator.notify(GattCast.strap.address, characteristic: "2A37", value: [0]))
    }

    func testASessionBelongsToItsClientAndEndsWithIt() {
        let (simulator, client) = GattCast.scene()
        let other = BusClient(simulator)
        XCTAssertNil(client.error(of: "StartNotify", at: GattCast.rate))
        XCTAssertNil(client.error(of: "StartNotify", at: GattCast.rate))
        XCTAssertNil(other.error(of: "StartNotify", at: GattCast.rate))
        XCTAssertEqual(simulator.subscriptions(to: "2A37", at: GattCast.strap.address), [client.name, other.name])
        XCTAssertEqual(simulator.links.first?.requests, 1, "one configuration serves both")
        _ = other.takeLog()
        client.connection.close()
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.subscriptions(to: "2A37", at: GattCast.strap.address), [other.name])
        other.connection.close()
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.links.first?.subscriptions, [])
    }

    func testSessionsComeBackWithTheLinkAndMayBeginWithoutOne() {
        let (simulator, client) = GattCast.scene()
        XCTAssertNil(client.error(of: "StartNotify", at: GattCast.rate))
        simulator.simulateLinkLoss(of: GattCast.strap.address)
        simulator.run()
        XCTAssertNil(client.error(of: "StartNotify", at: GattCast.alarm))
        XCTAssertEqual(client.error(of: "StartNotify", at: GattCast.rate)?.name, "org.bluez.Error.InProgress")
        XCTAssertNil(client.error(of: "Connect", at: GattCast.path))
        simulator.advance(by: 1)
        XCTAssertEqual(
            simulator.links.first?.subscriptions,
            ["00002a37-0000-1000-8000-00805f9b34fb", "00002a3a-0000-1000-8000-00805f9b34fb"])
    }

    func testASourceSendsByItselfWhileSomebodyListens() {
        var strap = GattCast.strap
        strap.services[0].characteristics[0].notifications = .counter(size: 2, every: 0.5)
        let (simulator, client) = GattCast.scene(strap)
        XCTAssertNil(client.error(of: "StartNotify", at: GattCast.rate))
        simulator.advance(by: 1.6)
        client.expectLog("char000b Notifying=true", "char000b Value=0000", "char000b Value=0100", "char000b Value=0200")
    }

    func testWithoutALinkAndWithoutASessionBlueZSaysSo() {
        let (simulator, client) = GattCast.scene()
        XCTAssertEqual(client.error(of: "StopNotify", at: GattCast.rate), .bluez("Failed", "No notify session started"))
        XCTAssertEqual(client.error(of: "StartNotify", at: GattCast.place)?.name, "org.bluez.Error.NotSupported")
        simulator.simulateLinkLoss(of: GattCast.strap.address)
        simulator.run()
        XCTAssertEqual(client.error(of: "ReadValue", at: GattCast.place), .bluez("Failed", "Not connected"))
    }
}

extension DaemonBench {
    static let strap = DeviceKey(adapter: 0, address: GattCast.strap.address)

    /// A daemon with the strap connected and all its objects on the bus.
    static var connected: DaemonBench { connected(.v5_66) }

    static func connected(_ bluez: BlueZVersion) -> DaemonBench {
        var bench = DaemonBench(bluez, remembering: [GattCast.known])
        _ = bench.ask(.connect(strap))
        bench.link(strap, .connected(.immediate), now: 0)
        let table = AttributeDatabase(GattCast.strap.services, name: "Strap", appearance: nil)
        bench.daemon.take(.discovered(strap, table.services, name: nil))
        _ = bench.settle()
        return bench
    }
}
