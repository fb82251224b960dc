import BlueCapGATT
import XCTest

private enum Switch: UInt8, CaseIterable, RawDeserializable, StringDeserializable, CharacteristicConfigurable {
    case off = 0
    case on = 7
    static let uuid = "FFF1"
    static let name = "Switch"
    static let stringValues = ["Off", "On"]
    static let properties: CBCharacteristicProperties = [.read, .indicate]
    static let initialValue: Data? = SerDe.serialize(Switch.on)
}

private struct Flags: OptionSet, RawDeserializable, StringDeserializable, CharacteristicConfigurable {
    let rawValue: UInt16
    static let uuid = "FFF2"
    static let name = "Flags"
    static let stringValues = ["one", "two"]
}

private enum Label: CharacteristicConfigurable {
    static let uuid = "FFF3"
    static let name = "Label"
}

private enum Lamp: ServiceConfigurable {
    static let uuid = "FFF0"
    static let name = "Lamp"
    static let tag = "House"
}

final class CharacteristicProfileTests: XCTestCase {
    func testAPlainProfileHasTheDocumentedDefaults() {
        let profile = CharacteristicProfile(uuid: "FFF9", name: "Nine")

        XCTAssertEqual(profile.uuid, CBUUID(string: "FFF9"))
        XCTAssertEqual(profile.permissions, [.readable, .writeable])
        XCTAssertEqual(profile.properties, [.read, .write, .notify])
        XCTAssertNil(profile.initialValue)
        XCTAssertEqual(profile.stringValues, [])
        XCTAssertTrue(profile.propertyEnabled(.notify))
        XCTAssertFalse(profile.propertyEnabled(.indicate))
        XCTAssertTrue(profile.permissionEnabled(.readable))
        XCTAssertFalse(profile.permissionEnabled(.readEncryptionRequired))
    }

    func testTheStringFormIsHexadecimalByItself() {
        let profile = CharacteristicProfile(uuid: "FFF9", name: "Nine")

        XCTAssertEqual(profile.stringValue(Data([0x01, 0xAB])), ["Nine": "01ab"])
        XCTAssertEqual(profile.stringValue(Data()), ["Nine": ""])
        XCTAssertEqual(profile.data(fromString: ["Nine": "01aB"]), Data([0x01, 0xAB]))
        XCTAssertEqual(profile.data(fromString: ["Nine": ""]), Data())
        for wrong in ["0", "0g", "0x01", "é", "01 02"] { XCTAssertNil(profile.data(fromString: ["Nine": wrong])) }
        XCTAssertNil(profile.data(fromString: ["Ten": "01"]))
        XCTAssertEqual(CharacteristicProfile(uuid: "FFF9").stringValue(Data([1])), ["Unknown": "01"])
    }

    func testAProfileIsReadOffItsType() {
        let profile = RawCharacteristicProfile<Switch>()

        XCTAssertEqual(profile.uuid, CBUUID(string: "FFF1"))
        XCTAssertEqual(profile.name, "Switch")
        XCTAssertEqual(profile.permissions, [.readable, .writeable])
        XCTAssertEqual(profile.properties, [.read, .indicate])
        XCTAssertEqual(profile.initialValue, Data([7]))
        XCTAssertEqual(profile.stringValues, ["Off", "On"])
    }

    func testCasesAreReadAndTypedByTheirTexts() {
        let profile: CharacteristicProfile = RawCharacteristicProfile<Switch>()

        XCTAssertEqual(profile.stringValue(Data([7])), ["Switch": "On"])
        XCTAssertEqual(profile.data(fromString: ["Switch": "on"]), Data([7]))
        XCTAssertNil(profile.stringValue(Data([1])))
        XCTAssertNil(profile.data(fromString: ["Switch": "dim"]))
        XCTAssertNil(profile.data(fromString: [:]))
    }

    func testFlagsAreReadAndTypedByTheirNames() {
        let profile = RawCharacteristicProfile<Flags>()
        let table: [(Data, String)] = [
            (Data([0, 0]), "none"), (Data([1, 0]), "one"), (Data([3, 0]), "one, two"),
            (Data([2, 0x80]), "two, bit 15"),
        ]
        for (data, text) in table {
            XCTAssertEqual(profile.stringValue(data), ["Flags": text])
            XCTAssertEqual(profile.data(fromString: ["Flags": text]), data)
        }
        XCTAssertNil(profile.data(fromString: ["Flags": "three"]))
    }

    func testTextIsUTF8() {
        let profile = StringCharacteristicProfile<Label>()

        XCTAssertEqual(profile.stringValue(Data("Grüße".utf8)), ["Label": "Grüße"])
        XCTAssertEqual(profile.data(fromString: ["Label": "Grüße"]), Data("Grüße".utf8))
        XCTAssertNil(profile.stringValue(Data([0xC3])))
        XCTAssertNil(profile.data(fromString: [:]))
    }

    func testZerosThatFillUpATextAreNotAPartOfIt() {
        let profile = StringCharacteristicProfile<Label>()

        XCTAssertEqual(profile.stringValue(Data("Model 7".utf8) + Data(count: 4)), ["Label": "Model 7"])
        XCTAssertEqual(profile.stringValue(Data(count: 4)), ["Label": ""])
        XCTAssertEqual(profile.stringValue(Data("a\0b".utf8)), ["Label": "a\0b"])
    }
}

final class ServiceProfileTests: XCTestCase {
    func testCharacteristicsAreKeptInTheirOrderAndOnceEach() {
        let profile = ConfiguredServiceProfile<Lamp>()
        profile.addCharacteristic(CharacteristicProfile(uuid: "FFF9", name: "Nine"))
        profile.addCharacteristic(RawCharacteristicProfile<Switch>())
        profile.addCharacteristic(CharacteristicProfile(uuid: "0000FFF9", name: "Ninth"))

        XCTAssertEqual(profile.characteristics.map(\.name), ["Ninth", "Switch"])
        XCTAssertEqual(profile.characteristic(CBUUID(string: "FFF1"))?.name, "Switch")
        XCTAssertNil(profile.characteristic(CBUUID(string: "FFFA")))
    }

    func testAManagerFindsProfilesByUUIDAndTag() {
        let manager = ProfileManager()
        manager.addService(ServiceProfile(uuid: "FFE0", name: "Other"))
        manager.addService(ConfiguredServiceProfile<Lamp>())
        manager.addService(ServiceProfile(uuid: "FFE1", name: "Heater", tag: "House"))

        XCTAssertEqual(manager.services.count, 3)
        XCTAssertEqual(manager.services[CBUUID(string: "FFF0")]?.name, "Lamp")
        XCTAssertEqual(manager.service(CBUUID(string: "FFE0"))?.tag, "Miscellaneous")
        XCTAssertEqual(manager.service(tag: "House").map(\.name), ["Heater", "Lamp"])
        XCTAssertEqual(manager.service(tag: "Garden").count, 0)
    }
}
