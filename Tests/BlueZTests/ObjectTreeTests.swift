import BlueCapDBus
import BlueCapGATT
import XCTest

@testable import BlueCapBlueZ

final class ObjectTreeTests: XCTestCase {
    private let hci0 = ObjectKey(adapter: 0)
    private let devicePath: ObjectPath = "/org/bluez/hci0/dev_C0_26_DF_12_34_56"
    private var changes = [Change]()

    override func setUp() { changes = [Change]() }

    private func key(_ path: ObjectPath) -> ObjectKey {
        var text = path.rawValue
        guard let key = text.withUTF8({ ObjectKey(path: $0) }) else { preconditionFailure("\(path) has no key") }
        return key
    }

    private func makeTree(_ devices: [(ObjectPath, TestProperties)] = []) -> ObjectTree {
        var tree = ObjectTree()
        let objects =
            [(BlueZMessages.adapterPath, BlueZMessages.adapter())]
            + devices.map { ($0.0, [("org.bluez.Device1", $0.1)]) }
        tree.load(BlueZMessages.managedObjects(objects), into: &changes)
        return tree
    }

    private func makeTreeWithDevice(_ properties: TestProperties = BlueZMessages.fullDevice) -> ObjectTree {
        let tree = makeTree([(devicePath, properties)])
        changes.removeAll()
        return tree
    }

    private func device(in tree: borrowing ObjectTree) throws -> Device1 { try XCTUnwrap(tree[key(devicePath)]) }

    private func change(_ tree: inout ObjectTree, _ properties: TestProperties, invalidated: [String] = []) {
        changes.removeAll()
        apply(
            BlueZMessages.propertiesChanged(
                devicePath, "org.bluez.Device1", properties, invalidated: invalidated), to: &tree)
    }

    private func apply(_ message: Message, to tree: inout ObjectTree) { tree.apply(message, into: &changes) }

    // MARK: Loading

    func testLoadingReportsAdaptersAndDevices() throws {
        let tree = makeTree([(devicePath, BlueZMessages.fullDevice)])
        let hci0 = try XCTUnwrap(hci0)

        XCTAssertEqual(changes, [.adapterAdded(hci0), .deviceAdded(key(devicePath), isAdvertised: true)])
        XCTAssertEqual(tree.adapterKeys, [hci0])
        XCTAssertEqual(tree.deviceCount, 1)
    }

    func testAnAdapterHasItsValues() throws {
        let tree = makeTree()
        let adapter = try XCTUnwrap(tree[adapter: try XCTUnwrap(hci0)])

        XCTAssertEqual(adapter.address?.description, "00:1A:7D:DA:71:13")
        XCTAssertTrue(adapter.isPowered)
        XCTAssertFalse(adapter.isDiscovering)
        XCTAssertEqual(adapter.interfaces, [.gattManager, .advertisingManager])
    }

    func testADeviceHasAllItsValues() throws {
        let tree = makeTreeWithDevice()
        let device = try self.device(in: tree)

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
        let tree = makeTree([(devicePath, [("Address", .string("C0:26:DF:12:34:56")), ("Paired", .bool(true))])])
        XCTAssertEqual(changes.last, .deviceAdded(key(devicePath), isAdvertised: false))
        XCTAssertNil(try device(in: tree).rssi)
    }

    func testSignalsBeforeTheAnswerAreSupersededByIt() {
        var tree = ObjectTree()
        apply(BlueZMessages.interfacesAdded(devicePath, [("org.bluez.Device1", [])]), to: &tree)
        XCTAssertEqual(changes, [])
        XCTAssertEqual(tree.deviceCount, 0)
    }

    func testLoadingAgainRemovesWhatIsNotNamedAnyMore() throws {
        var tree = makeTreeWithDevice()
        let hci0 = try XCTUnwrap(hci0)

        tree.load(BlueZMessages.managedObjects([(BlueZMessages.adapterPath, BlueZMessages.adapter())]), into: &changes)

        XCTAssertEqual(changes.last, .deviceRemoved(key(devicePath)))
        XCTAssertEqual(tree.adapterKeys, [hci0])
        XCTAssertEqual(tree.deviceCount, 0)
    }

    func testClearingRemovesEverythingDevicesFirst() throws {
        var tree = makeTreeWithDevice()
        tree.clear(into: &changes)
        XCTAssertEqual(changes, [.deviceRemoved(key(devicePath)), .adapterRemoved(try XCTUnwrap(hci0))])
        XCTAssertFalse(tree.isLoaded)
    }

    // MARK: Changes

    func testOnlyTheNamedFieldsChange() throws {
        var tree = makeTreeWithDevice()
        change(&tree, [("RSSI", .int16(-40)), ("ManufacturerData", .manufacturerData([(0x0059, [9])]))])

        XCTAssertEqual(changes, [.deviceChanged(key(devicePath), [.rssi, .manufacturerData], isAdvertised: true)])
        XCTAssertEqual(try device(in: tree).rssi, -40)
        XCTAssertEqual(try device(in: tree).manufacturerData.dictionary, [0x0059: [9]])
        XCTAssertEqual(try device(in: tree).name, "Heart of Gold")
    }

    func testAChangeWithoutAnAdvertisementIsNoDiscovery() throws {
        var tree = makeTreeWithDevice()
        change(&tree, [("Connected", .bool(false)), ("ServicesResolved", .bool(false))])
        XCTAssertEqual(
            changes,
            [.deviceChanged(key(devicePath), [.isConnected, .areServicesResolved], isAdvertised: false)])
        XCTAssertFalse(try device(in: tree).isConnected)
    }

    func testValuesThatEndWithDiscoveryAreInvalidatedAndNoDiscovery() throws {
        var tree = makeTreeWithDevice()
        change(&tree, [], invalidated: ["RSSI", "TxPower"])
        XCTAssertEqual(changes, [.deviceChanged(key(devicePath), [.rssi, .txPower], isAdvertised: false)])
        XCTAssertNil(try device(in: tree).rssi)
        XCTAssertNil(try device(in: tree).txPower)
        XCTAssertFalse(try device(in: tree).fields.contains(.rssi))
    }

    func testAnRSSIOf127IsASightingWithoutAStrength() throws {
        var tree = makeTreeWithDevice()
        change(&tree, [("RSSI", .int16(127))])
        XCTAssertEqual(changes, [.deviceChanged(key(devicePath), .rssi, isAdvertised: true)])
        XCTAssertNil(try device(in: tree).rssi)
    }

    func testEveryOptionalPropertyCanGo() throws {
        var tree = makeTreeWithDevice()
        let optional = Device1.table.properties.filter(\.isOptional)
        change(&tree, [], invalidated: optional.map { "\($0.name)" })
        let device = try self.device(in: tree)
        XCTAssertEqual(device.fields.rawValue & optional.reduce(0) { $0 | $1.field }, 0)
        XCTAssertNil(device.name)
        XCTAssertNil(device.advertisingFlags)
        XCTAssertTrue(device.manufacturerData.isEmpty && device.serviceData.isEmpty && device.advertisingData.isEmpty)
    }

    func testPropertiesOfAnUnexpectedTypeAreIgnoredOneByOne() throws {
        for (name, _) in BlueZMessages.fullDevice {
            var tree = makeTreeWithDevice()
            let wrong: TestValue =
                ["Appearance", "RSSI"].contains(name) ? .string("x") : .uint16(7)
            let target: (String, TestValue) = name == "TxPower" ? ("RSSI", .int16(-33)) : ("TxPower", .int16(-33))
            change(&tree, [(name, wrong), target])

            let device = try self.device(in: tree)
            XCTAssertEqual(name == "TxPower" ? device.rssi : device.txPower, -33, name)
            XCTAssertEqual(device.name, "Heart of Gold")
            XCTAssertEqual(device.manufacturerData.dictionary.count, 2)
        }
    }

    func testUnknownPropertiesAndInterfacesChangeNothing() {
        var tree = makeTreeWithDevice()
        change(
            &tree,
            [
                ("WakeAllowed", .bool(true)), ("", .bool(true)), ("Class", .uint32(7)), ("Icon", .string("phone")),
                ("Blocked", .bool(true)), ("Modalias", .string("bluetooth:v004CpD001")),
            ])
        XCTAssertEqual(changes, [])

        apply(
            BlueZMessages.propertiesChanged(devicePath, "org.bluez.MediaControl1", [("Percentage", .byte(9))]),
            to: &tree)
        XCTAssertEqual(changes, [])
    }

    func testUUIDsThatAreNoneAreLeftOut() throws {
        var tree = makeTreeWithDevice()
        change(&tree, [("UUIDs", .strings(["180f", "nonsense", "0000180d-0000-1000-8000-00805f9b34fb"]))])
        XCTAssertEqual(try device(in: tree).uuids, [CBUUID(string: "180F"), CBUUID(string: "180D")])
    }

    func testASignalOfAnUnknownDeviceIsPassedOver() {
        var tree = makeTree()
        changes.removeAll()
        change(&tree, [("RSSI", .int16(-40))])
        XCTAssertEqual(changes, [])
    }

    func testAMessageOfAnotherFormIsPassedOver() {
        var tree = makeTreeWithDevice()
        for member in ["PropertiesChanged", "InterfacesAdded", "InterfacesRemoved"] {
            for interface in ["org.freedesktop.DBus.Properties", "org.freedesktop.DBus.ObjectManager"] {
                apply(.signal(path: devicePath, interface: interface, member: member), to: &tree)
                apply(.signal(path: devicePath, interface: interface, member: member) { $0.uint32(7) }, to: &tree)
                apply(
                    .signal(path: devicePath, interface: interface, member: member) {
                        $0.string("org.bluez.Device1")
                        $0.string("and no dictionary")
                    }, to: &tree)
            }
        }
        XCTAssertEqual(changes, [])
    }

    func testAnAdapterThatIsSwitchedOffSaysSo() throws {
        var tree = makeTree()
        changes.removeAll()
        apply(
            BlueZMessages.propertiesChanged(
                BlueZMessages.adapterPath, "org.bluez.Adapter1",
                [("Powered", .bool(false)), ("Discovering", .bool(false)), ("PowerState", .string("off-blocked"))]),
            to: &tree)
        let hci0 = try XCTUnwrap(hci0)
        // That there is a PowerState is news as well.
        XCTAssertEqual(
            changes,
            [
                .adapterChanged(hci0, [.isPowered, .isDiscovering, .powerState]),
                .adapterChanged(hci0, .capabilities),
            ])
        XCTAssertEqual(tree[adapter: hci0]?.isPowered, false)
        XCTAssertEqual(tree[adapter: hci0]?.powerState, .blocked)
    }

    // MARK: Names

    func testAnotherAliasIsReported() throws {
        var tree = makeTreeWithDevice()
        change(&tree, [("Alias", .string("BlueZ 5.66"))])
        XCTAssertEqual(changes, [.deviceChanged(key(devicePath), .alias, isAdvertised: false)])
        XCTAssertEqual(try device(in: tree).name, "Heart of Gold")
    }

    func testADeviceWithoutAnAddressHasThatOfItsPath() throws {
        let tree = makeTreeWithDevice([("Address", .uint16(7)), ("RSSI", .int16(-50))])
        XCTAssertEqual(try device(in: tree).address.description, "C0:26:DF:12:34:56")
        XCTAssertEqual(try device(in: tree).rssi, -50)
    }

    // MARK: Coming and going

    func testADeviceComesWithItsFirstAdvertisement() throws {
        var tree = makeTree()
        changes.removeAll()
        apply(
            BlueZMessages.interfacesAdded(
                devicePath,
                [
                    ("org.freedesktop.DBus.Introspectable", []), ("org.bluez.Device1", BlueZMessages.fullDevice),
                    ("org.freedesktop.DBus.Properties", []),
                ]), to: &tree)
        XCTAssertEqual(changes, [.deviceAdded(key(devicePath), isAdvertised: true)])
    }

    func testARemovedDeviceCanBeReadUntilTheSweepAndItsPlaceIsUsedAgain() throws {
        let device = key(devicePath)
        var tree = makeTreeWithDevice()
        apply(BlueZMessages.interfacesRemoved(devicePath, ["org.bluez.Device1"]), to: &tree)

        XCTAssertEqual(changes, [.deviceRemoved(device)])
        XCTAssertEqual(tree.read(device) { $0.name }, "Heart of Gold")
        XCTAssertNil(tree[device])
        XCTAssertFalse(tree.contains(device))
        XCTAssertEqual(tree.deviceCount, 0)
        tree.sweep()
        XCTAssertNil(tree.read(device) { $0.address })

        apply(BlueZMessages.interfacesAdded(devicePath, [("org.bluez.Device1", [])]), to: &tree)
        XCTAssertEqual(tree.devices.count, 1)
        XCTAssertNil(try self.device(in: tree).name)
    }

    func testADeviceThatReturnsBeforeTheSweepStays() throws {
        var tree = makeTreeWithDevice()
        apply(BlueZMessages.interfacesRemoved(devicePath, ["org.bluez.Device1"]), to: &tree)
        apply(BlueZMessages.interfacesAdded(devicePath, [("org.bluez.Device1", [("Name", .string("x"))])]), to: &tree)
        tree.sweep()
        XCTAssertEqual(try device(in: tree).name, "x")
        XCTAssertEqual(tree.deviceCount, 1)
        XCTAssertEqual(tree.devices.count, 1)
    }

    func testLosingAnotherInterfaceIsNotLosingTheDevice() {
        var tree = makeTreeWithDevice()
        apply(BlueZMessages.interfacesRemoved(devicePath, ["org.bluez.MediaControl1"]), to: &tree)
        XCTAssertEqual(changes, [])
        XCTAssertEqual(tree.deviceCount, 1)
    }

    func testAnAdapterTakesItsDevicesAlong() throws {
        let other: ObjectPath = "/org/bluez/hci1/dev_C0_26_DF_12_34_56"
        var tree = makeTree([(devicePath, BlueZMessages.fullDevice), (other, [])])
        apply(BlueZMessages.interfacesAdded("/org/bluez/hci1", BlueZMessages.adapter()), to: &tree)
        changes.removeAll()

        apply(BlueZMessages.interfacesRemoved("/org/bluez/hci0", ["org.bluez.Adapter1"]), to: &tree)

        XCTAssertEqual(changes, [.deviceRemoved(key(devicePath)), .adapterRemoved(try XCTUnwrap(hci0))])
        XCTAssertTrue(tree.contains(key(other)))
    }

    func testObjectsWithPathsOfAnotherFormArePassedOver() {
        var tree = ObjectTree()
        tree.load(
            BlueZMessages.managedObjects([
                ("/test/radio", BlueZMessages.adapter()),
                ("/test/radio/thing", [("org.bluez.Device1", [("Address", .string("C0:26:DF:12:34:56"))])]),
            ]), into: &changes)
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
        XCTAssertLessThanOrEqual(MemoryLayout<ObjectTree.DeviceEntry>.stride, 176)
    }

    func testDevicesThatComeAndGoForWeeksTakeNoMorePlaces() {
        var tree = makeTree()
        for index in 0..<20_000 as Range<Int> {
            let address = String(format: "%02X_%02X_%02X", index >> 16 & 255, index >> 8 & 255, index & 255)
            guard let path = ObjectPath(validating: "/org/bluez/hci0/dev_C0_00_00_\(address)") else { return }
            apply(BlueZMessages.interfacesAdded(path, [("org.bluez.Device1", [])]), to: &tree)
            apply(BlueZMessages.interfacesRemoved(path, ["org.bluez.Device1"]), to: &tree)
            tree.sweep()
            changes.removeAll()
        }
        XCTAssertEqual(tree.devices.count, 1)
        XCTAssertEqual(tree.deviceCount, 0)
    }
}
