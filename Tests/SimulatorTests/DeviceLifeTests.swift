import TestSupport
import XCTest

@testable import BlueZSimulator

final class DeviceLifeTests: XCTestCase {
    private static let tag = "/org/bluez/hci0/dev_C0_00_00_00_00_02"

    private static let sighting = Sighting(
        address: Cast.tag.address, addressType: .random, rssi: -60, report: AdvertisingReport(Cast.tag.advertisement))

    private func scanning() -> DaemonBench {
        var bench = DaemonBench()
        _ = bench.ask(.filter(("Transport", .string("le"))))
        _ = bench.ask(.start)
        return bench
    }

    func testANewDeviceIsAnnouncedWithAllItsPropertiesInBlueZsOrder() throws {
        var bench = scanning()
        guard case .interfacesAdded(let path, let interfaces)? = bench.receive(Cast.strap, rssi: -51).first else {
            return XCTFail("no InterfacesAdded")
        }
        XCTAssertEqual(path, "/org/bluez/hci0/dev_C0_00_00_00_00_01")
        XCTAssertEqual(
            interfaces.map(\.name),
            ["org.freedesktop.DBus.Introspectable", "org.bluez.Device1", "org.freedesktop.DBus.Properties"])
        XCTAssertEqual(
            interfaces[1].properties.map(\.name),
            [
                "Address", "AddressType", "Name", "Alias", "Appearance", "Paired", "Bonded", "Trusted", "Blocked",
                "LegacyPairing", "RSSI", "Connected", "UUIDs", "Adapter", "TxPower", "ServicesResolved",
            ])
        let added = try XCTUnwrap(bench.daemon.core.tree.key(at: path).flatMap(bench.daemon.core.tree.state))
        XCTAssertEqual(added.interfaces, interfaces)
    }

    func testANamelessDeviceHasNoNameAndItsAddressAsAlias() {
        var bench = scanning()
        let added = bench.receive(Cast.beacon).first
        XCTAssertNil(added?.value(of: "Name"))
        XCTAssertEqual(added?.value(of: "Alias"), .string("C0-00-00-00-00-03"))
    }

    func testSeveralChangesOfOneTurnAreOneSignalInTheOrderTheyCame() {
        var bench = scanning()
        _ = bench.receive(Cast.tag)
        var changed = Cast.tag.advertisement
        changed.localName = "Tag II"
        changed.manufacturerData[0x004C] = [9]
        changed.txPower = 3
        XCTAssertEqual(
            bench.receive(Cast.tag.address, changed).map(\.outline), ["00_02 RSSI TxPower Name Alias ManufacturerData"])
    }

    func testSignalsOfWhatCameBeforeAReplyComeBeforeIt() {
        var bench = scanning()
        bench.daemon.received(Self.sighting)
        XCTAssertEqual(bench.ask(.getDiscoveryFilters).outline, ["+ _00_02", "reply"])
    }

    func testDevicesGoWithTheScanOrByACall() {
        check(
            "after the scan strengths are invalid, and what takes no connection is forgotten", scanning(),
            (.receive(Cast.strap), nil), (.receive(Cast.beacon), nil),
            // The beacon's RSSI becomes invalid just before the beacon is removed.
            (.ask(.stop), ["reply", "00_03 -RSSI", "- _00_03", "00_01 -TxPower -RSSI", "/hci0 Discovering"]))
        check(
            "removeDevice removes, and fails with DoesNotExist for others", scanning(), (.receive(Cast.tag), nil),
            (.ask(.removeDevice(Self.tag)), ["- _00_02", "reply"]),
            (.refused(.removeDevice(Self.tag), .doesNotExist), []))
    }

    func testATemporaryDeviceIsRemovedThirtySecondsAfterItsLastAdvertisement() {
        var bench = scanning()
        _ = bench.receive(Cast.tag)
        XCTAssertEqual(bench.advance(by: 20), [])
        _ = bench.receive(Cast.tag)
        XCTAssertEqual(bench.advance(by: 29.9), [])
        XCTAssertEqual(
            bench.advance(by: 0.1),
            [
                .interfacesRemoved(
                    path: "/org/bluez/hci0/dev_C0_00_00_00_00_02",
                    interfaces: [
                        "org.freedesktop.DBus.Properties", "org.freedesktop.DBus.Introspectable", "org.bluez.Device1",
                    ])
            ])
    }

    func testARememberedDeviceStaysAndHasNoStrengthUntilItAdvertises() {
        var old = Cast.tag
        old.isRemembered = true
        var bench = DaemonBench(remembering: [old])
        XCTAssertEqual(bench.daemon.core.tree.objects.count, 3)
        XCTAssertNil(bench.daemon.core.tree.devices.values.first.flatMap(Property<Device>.rssi.value))
        _ = bench.advance(by: 1000)
        XCTAssertEqual(bench.daemon.core.tree.objects.count, 3)
        _ = bench.ask(.start)
        XCTAssertEqual(bench.receive(old).map(\.outline), ["00_02 RSSI ManufacturerData"])
    }

    func testADeviceThatComesAndGoesWithinOneTurnIsNeverSpokenOf() {
        var bench = scanning()
        XCTAssertEqual(
            bench.signals { daemon in
                daemon.received(Self.sighting)
                daemon.remove(DeviceKey(adapter: 0, address: Cast.tag.address))
            }, [])
    }

    func testAnAttemptToConnectFailsAndMakesTheDevicePermanentUnlessItsAddressIsPrivate() {
        var bench = scanning()
        let phone = VirtualPeripheral("5F:00:00:00:00:05", addressType: .random)
        for peripheral in [Cast.tag, phone] {
            _ = bench.receive(peripheral)
            let key = DeviceKey(adapter: 0, address: peripheral.address)
            XCTAssertEqual(bench.ask(.connect(key)), [])
            bench.link(key, .failed, now: bench.now)
            XCTAssertEqual(bench.settle().outline, ["org.bluez.Error.Failed"])
        }
        XCTAssertEqual(bench.advance(by: 31).map(\.outline), ["- _00_05"])
    }

    func testAStrengthOf127IsPassedOnAsItCame() {
        var bench = scanning()
        XCTAssertEqual(bench.receive(Cast.tag, rssi: 127).first?.value(of: "RSSI"), .int16(127))
    }

    func testMistypedPropertiesAreWrittenWithAnotherType() {
        var bench = scanning()
        _ = bench.receive(Cast.tag)
        bench.daemon.core.mistype(["RSSI"], of: Cast.tag.address)
        XCTAssertEqual(bench.receive(Cast.tag).first?.value(of: "RSSI")?.signature, "s")
    }

    func testPropertiesCanBeSetOnlyWhereAndAsBlueZTakesThem() {
        var bench = scanning()
        _ = bench.receive(Cast.tag)
        func set(_ name: String, _ value: BusValue) -> Request {
            .set(name, of: InterfaceName.device, at: Self.tag, value)
        }
        XCTAssertEqual(bench.ask(set("Alias", .string("Mine"))).outline, ["00_02 Alias", "reply"])
        XCTAssertEqual(bench.ask(set("Trusted", .bool(true))).outline, ["00_02 Trusted", "reply"])
        XCTAssertEqual(bench.error(of: set("RSSI", .int16(1)))?.name, "org.freedesktop.DBus.Error.PropertyReadOnly")
        XCTAssertEqual(bench.error(of: set("Hue", .int16(1)))?.name, "org.freedesktop.DBus.Error.UnknownProperty")
        XCTAssertEqual(
            bench.error(of: set("Alias", .int16(1)))?.name, "org.freedesktop.DBus.Error.InvalidSignature")
    }
}
