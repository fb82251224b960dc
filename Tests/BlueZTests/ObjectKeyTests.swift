import BlueCapGATT
import TestBasics
import XCTest

@testable import BlueCapBlueZ

final class ObjectKeyTests: RandomTestCase {
    private func key(_ path: String) -> ObjectKey? {
        var path = path
        return path.withUTF8 { ObjectKey(path: $0) }
    }

    func testPathsOfBlueZsFormBecomeNumbersAndPathsAgain() {
        for path in ["/org/bluez/hci0", "/org/bluez/hci12", "/org/bluez/hci3/dev_C0_26_DF_12_34_5A"] {
            XCTAssertEqual(key(path)?.path, path)
        }
    }

    func testADeviceKnowsItsAdapterAndAddress() {
        let device = key("/org/bluez/hci3/dev_C0_26_DF_12_34_5A")
        XCTAssertEqual(device?.adapter, ObjectKey(adapter: 3))
        XCTAssertEqual(device?.address?.description, "C0:26:DF:12:34:5A")
        XCTAssertEqual(device?.isDevice, true)
        XCTAssertEqual(key("/org/bluez/hci3")?.isDevice, false)
    }

    func testOtherPathsHaveNoKeyOfTheirOwn() {
        let others = [
            "", "/", "/org/bluez", "/org/bluez/hci", "/org/bluez/hci00", "/org/bluez/hci01", "/org/bluez/hci99999",
            "/org/bluez/hcix", "/org/bluez/hci0/", "/org/bluez/hci0/dev_c0_26_df_12_34_5a",
            "/org/bluez/hci0/dev_C0_26_DF_12_34_5", "/org/bluez/hci0/dev_C0_26_DF_12_34_5A0",
            "/org/bluez/hci0/dev_C0_26_DF_12_34_5A/service0001", "/org/bluez/hci0/dev_C0026_DF_12_34_5A",
        ]
        for path in others { XCTAssertNil(key(path), path) }
    }

    func testTheTableFindsWhatIsInItAndNothingElse() {
        var table = SlotTable()
        var keys: [UInt64] = []
        var reference: [ObjectKey: Int] = [:]
        var random = TestRandom(self)
        for step in 0..<20_000 {
            guard
                let key = key(
                    String(format: "/org/bluez/hci0/dev_C0_00_00_00_%02X_%02X", random.next() % 4, random.next() % 256))
            else { return XCTFail("no key") }
            if random.next() % 3 == 0 {
                table.remove(key.rawValue) { keys[$0] }
                reference[key] = nil
            } else {
                table.insert(key.rawValue, slot: step) { keys[$0] }
                reference[key] = step
            }
            keys.append(key.rawValue)
        }
        XCTAssertEqual(table.count, reference.count)
        for low in 0..<1024 {
            guard let key = key(String(format: "/org/bluez/hci0/dev_C0_00_00_00_%02X_%02X", low >> 8, low & 255)) else {
                return XCTFail("no key")
            }
            XCTAssertEqual(table.slot(of: key.rawValue) { keys[$0] }, reference[key])
        }
    }
}

final class PropertyTableTests: XCTestCase {
    func testEveryPropertyIsFoundByItsNameAndByNoOther() {
        for (index, property) in Device1.table.properties.enumerated() {
            var name = "\(property.name)"
            XCTAssertEqual(name.withUTF8 { Device1.table.index(of: $0) }, index)
            var longer = name + "s"
            XCTAssertNil(longer.withUTF8 { Device1.table.index(of: $0) })
        }
        var unknown = "WakeAllowed"
        XCTAssertNil(unknown.withUTF8 { Device1.table.index(of: $0) })
    }

    func testEveryPropertyHasABitOfItsOwn() {
        for fields in [Device1.table.properties.map(\.field), Adapter1.table.properties.map(\.field)] {
            XCTAssertEqual(Set(fields).count, fields.count)
        }
    }
}
