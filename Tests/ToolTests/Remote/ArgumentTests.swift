import BlueCapKit
import XCTest

@testable import bluecap

final class AttributeArgumentTests: XCTestCase {
    private func handle(
        _ text: String, _ wanted: CBCharacteristicProperties = [.read, .write, .writeWithoutResponse, .notify]
    ) throws -> UInt32 {
        try XCTUnwrap(AttributeArgument(argument: text), text).find(in: TreeSamples.strap, usableFor: wanted).handle
    }

    private func refusal(_ text: String, _ wanted: CBCharacteristicProperties = [.read]) -> String {
        do { return "found \(try handle(text, wanted))" } catch { return "\(error)" }
    }

    func testACharacteristicIsNamedByUUIDNameOrHandle() throws {
        for text in [
            "2A37", "2a37", "0x2A37", "00002a37-0000-1000-8000-00805f9b34fb", "Heart Rate Measurement",
            "heart rate measurement", "@0029", "@29", "180D/2A37", "Heart Rate/2A37", "180d/Heart Rate Measurement",
            "@0028/2A37", "@0028/@0029", "@0x29",
            // The handle of its value.
            "@002a", "@0x2a", "180D/@002A",
        ] {
            XCTAssertEqual(try handle(text), 0x29, text)
        }
    }

    func testAnotherServicesCharacteristicIsNotMeant() {
        XCTAssertTrue(refusal("180D/2A19").hasPrefix("The peripheral has no characteristic \"180D/2A19\""))
    }

    func testAMisspeltCharacteristicIsAnsweredWithTheNearestName() {
        for text in ["Batery Level", "battery lvel", "Battery"] {
            XCTAssertTrue(refusal(text).hasSuffix(" Did you mean \"Battery Level\"?"), refusal(text))
        }
        let text = refusal("Heart Rate/Body Senser Location")
        XCTAssertTrue(text.hasSuffix(" Did you mean \"Heart Rate/Body Sensor Location\"?"), text)
        XCTAssertFalse(refusal("Glucose").contains("Did you mean"))
    }

    func testAnotherHandleIsNamedAsWhatItIs() {
        XCTAssertEqual(
            refusal("@0028"),
            "@0028 is the handle of a service, Heart Rate, and not of a characteristic: "
                + "`bluecap explore C0:5A:17:00:18:0D` lists those that it has.")
        XCTAssertEqual(
            refusal("@002b"),
            "@002b is the handle of a descriptor, Client Characteristic Configuration, and not of a characteristic: "
                + "that of its characteristic, Heart Rate Measurement, is @0029.")
        XCTAssertEqual(
            refusal("180F/@0029"),
            "@0029 is a characteristic of another service, Heart Rate: "
                + "`bluecap explore C0:5A:17:00:18:0D` lists those that it has.")
        XCTAssertEqual(
            refusal("@0033"),
            "The peripheral has no characteristic with the handle @0033: "
                + "`bluecap explore C0:5A:17:00:18:0D` lists those that it has.")
        // As gatttool spells them. One of four digits is a UUID.
        for text in ["0x29", "0x0029"] {
            XCTAssertTrue(refusal(text).contains("a handle begins with @, such as @\(text); "), refusal(text))
        }
    }

    /// BlueZ reports some values, such as that of Battery1, as other objects: their numbers are no handles.
    func testACharacteristicOutsideTheTableHasNoHandleOfAValue() throws {
        var tree = TreeSamples.strap
        tree.services[2].characteristics[0].handle = 0x1_0001
        let argument = try XCTUnwrap(AttributeArgument(argument: "@10001"))
        XCTAssertEqual(try argument.find(in: tree, usableFor: .read).handle, 0x1_0001)
        XCTAssertThrowsError(try XCTUnwrap(AttributeArgument(argument: "@10002")).find(in: tree, usableFor: .read))
    }

    func testADescriptorIsNamedByItsHandleOrAfterItsCharacteristic() throws {
        func label(_ text: String) throws -> String? {
            try XCTUnwrap(AttributeArgument(argument: text)).descriptor(in: TreeSamples.strap)?.label
        }
        let name = "Heart Rate Measurement/Client Characteristic Configuration"
        for text in ["@002b", "2A37/2902", "180D/2A37/2902", "Heart Rate/@0029/@2b", name, "2902"] {
            XCTAssertEqual(try label(text), name, text)
        }
        for text in ["@0029", "2A37", "180D/2A37", "2A37/2901", "2A38/2902", "180F/2902"] {
            XCTAssertNil(try label(text), text)
        }
    }

    func testSeveralOfOneNameAreListed() {
        let text = refusal("Battery Level")
        XCTAssertEqual(
            text,
            "\"Battery Level\" names 2 characteristics; use the handle of one: "
                + "@0041 (Battery/Battery Level; read, notify), @0044 (Battery/Battery Level; read).")
    }

    func testSeveralOfOneNameAreListedWithTheirDescriptions() throws {
        let argument = try XCTUnwrap(AttributeArgument(argument: "Battery Level"))
        let descriptions: [UInt32: String] = [0x44: "\"External\""]
        XCTAssertThrowsError(
            try argument.find(in: TreeSamples.strap, usableFor: .read, descriptions: descriptions)
        ) { error in
            XCTAssertTrue("\(error)".contains(#"@0044 (Battery/Battery Level; read; "External")"#), "\(error)")
        }
    }

    func testOfSeveralTheOneThatCanDoItIsMeant() throws {
        XCTAssertEqual(try handle("2A19", .notify), 0x41)
    }

    func testARefusedOperationNamesThePropertiesThatThereAre() {
        XCTAssertEqual(
            refusal("2A37"),
            "Heart Rate Measurement cannot be read: its properties are: notify. `bluecap notify` prints the values that it sends."
        )
        XCTAssertEqual(
            refusal("2A38", [.notify, .indicate]),
            "Body Sensor Location sends no values: its properties are: read. "
                + "`bluecap read` reads its value.")
        XCTAssertEqual(
            refusal("2A38", [.write, .writeWithoutResponse]),
            "Body Sensor Location cannot be written: its properties are: read.")
        XCTAssertEqual(
            refusal("2A39", .writeWithoutResponse),
            "Heart Rate Control Point cannot be written without response: omit --without-response.")
    }

    func testWhatCannotBeANameIsNoArgument() {
        for text in ["", "@", "@xyz", "@123456", "@-1"] { XCTAssertNil(AttributeArgument(argument: text), text) }
    }

    func testANameMayContainASlash() throws {
        var tree = TreeSamples.strap
        tree.services[2].characteristics[0].name = "In/Out"
        let found = try XCTUnwrap(AttributeArgument(argument: "in/out")).find(in: tree, usableFor: .read)
        XCTAssertEqual(found.handle, 0x51)
    }
}

final class PeripheralSearchTests: XCTestCase {
    private func search(_ text: String) throws -> PeripheralSearch {
        PeripheralSearch(for: try XCTUnwrap(PeripheralArgument(argument: text)), patience: 10)
    }

    private func candidate(_ last: UInt64, _ name: String?) -> PeripheralSearch.Candidate {
        .init(address: BluetoothAddress(rawValue: 0xC05A_1700_1800 + last), names: name.map { [$0] } ?? [])
    }

    private func failed(_ why: String) -> PeripheralSearch.Effect { .decided(.failure(ToolFailure(why))) }

    func testAnAddressIsFoundAtOnce() throws {
        for text in ["C0:5A:17:00:18:07", "c0:5a:17:00:18:07", "C0-5A-17-00-18-07"] {
            var search = try search(text)
            XCTAssertNil(search.discovered(candidate(1, text)))
            XCTAssertEqual(search.discovered(candidate(7, nil)), .decided(.success(candidate(7, nil))))
            XCTAssertNil(search.decide())
        }
    }

    func testANameIsFoundIfNoOtherPeripheralHasIt() throws {
        var search = try search("pulse strap")
        XCTAssertEqual(
            search.discovered(candidate(1, "Pulse Strap")), .wait(PeripheralSearch.waitForNamesakes))
        XCTAssertNil(search.discovered(candidate(1, "Pulse Strap")))
        XCTAssertNil(search.discovered(candidate(2, "Pulse Strap 2")))
        XCTAssertEqual(search.decide(), .decided(.success(candidate(1, "Pulse Strap"))))
    }

    func testABeginningGivesWayToTheWholeName() throws {
        var search = try search("Pulse")
        XCTAssertEqual(search.discovered(candidate(2, "Pulse 2")), .wait(PeripheralSearch.waitForBetter))
        XCTAssertEqual(search.discovered(candidate(1, "Pulse")), .wait(PeripheralSearch.waitForNamesakes))
        XCTAssertEqual(search.decide(), .decided(.success(candidate(1, "Pulse"))))
    }

    func testNamesakesAreListedAndNoneIsTaken() throws {
        var search = try search("Pulse")
        _ = search.discovered(candidate(1, "Pulse"))
        _ = search.discovered(candidate(2, "Pulse"))
        XCTAssertEqual(
            search.decide(),
            failed(
                "\"Pulse\" is the name of 2 peripherals; use the address of one: "
                    + "C0:5A:17:00:18:01 (Pulse), C0:5A:17:00:18:02 (Pulse)."))
    }

    func testANameThatComesLaterCounts() throws {
        var search = try search("Pulse")
        XCTAssertNil(search.discovered(candidate(1, nil)))
        XCTAssertEqual(search.discovered(candidate(1, "Pulse")), .wait(PeripheralSearch.waitForNamesakes))
    }

    func testEachOfItsNamesNamesAPeripheral() throws {
        for text in ["Kitchen", "blueZ 5.66"] {
            var search = try search(text)
            var candidate = candidate(1, "BlueZ 5.66")
            candidate.names.append("Kitchen")
            XCTAssertEqual(search.discovered(candidate), .wait(PeripheralSearch.waitForNamesakes), text)
            XCTAssertEqual(search.decide(), .decided(.success(candidate)), text)
        }
    }

    func testASearchWithoutAMatchFailsWhenTheTimeIsOver() throws {
        var search = try search("Pulse")
        _ = search.discovered(candidate(1, "Kitchen"))
        XCTAssertEqual(
            search.decide(),
            failed(
                "No peripheral named \"Pulse\" was found in 10 s, but 1 other: `bluecap scan` lists what is in range."))
        var address = try self.search("C0:5A:17:00:18:07")
        XCTAssertEqual(
            address.decide(),
            failed(
                "No peripheral with the address C0:5A:17:00:18:07 was found in 10 s, nor any other: "
                    + "`bluecap scan` lists what is in range."))
    }
}

final class KnownNamesTests: XCTestCase {
    private func address(_ last: UInt64) -> BluetoothAddress { BluetoothAddress(rawValue: 0xC05A_1700_1800 + last) }

    func testTheNamesOfADeviceAreKeptOnceEach() {
        var names = KnownNames()
        names.add(["Kitchen", "BlueZ 5.66"], of: address(1))
        let before = names
        names.add(["BlueZ 5.66", "Kitchen"], of: address(1))
        XCTAssertEqual(names, before)
        XCTAssertEqual(names[address(1)], ["Kitchen", "BlueZ 5.66"])
        XCTAssertEqual(names[address(2)], [])
        names.remove(address(1))
        XCTAssertEqual(names, KnownNames())
    }

    func testTheNewestAreKept() {
        var names = KnownNames()
        for number in 0..<200 {
            names.add(["a", "b"], of: address(UInt64(number)))
            names.add(["name \(number)"], of: address(0))
        }
        XCTAssertEqual(names.devices.count, 100)
        XCTAssertEqual(names[address(0)].count, 4)
        XCTAssertEqual(names[address(0)].last, "name 199")
    }
}
