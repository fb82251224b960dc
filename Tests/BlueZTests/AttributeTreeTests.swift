import BlueCapDBus
import BlueCapGATT
import TestSupport
import XCTest

@testable import BlueCapBlueZ

final class AttributeTreeTests: TreeCase {
    override func setUp() { load(BlueZMessages.connectedDevice) }

    private func key(_ handle: UInt16) -> AttributeKey { AttributeKey(device: deviceKey, handle: handle) }

    // MARK: Values

    func testAttributesOfAnyOrderAreReportedAfterTheirContainers() {
        XCTAssertEqual(
            changes.suffix(3),
            [
                .attributeAdded(key(0x28), .service), .attributeAdded(key(0x2A), .characteristic),
                .attributeAdded(key(0x2C), .descriptor),
            ])
        XCTAssertEqual(tree.services(of: deviceKey), [key(0x28)])
        XCTAssertEqual(tree.characteristics(of: key(0x28)), [key(0x2A)])
        XCTAssertEqual(tree.descriptors(of: key(0x2A)), [key(0x2C)])
        XCTAssertEqual(tree.attributeCount, 3)
    }

    func testAServiceHasItsValues() throws {
        let service = try XCTUnwrap(tree.attribute(key(0x28)))
        XCTAssertEqual(service.uuid, CBUUID(string: "180D"))
        XCTAssertTrue(service.isPrimary)
        XCTAssertEqual(service.includes, [0x10, 0xFF])
    }

    func testACharacteristicHasItsValues() throws {
        let characteristic = try XCTUnwrap(tree.attribute(key(0x2A)))
        XCTAssertEqual(characteristic.uuid, CBUUID(string: "2A37"))
        XCTAssertEqual(characteristic.service, 0x28)
        XCTAssertEqual(characteristic.flags, [.read, .notify])
        XCTAssertEqual(characteristic.properties, [.read, .notify])
        XCTAssertEqual(characteristic.value, Data([1, 2]))
        XCTAssertEqual(characteristic.mtu, 517)
        XCTAssertTrue(characteristic.isNotifying && characteristic.isNotifyAcquired && characteristic.isWriteAcquired)
    }

    func testADescriptorHasItsValues() throws {
        let descriptor = try XCTUnwrap(tree.attribute(key(0x2C)))
        XCTAssertEqual(descriptor.uuid, CBUUID(string: "2902"))
        XCTAssertEqual(descriptor.service, 0x28)
        XCTAssertEqual(descriptor.characteristic, 0x2A)
        XCTAssertEqual(descriptor.flags, [.read, .write])
        XCTAssertEqual(descriptor.value, Data())
    }

    func testEachDeclaredPropertyHasAValueInThoseTests() {
        func check<Owner>(_ table: PropertyTable<Owner>, _ interfaces: TestInterfaces) {
            let values = interfaces.last?.1 ?? []
            for property in table.properties {
                let value = values.first { $0.0 == "\(property.name)" }?.1
                XCTAssertEqual(value?.signature, "\(property.signature)", "\(property.name)")
            }
        }
        check(AttributeKind.service.table, BlueZMessages.gattService())
        check(AttributeKind.characteristic.table, BlueZMessages.gattCharacteristic())
        check(AttributeKind.descriptor.table, BlueZMessages.gattDescriptor())
    }

    func testWhatIsReadAsOneKindIsNoOther() {
        XCTAssertEqual(tree.attribute(key(0x2A))?.kind, .characteristic)
        XCTAssertEqual(tree.attribute(key(0x28))?.kind, .service)
        XCTAssertNil(tree.attribute(key(0x99)))
        XCTAssertNil(tree.value(of: key(0x28)))
        XCTAssertEqual(tree.characteristics(of: key(0x2A)), [])
    }

    func testEveryFlagHasItsNameAndItsMeaning() {
        for bit in 0..<23 as Range<UInt32> {
            let flag = GattFlags(rawValue: 1 << bit)
            var text = flag.texts.first ?? ""
            XCTAssertEqual(flag.texts.count, 1)
            XCTAssertEqual(text.withUTF8 { GattFlags(name: $0) }, flag)
        }
        XCTAssertEqual(
            GattFlags([.broadcast, .writeWithoutResponse, .write, .indicate, .authenticatedSignedWrites]).properties,
            [.broadcast, .writeWithoutResponse, .write, .indicate, .authenticatedSignedWrites])
        XCTAssertEqual(GattFlags.reliableWrite.properties, .extendedProperties)
        XCTAssertEqual(GattFlags.secureNotify.properties, .notifyEncryptionRequired)
    }

    // MARK: Changes

    func testEachValueIsAChangeOfItsOwnEvenTheSameAgain() {
        for value in [[7], [7], [], [8, 9]] as [[UInt8]] {
            apply(BlueZMessages.valueChanged(value))
            XCTAssertEqual(changes, [.attributeChanged(key(0x2A), .value)])
            XCTAssertEqual(tree.value(of: key(0x2A)), Data(value))
            XCTAssertEqual(tree.attribute(key(0x2A))?.value, Data(value))
        }
    }

    func testOtherPropertiesStayWhenTheValueChanges() throws {
        apply(BlueZMessages.valueChanged([7]))
        let characteristic = try XCTUnwrap(tree.attribute(key(0x2A)))
        XCTAssertEqual(characteristic.mtu, 517)
        XCTAssertTrue(characteristic.isNotifying)
    }

    func testTheSizeOfPacketsIsThatOfTheLink() {
        func connected(_ isConnected: Bool) {
            apply(
                BlueZMessages.propertiesChanged(
                    BlueZMessages.device, "org.bluez.Device1", [("Connected", .bool(isConnected))]))
        }
        connected(false)
        connected(true)
        XCTAssertNil(tree.attribute(key(0x2A))?.mtu, "No signal names that of the new link.")
        change { $0.mtuRead(23, of: deviceKey, into: &$1) }
        XCTAssertEqual(changes, [.attributeChanged(key(0x2A), .mtu)])
        XCTAssertEqual(tree.attribute(key(0x2A))?.mtu, 23)

        // The signal of the second link is missing: the reply to a read is the first report of it.
        connected(false)
        change { $0.connectionRead(true, of: deviceKey, into: &$1) }
        XCTAssertNil(tree.attribute(key(0x2A))?.mtu)
    }

    func testWhatIsInvalidatedHasNoValue() {
        apply(
            BlueZMessages.propertiesChanged(
                BlueZMessages.characteristic, "org.bluez.GattCharacteristic1", [("Notifying", .bool(false))],
                invalidated: ["Value", "MTU", "NotifyAcquired"]))
        XCTAssertEqual(
            changes, [.attributeChanged(key(0x2A), [.isNotifying, .value, .mtu, .isNotifyAcquired])])
        let characteristic = tree.attribute(key(0x2A))
        XCTAssertNil(characteristic?.value)
        XCTAssertNil(characteristic?.mtu)
        XCTAssertEqual(characteristic?.isNotifying, false)
        XCTAssertEqual(characteristic?.isNotifyAcquired, false)
        XCTAssertEqual(characteristic?.isWriteAcquired, true)
    }

    func testAPropertyOfAnUnexpectedTypeIsIgnoredAndTheOthersAreNot() {
        apply(
            BlueZMessages.propertiesChanged(
                BlueZMessages.characteristic, "org.bluez.GattCharacteristic1",
                [("Value", .string("seven")), ("Flags", .bytes([1])), ("MTU", .uint16(23))]))
        XCTAssertEqual(changes, [.attributeChanged(key(0x2A), .mtu)])
        XCTAssertEqual(tree.value(of: key(0x2A)), Data([1, 2]))
    }

    func testSignalsForOthersChangeNothing() {
        let otherPaths: [ObjectPath] = [
            "/org/bluez/hci0/dev_C0_26_DF_12_34_57/service0028/char002a", BlueZMessages.service.appending("char002b"),
            BlueZMessages.device, BlueZMessages.service, "/", "/org/bluez/hci0", "/service0028/char002a",
        ]
        for path in otherPaths {
            apply(BlueZMessages.valueChanged([7], of: path))
            XCTAssertEqual(changes, [], "\(path)")
        }
    }

    // MARK: Coming and going

    func testAnAttributeThatComesLateTakesItsPlaceInTheOrderOfHandles() {
        apply(
            BlueZMessages.interfacesAdded(
                BlueZMessages.service.appending("char0029"), BlueZMessages.gattCharacteristic()))
        XCTAssertEqual(changes, [.attributeAdded(key(0x29), .characteristic)])
        XCTAssertEqual(tree.characteristics(of: key(0x28)), [key(0x29), key(0x2A)])
    }

    func testAnAttributeThatIsAddedAgainChanges() {
        apply(
            BlueZMessages.interfacesAdded(
                BlueZMessages.characteristic, [("org.bluez.GattCharacteristic1", [("Value", .bytes([9]))])]))
        guard case .attributeChanged(key(0x2A), let fields)? = changes.first, changes.count == 1 else {
            return XCTFail("\(changes)")
        }
        XCTAssertTrue(fields.isSuperset(of: [.uuid, .flags, .value, .isNotifying]))
        XCTAssertEqual(tree.attribute(key(0x2A))?.flags, [])
        XCTAssertEqual(tree.value(of: key(0x2A)), Data([9]))
    }

    func testAHandleThatBecomesAnotherKindIsRemovedAndAdded() {
        apply(
            BlueZMessages.interfacesAdded(
                BlueZMessages.device.appending("service002a"), BlueZMessages.gattService()))
        XCTAssertEqual(
            changes, [.attributeRemoved(key(0x2A), .characteristic), .attributeAdded(key(0x2A), .service)])
        XCTAssertEqual(tree.services(of: deviceKey), [key(0x28), key(0x2A)])
    }

    func testARemovedAttributeCannotBeRead() {
        apply(BlueZMessages.interfacesRemoved(BlueZMessages.descriptor, ["org.bluez.GattDescriptor1"]))
        XCTAssertEqual(changes, [.attributeRemoved(key(0x2C), .descriptor)])
        XCTAssertNil(tree.attribute(key(0x2C)))
        apply(BlueZMessages.interfacesRemoved(BlueZMessages.descriptor, ["org.bluez.GattDescriptor1"]))
        XCTAssertEqual(changes, [])
    }

    func testADeviceTakesItsAttributesAlongTheInnermostFirst() throws {
        apply(BlueZMessages.interfacesRemoved(BlueZMessages.device, ["org.bluez.Device1"]))
        XCTAssertEqual(
            changes,
            [
                .attributeRemoved(key(0x2C), .descriptor), .attributeRemoved(key(0x2A), .characteristic),
                .attributeRemoved(key(0x28), .service), .deviceRemoved(deviceKey),
            ])
        XCTAssertEqual(tree.attributeCount, 0)
    }

    func testTheDaemonsEndAndTheAdaptersTakeThemToo() {
        change { $0.clear(into: &$1) }
        XCTAssertEqual(changes.count, 5)
        XCTAssertEqual(tree.attributeCount, 0)

        setUp()
        apply(BlueZMessages.interfacesRemoved(BlueZMessages.adapterPath, ["org.bluez.Adapter1"]))
        XCTAssertEqual(changes.count, 5)
        XCTAssertEqual(tree.attributeCount, 0)
    }

    func testLoadingAgainRemovesWhatIsNotNamedAnyMore() {
        let objects = BlueZMessages.connectedDevice.filter { $0.0 != BlueZMessages.descriptor }
        change { $0.load(BlueZMessages.managedObjects(objects), into: &$1) }
        XCTAssertTrue(changes.contains(.attributeRemoved(key(0x2C), .descriptor)))
        XCTAssertEqual(tree.attributes(of: deviceKey).map(\.handle), [0x28, 0x2A])
    }

    func testLoadingAgainReportsNoUnchangedAttribute() throws {
        change { $0.load(BlueZMessages.managedObjects(BlueZMessages.connectedDevice), into: &$1) }
        XCTAssertEqual(
            changes.filter { if case .adapterChanged = $0 { false } else { true } }, [],
            "The load reports neither a notification nor a received advertisement.")
    }

    func testAnotherDeviceInTheSamePlaceHasNoneOfThem() {
        apply(BlueZMessages.interfacesRemoved(BlueZMessages.device, ["org.bluez.Device1"]))
        tree.sweep()
        let other: ObjectPath = "/org/bluez/hci0/dev_C0_26_DF_12_34_99"
        apply(BlueZMessages.interfacesAdded(other, [("org.bluez.Device1", [])]))
        XCTAssertEqual(tree.services(of: ObjectKey(other)), [])
    }

    // MARK: Paths

    func testAPathIsWrittenAsItWasRead() {
        for (handle, path) in [
            (0x28, BlueZMessages.service), (0x2A, BlueZMessages.characteristic), (0x2C, BlueZMessages.descriptor),
        ] as [(UInt16, ObjectPath)] {
            XCTAssertEqual(tree.path(of: key(handle)), path.rawValue)
            var text = path.rawValue
            XCTAssertEqual(text.withUTF8 { AttributePath($0)?.key }, key(handle))
        }
        XCTAssertNil(tree.path(of: key(0x99)))
    }

    func testPathsOfAnotherFormArePassedOver() {
        let paths = [
            "service28", "service002A", "service00028", "char002a", "service0028/desc002c", "service0028/char002a/x",
            "service0028/char002a/desc002c/desc002d", "my_service", "service0028x",
        ]
        for path in paths {
            guard let path = ObjectPath(validating: "\(BlueZMessages.device)/\(path)") else { return XCTFail(path) }
            apply(BlueZMessages.interfacesAdded(path, BlueZMessages.gattCharacteristic()))
            XCTAssertEqual(changes, [], "\(path)")
        }
        XCTAssertEqual(tree.deviceCount, 1)
    }

    // MARK: Size

    func testAttributesThatComeAndGoForWeeksTakeNoMorePlaces() {
        let path = BlueZMessages.service.appending("char0100")
        for _ in 0..<5_000 {
            apply(BlueZMessages.interfacesAdded(path, BlueZMessages.gattCharacteristic()))
            apply(BlueZMessages.interfacesRemoved(path, ["org.bluez.GattCharacteristic1"]))
        }
        XCTAssertEqual(tree.attributeCount, 3)
    }
}

extension ObjectTree {
    fileprivate func services(of device: ObjectKey) -> [AttributeKey] {
        keys(of: device) { $0.kind == .service }
    }

    fileprivate func characteristics(of service: AttributeKey) -> [AttributeKey] {
        keys(of: service.device) { $0.kind == .characteristic && $0.service == service.handle }
    }

    fileprivate func descriptors(of characteristic: AttributeKey) -> [AttributeKey] {
        keys(of: characteristic.device) { $0.kind == .descriptor && $0.characteristic == characteristic.handle }
    }

    private func keys(of device: ObjectKey, where isIncluded: (GattAttribute) -> Bool) -> [AttributeKey] {
        var keys: [AttributeKey] = []
        for attribute in attributes(of: device) where isIncluded(attribute) {
            keys.append(AttributeKey(device: device, handle: attribute.handle))
        }
        return keys
    }
}
