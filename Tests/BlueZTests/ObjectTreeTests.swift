import BlueCapDBus
import BlueCapGATT
import XCTest

@testable import BlueCapBlueZ

final class ObjectTreeTests: TreeCase {
    override func setUp() { loadDevices([(BlueZMessages.device, BlueZMessages.fullDevice)]) }

    private func loadDevices(_ devices: [(ObjectPath, TestProperties)]) {
        load(
            [(BlueZMessages.adapterPath, BlueZMessages.adapter())]
                + devices.map { ($0.0, [("org.bluez.Device1", $0.1)]) })
    }

    private func device() throws -> Device1 { try XCTUnwrap(tree[deviceKey]) }

    private func change(_ properties: TestProperties, invalidated: [String] = []) {
        apply(
            BlueZMessages.propertiesChanged(
                BlueZMessages.device, "org.bluez.Device1", properties, invalidated: invalidated))
    }

    // MARK: Loading

    func testLoadingReportsAdaptersAndDevices() throws {
        XCTAssertEqual(changes, [.adapterAdded(.hci0), .deviceAdded(deviceKey, isAdvertised: true)])
        XCTAssertEqual(tree.adapterKeys, [.hci0])
        XCTAssertEqual(tree.deviceCount, 1)
    }

    func testAnAdapterHasItsValues() throws {
        let adapter = try XCTUnwrap(tree[adapter: .hci0])

        XCTAssertEqual(adapter.address?.description, "00:1A:7D:DA:71:13")
        XCTAssertTrue(adapter.isPowered)
        XCTAssertFalse(adapter.isDiscovering)
        XCTAssertEqual(adapter.interfaces, [.gattManager, .advertisingManager])
    }

    func testADeviceHasAllItsValues() throws {
        let device = try self.device()

        XCTAssertEqual(device.address.description, "C0:26:DF:12:34:56")
        XCTAssertEqual(device.addressType, .random)
        XCTAssertEqual(device.name, "Heart of Gold")
        XCTAssertTrue(device.isPaired && device.isBonded && device.isTrusted)
        XCTAssertTrue(device.isConnected && device.areServicesResolved)
        XCTAssertEqual(device.rssi, -61)
        XCTAssertEqual(device.txPower, 4)
        XCTAssertEqual(
            device.uuids, [CBUUID(string: "180D"), CBUUID(string: "6E400001-B5A3-F393-E0A9-E50E24DCCA9E")])
        XCTAssertEqual(device.manufacturerData.dictionary, [0x004C: [2, 21, 1], 0x0499: []])
        XCTAssertEqual(device.serviceData.dictionary, [CBUUID(string: "FEAA"): [0x10, 0xEE]])
        XCTAssertEqual(device.advertisingFlags, 6)
        XCTAssertEqual(device.advertisingData.dictionary, [0x2A: [1, 2]])
    }

    func testEachDeclaredPropertyHasAValueInThatTest() {
        // The adapter and the address are in the path.
        let names = Set(BlueZMessages.fullDevice.map(\.0)).subtracting(["Adapter", "Appearance"])
        // CablePairing says of the daemon that it is 5.83 or later.
        XCTAssertEqual(Set(Device1.table.properties.map { "\($0.name)" }), names.union(["CablePairing"]))
        for (name, value) in BlueZMessages.fullDevice where names.contains(name) {
            let property = Device1.table.properties.first { "\($0.name)" == name }
            XCTAssertEqual(property.map { "\($0.signature)" }, value.signature, name)
        }
    }

    func testADeviceTakes72BytesBesidesItsData() {
        XCTAssertEqual(MemoryLayout<Device1>.stride, 72)
    }

    func testADeviceThatIsMerelyRememberedIsNotDiscovered() throws {
        loadDevices([(BlueZMessages.device, [("Address", .string("C0:26:DF:12:34:56")), ("Paired", .bool(true))])])
        XCTAssertEqual(changes.last, .deviceAdded(deviceKey, isAdvertised: false))
        XCTAssertNil(try device().rssi)
    }

    func testSignalsBeforeTheAnswerAreSupersededByIt() {
        tree = ObjectTree()
        apply(BlueZMessages.interfacesAdded(BlueZMessages.device, [("org.bluez.Device1", [])]))
        XCTAssertEqual(changes, [])
        XCTAssertEqual(tree.deviceCount, 0)
    }

    func testLoadingAgainRemovesWhatIsNotNamedAnyMore() throws {
        let objects = [(BlueZMessages.adapterPath, BlueZMessages.adapter())]
        change { $0.load(BlueZMessages.managedObjects(objects), into: &$1) }
        XCTAssertEqual(changes.last, .deviceRemoved(deviceKey))
        XCTAssertEqual(tree.adapterKeys, [.hci0])
        XCTAssertEqual(tree.deviceCount, 0)
    }

    func testClearingRemovesEverythingDevicesFirst() throws {
        change { $0.clear(into: &$1) }
        XCTAssertEqual(changes, [.deviceRemoved(deviceKey), .adapterRemoved(.hci0)])
        XCTAssertFalse(tree.isLoaded)
    }

    // MARK: Changes

    func testOnlyTheNamedFieldsChange() throws {
        change([("RSSI", .int16(-40)), ("ManufacturerData", .manufacturerData([(0x0059, [9])]))])

        XCTAssertEqual(changes, [.deviceChanged(deviceKey, [.rssi, .manufacturerData], isAdvertised: true)])
        XCTAssertEqual(try device().rssi, -40)
        XCTAssertEqual(try device().manufacturerData.dictionary, [0x0059: [9]])
        XCTAssertEqual(try device().name, "Heart of Gold")
    }

    func testAChangeWithoutAnAdvertisementIsNoDiscovery() throws {
        change([("Connected", .bool(false)), ("ServicesResolved", .bool(false))])
        XCTAssertEqual(
            changes,
            [.deviceChanged(deviceKey, [.isConnected, .areServicesResolved], isAdvertised: false)])
        XCTAssertFalse(try device().isConnected)
    }

    func testValuesThatEndWithDiscoveryAreInvalidatedAndNoDiscovery() throws {
        change([], invalidated: ["RSSI", "TxPower"])
        XCTAssertEqual(changes, [.deviceChanged(deviceKey, [.rssi, .txPower], isAdvertised: false)])
        XCTAssertNil(try device().rssi)
        XCTAssertNil(try device().txPower)
        XCTAssertFalse(try device().fields.contains(.rssi))
    }

    func testAnRSSIOf127IsASightingWithoutAStrength() throws {
        change([("RSSI", .int16(127))])
        XCTAssertEqual(changes, [.deviceChanged(deviceKey, .rssi, isAdvertised: true)])
        XCTAssertNil(try device().rssi)
    }

    func testEveryOptionalPropertyCanGo() throws {
        let optional = Device1.table.properties.filter(\.isOptional)
        change([], invalidated: optional.map { "\($0.name)" })
        let device = try self.device()
        XCTAssertEqual(device.fields.rawValue & optional.reduce(0) { $0 | $1.field }, 0)
        XCTAssertNil(device.name)
        XCTAssertNil(device.advertisingFlags)
        XCTAssertTrue(device.manufacturerData.isEmpty && device.serviceData.isEmpty && device.advertisingData.isEmpty)
    }

    func testPropertiesOfAnUnexpectedTypeAreIgnoredOneByOne() throws {
        for (name, _) in BlueZMessages.fullDevice {
            setUp()
            let wrong: TestValue =
                ["Appearance", "RSSI"].contains(name) ? .string("x") : .uint16(7)
            let target: (String, TestValue) = name == "TxPower" ? ("RSSI", .int16(-33)) : ("TxPower", .int16(-33))
            change([(name, wrong), target])

            let device = try self.device()
            XCTAssertEqual(name == "TxPower" ? device.rssi : device.txPower, -33, name)
            XCTAssertEqual(device.name, "Heart of Gold")
            XCTAssertEqual(device.manufacturerData.dictionary.count, 2)
        }
    }

    func testUnknownPropertiesAndInterfacesChangeNothing() {
        change(
            [
                ("WakeAllowed", .bool(true)), ("", .bool(true)), ("Class", .uint32(7)), ("Icon", .string("phone")),
                ("Blocked", .bool(true)), ("Modalias", .string("bluetooth:v004CpD001")),
            ])
        XCTAssertEqual(changes, [])

        apply(
            BlueZMessages.propertiesChanged(BlueZMessages.device, "org.bluez.MediaControl1", [("Percentage", .byte(9))])
        )
        XCTAssertEqual(changes, [])
    }

    func testUUIDsThatAreNoneAreLeftOut() throws {
        change([("UUIDs", .strings(["180f", "nonsense", "0000180d-0000-1000-8000-00805f9b34fb"]))])
        XCTAssertEqual(try device().uuids, [CBUUID(string: "180F"), CBUUID(string: "180D")])
    }

    func testASignalOfAnUnknownDeviceIsPassedOver() {
        loadDevices([])
        change([("RSSI", .int16(-40))])
        XCTAssertEqual(changes, [])
    }

    func testAMessageOfAnotherFormIsPassedOver() {
        let bodies: [(inout MessageWriter) -> Void] = [
            { _ in }, { $0.uint32(7) },
            {
                $0.string("org.bluez.Device1")
                $0.string("and no dictionary")
            },
        ]
        for member in ["PropertiesChanged", "InterfacesAdded", "InterfacesRemoved"] {
            for interface in ["org.freedesktop.DBus.Properties", "org.freedesktop.DBus.ObjectManager"] {
                for body in bodies {
                    apply(.signal(path: BlueZMessages.device, interface: interface, member: member, body: body))
                    XCTAssertEqual(changes, [], "\(interface) \(member)")
                }
            }
        }
    }

    func testAnAdapterThatIsSwitchedOffSaysSo() throws {
        apply(
            BlueZMessages.propertiesChanged(
                BlueZMessages.adapterPath, "org.bluez.Adapter1",
                [("Powered", .bool(false)), ("Discovering", .bool(false)), ("PowerState", .string("off-blocked"))]))
        // That there is a PowerState is news as well.
        XCTAssertEqual(
            changes,
            [
                .adapterChanged(.hci0, [.isPowered, .isDiscovering, .powerState]),
                .adapterChanged(.hci0, .capabilities),
            ])
        XCTAssertEqual(tree[adapter: .hci0]?.isPowered, false)
        XCTAssertEqual(tree[adapter: .hci0]?.powerState, .blocked)
    }

    // MARK: Names

    func testAnotherAliasIsReported() throws {
        change([("Alias", .string("BlueZ 5.66"))])
        XCTAssertEqual(changes, [.deviceChanged(deviceKey, .alias, isAdvertised: false)])
        XCTAssertEqual(try device().name, "Heart of Gold")
    }

    func testADeviceWithoutAnAddressHasThatOfItsPath() throws {
        loadDevices([(BlueZMessages.device, [("Address", .uint16(7)), ("RSSI", .int16(-50))])])
        XCTAssertEqual(try device().address.description, "C0:26:DF:12:34:56")
        XCTAssertEqual(try device().rssi, -50)
    }

    // MARK: Coming and going

    func testADeviceComesWithItsFirstAdvertisement() throws {
        loadDevices([])
        apply(
            BlueZMessages.interfacesAdded(
                BlueZMessages.device,
                [
                    ("org.freedesktop.DBus.Introspectable", []), ("org.bluez.Device1", BlueZMessages.fullDevice),
                    ("org.freedesktop.DBus.Properties", []),
                ]))
        XCTAssertEqual(changes, [.deviceAdded(deviceKey, isAdvertised: true)])
    }

    func testARemovedDeviceCanBeReadUntilTheSweepAndItsPlaceIsUsedAgain() throws {
        apply(BlueZMessages.interfacesRemoved(BlueZMessages.device, ["org.bluez.Device1"]))

        XCTAssertEqual(changes, [.deviceRemoved(deviceKey)])
        XCTAssertEqual(tree.read(deviceKey) { $0.name }, "Heart of Gold")
        XCTAssertNil(tree[deviceKey])
        XCTAssertFalse(tree.contains(deviceKey))
        XCTAssertEqual(tree.deviceCount, 0)
        tree.sweep()
        XCTAssertNil(tree.read(deviceKey) { $0.address })

        apply(BlueZMessages.interfacesAdded(BlueZMessages.device, [("org.bluez.Device1", [])]))
        XCTAssertEqual(tree.devices.count, 1)
        XCTAssertNil(try device().name)
    }

    func testADeviceThatReturnsBeforeTheSweepStays() throws {
        apply(BlueZMessages.interfacesRemoved(BlueZMessages.device, ["org.bluez.Device1"]))
        apply(BlueZMessages.interfacesAdded(BlueZMessages.device, [("org.bluez.Device1", [("Name", .string("x"))])]))
        tree.sweep()
        XCTAssertEqual(try device().name, "x")
        XCTAssertEqual(tree.deviceCount, 1)
        XCTAssertEqual(tree.devices.count, 1)
    }

    func testLosingAnotherInterfaceIsNotLosingTheDevice() {
        apply(BlueZMessages.interfacesRemoved(BlueZMessages.device, ["org.bluez.MediaControl1"]))
        XCTAssertEqual(changes, [])
        XCTAssertEqual(tree.deviceCount, 1)
    }

    func testAnAdapterTakesItsDevicesAlong() throws {
        let other: ObjectPath = "/org/bluez/hci1/dev_C0_26_DF_12_34_56"
        loadDevices([(BlueZMessages.device, BlueZMessages.fullDevice), (other, [])])
        apply(BlueZMessages.interfacesAdded("/org/bluez/hci1", BlueZMessages.adapter()))
        apply(BlueZMessages.interfacesRemoved("/org/bluez/hci0", ["org.bluez.Adapter1"]))

        XCTAssertEqual(changes, [.deviceRemoved(deviceKey), .adapterRemoved(.hci0)])
        XCTAssertTrue(tree.contains(ObjectKey(other)))
    }

    func testObjectsWithPathsOfAnotherFormArePassedOver() {
        load([
            ("/test/radio", BlueZMessages.adapter()),
            ("/test/radio/thing", [("org.bluez.Device1", [("Address", .string("C0:26:DF:12:34:56"))])]),
        ])
        XCTAssertEqual(changes, [])
        XCTAssertEqual(tree.deviceCount, 0)
    }

    // MARK: Size

    func testDevicesThatOfferTheSameServicesShareTheirList() {
        var lists = SharedLists()
        let a = lists.shared([CBUUID(string: "180D"), CBUUID(string: "180F")])
        let b = lists.shared([CBUUID(string: "180D"), CBUUID(string: "180F")])
        XCTAssertEqual(a.withUnsafeBufferPointer { $0.baseAddress }, b.withUnsafeBufferPointer { $0.baseAddress })
    }

    func testADeviceIsSmall() {
        XCTAssertLessThanOrEqual(MemoryLayout<ObjectTree.DeviceEntry>.stride, 88)
    }

    func testDevicesThatComeAndGoForWeeksTakeNoMorePlaces() {
        loadDevices([])
        for index in 0..<20_000 as Range<Int> {
            let address = String(format: "%02X_%02X_%02X", index >> 16 & 255, index >> 8 & 255, index & 255)
            guard let path = ObjectPath(validating: "/org/bluez/hci0/dev_C0_00_00_\(address)") else { return }
            apply(BlueZMessages.interfacesAdded(path, [("org.bluez.Device1", [])]))
            apply(BlueZMessages.interfacesRemoved(path, ["org.bluez.Device1"]))
            tree.sweep()
        }
        XCTAssertEqual(tree.devices.count, 1)
        XCTAssertEqual(tree.deviceCount, 0)
    }
}
