import BlueCapKit
import Bluejay
import XCTest

/// Bytes to values and back.
final class ValueTests: XCTestCase {
    private let data = Data([0x01, 0x02, 0x03, 0x04, 0x80, 0xFF, 0x00, 0x7F])

    func testIntegersHaveTheirLowestByteFirst() throws {
        XCTAssertEqual(UInt16(0x0102).toBluetoothData(), Data([0x02, 0x01]))
        XCTAssertEqual(UInt16(0x0102).bigEndian.toBluetoothData(), Data([0x01, 0x02]))
        XCTAssertEqual(Int32(-2).toBluetoothData(), Data([0xFE, 0xFF, 0xFF, 0xFF]))
        XCTAssertEqual(try UInt32(bluetoothData: data), 0x0403_0201)
        XCTAssertEqual(try Int64(bluetoothData: data), 0x7F00_FF80_0403_0201)
        XCTAssertEqual(try Int8(bluetoothData: Data([0x80])), -128)
    }

    func testEachWidthComesBackAsItWent() throws {
        func check<T: FixedWidthInteger & Sendable & Receivable>(_: T.Type) throws {
            for value in [T.min, T.max, 0, 1, T.max / 3] {
                XCTAssertEqual(try T(bluetoothData: value.toBluetoothData()), value)
                XCTAssertEqual(value.toBluetoothData().count, T.bitWidth / 8)
            }
        }
        try check(Int8.self)
        try check(Int16.self)
        try check(Int32.self)
        try check(Int64.self)
        try check(UInt8.self)
        try check(UInt16.self)
        try check(UInt32.self)
        try check(UInt64.self)
    }

    func testAValueIsExtractedFromAnyPlace() throws {
        let first: UInt8 = try data.extract(start: 0, length: 1)
        // At an odd address.
        let word: UInt32 = try data.extract(start: 1, length: 4)
        let last: Int16 = try data.extract(start: 6, length: 2)
        XCTAssertEqual([UInt64(first), UInt64(word), UInt64(last)], [1, 0x8004_0302, 0x7F00])
        let rest: Data = try data.extract(start: 5, length: 3)
        XCTAssertEqual(rest, Data([0xFF, 0x00, 0x7F]))
        XCTAssertEqual(rest.startIndex, 0)
        let nothing: Data = try data.extract(start: 8, length: 0)
        XCTAssertEqual(nothing, Data())
    }

    func testASliceCountsFromItsOwnBeginning() throws {
        let slice = data[2..<6]
        let word: UInt16 = try slice.extract(start: 1, length: 2)
        XCTAssertEqual(word, 0x8004)
        XCTAssertThrowsError(try slice.extract(start: 3, length: 2) as UInt16)
        XCTAssertEqual(try UInt16(bluetoothData: slice), 0x0403)
    }

    func testBytesThatAreNotThereAreAnErrorAndNoTrap() {
        for (start, length) in [
            (0, 9), (8, 1), (9, 0), (-1, 1), (0, -1), (Int.max, 1), (1, Int.max), (Int.max, Int.max),
            (Int.min, Int.min),
            (Int.min, Int.max),
        ] {
            XCTAssertThrowsError(try data.extract(start: start, length: length) as Data, "\(start) \(length)") {
                error in
                XCTAssertEqual(
                    error as? BluejayError, .dataOutOfBounds(start: start, length: length, count: 8))
            }
        }
        XCTAssertThrowsError(try data.extract(start: 0, length: 1) as UInt16) { error in
            XCTAssertEqual(error as? BluejayError, .dataOutOfBounds(start: 0, length: 2, count: 1))
        }
        XCTAssertThrowsError(try UInt8(bluetoothData: Data()))
    }

    func testATypeWiderThanItsBytesTakesWhatItHasPlaceFor() throws {
        XCTAssertEqual(try UInt8(bluetoothData: data), 1)
    }

    func testTextIsUTF8AndNothingElse() throws {
        XCTAssertEqual("Grüße".toBluetoothData(), Data("Grüße".utf8))
        XCTAssertEqual(try String(bluetoothData: Data("Grüße".utf8)), "Grüße")
        XCTAssertEqual(try String(bluetoothData: Data()), "")
        XCTAssertThrowsError(try String(bluetoothData: Data([0xC3, 0x28]))) { error in
            XCTAssertEqual(error as? BluejayError, .invalidText(Data([0xC3, 0x28])))
        }
    }

    func testSendablesAreCombinedInTheirOrder() {
        let combined = Bluejay.combine(sendables: [UInt8(1), UInt16(2).bigEndian, Data([9]), "a"])
        XCTAssertEqual(combined, Data([1, 0, 2, 9, 97]))
        XCTAssertEqual(Bluejay.combine(sendables: []), Data())
    }

    func testIdentifiersAreKeptAndCompared() throws {
        let identifier = PeripheralIdentifier(uuid: UUID(), name: "Strap")
        let kept = try JSONDecoder().decode(PeripheralIdentifier.self, from: JSONEncoder().encode(identifier))
        XCTAssertEqual(kept, identifier)
        XCTAssertEqual(kept.name, "Strap")
        XCTAssertEqual(PeripheralIdentifier(uuid: identifier.uuid, name: nil), identifier)
        XCTAssertEqual(PeripheralIdentifier(uuid: identifier.uuid, name: nil).name, "Unknown")
    }

    func testEachErrorIsASentence() {
        let service = ServiceIdentifier(uuid: "180D")
        let errors: [BluejayError] = [
            .bluetoothUnavailable, .multipleScanNotSupported, .multipleConnectNotSupported,
            .multipleDisconnectNotSupported, .connectionTimedOut, .notConnected, .missingService(service),
            .missingCharacteristic(CharacteristicIdentifier(uuid: "2A37", service: service)), .cancelled,
            .explicitDisconnect, .disconnectQueued, .listenTimedOut, .dataOutOfBounds(start: 1, length: 2, count: 2),
            .invalidText(Data([0xFF])), .unexpectedPeripheral(PeripheralIdentifier(uuid: UUID(), name: "Strap")),
            .backgroundTaskRunning, .multipleBackgroundTaskNotSupported, .calledInsideBackgroundTask,
            .notInBackgroundTask, .multipleListenTrapped, .multipleListenReplaced, .indefiniteFlush, .stopped,
        ]
        for error in errors {
            XCTAssertEqual(error.localizedDescription, error.description)
            XCTAssertTrue(error.description.hasSuffix("."), error.description)
        }
        XCTAssertEqual(Set(errors.map(\.description)).count, errors.count)
    }

    func testAFailedPairingIsDescribedAsTheLibraryDescribesIt() {
        for error in [.notAllowed, .rejected(by: .policy), .keyMissing(isCertain: true), .linkLost] as [PairingError] {
            let text = BluejayError.pairingFailed(error).description
            XCTAssertTrue(text.hasPrefix(error.cause()), text)
            XCTAssertFalse(text.contains("whenPairingIsRequested") || text.contains("repair()"), text)
        }
    }

    /// The two protocols of one name beside each other: it compiles.
    func testTheModulesSendableLivesBesideSwifts() {
        struct Command: Sendable, Swift.Sendable {
            func toBluetoothData() -> Data { Data([1]) }
        }
        func sent(_ sendable: any Sendable) -> Data { sendable.toBluetoothData() }
        func crossed<T: Swift.Sendable>(_ make: @Sendable () -> T) -> T { make() }
        let command = crossed { @Sendable in Command() }
        XCTAssertEqual(sent(command), Data([1]))
        XCTAssertEqual((Command() as any Bluejay::Sendable).toBluetoothData(), Data([1]))
    }
}
