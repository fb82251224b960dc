import XCTest

@testable import BlueCapGATT

final class BluetoothAddressTests: XCTestCase {
    func testTextBecomesANumberAndTheSameTextAgain() throws {
        let address = try XCTUnwrap(BluetoothAddress("c0:26:df:12:34:5a"))

        XCTAssertEqual(address.rawValue, 0xC026_DF12_345A)
        XCTAssertEqual(address.description, "C0:26:DF:12:34:5A")
    }

    func testTextThatIsNoAddressGivesNil() {
        let wrong = [
            "", "C0:26:DF:12:34", "C0:26:DF:12:34:5", "C0:26:DF:12:34:5G", "C0-26-DF-12-34-5A", "C026DF12345A",
            "C0:26:DF:12:34:5A:", ":C0:26:DF:12:34:5", "C0:26:DF:12:34:é",
        ]
        for text in wrong { XCTAssertNil(BluetoothAddress(text), text) }
    }

    func testTheHighestBitsDistinguishTheKindsOfRandomAddresses() {
        XCTAssertTrue(BluetoothAddress(rawValue: 0xC000_0000_0001).isRandomStatic)
        XCTAssertTrue(BluetoothAddress(rawValue: 0x7FFF_FFFF_FFFF).isResolvablePrivate)
        XCTAssertTrue(BluetoothAddress(rawValue: 0x3FFF_FFFF_FFFF).isNonResolvablePrivate)
        XCTAssertNil(BluetoothAddress(rawValue: 0x8000_0000_0000).randomKind)
    }

    /// The expected values were computed with Python's `uuid.uuid5`.
    func testTheIdentifierIsTheNameBasedUUIDThatOtherToolsFindToo() throws {
        let vectors: [(String, BluetoothAddress.AddressType, String)] = [
            ("C0:26:DF:12:34:56", .public, "BF745977-E18B-57A2-A68D-2C04C1A08414"),
            ("C0:26:DF:12:34:56", .random, "B8FD3A53-299E-599E-A5F5-AFE4FF9C0CE6"),
            ("00:00:00:00:00:00", .public, "4A152C86-A8E0-588A-9E0A-26B81D476F8E"),
            ("FF:FF:FF:FF:FF:FF", .random, "E253E891-BD96-56C2-AE63-504A0FA3F251"),
        ]
        for (text, type, identifier) in vectors {
            let address = try XCTUnwrap(BluetoothAddress(text))
            XCTAssertEqual(address.identifier(type: type).uuidString, identifier)
        }
    }

    func testItSurvivesCodingAsText() throws {
        let address = BluetoothAddress(rawValue: 0xC026_DF12_345A)
        let json = try JSONEncoder().encode([address])

        XCTAssertEqual(String(decoding: json, as: UTF8.self), #"["C0:26:DF:12:34:5A"]"#)
        XCTAssertEqual(try JSONDecoder().decode([BluetoothAddress].self, from: json), [address])
    }
}

final class SHA1Tests: XCTestCase {
    /// RFC 3174's examples, and lengths on both sides of a block's end.
    func testKnownMessagesHaveTheirKnownHashes() {
        let vectors: [([UInt8], String)] = [
            ([], "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            (Array("abc".utf8), "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (Array(repeating: UInt8(ascii: "a"), count: 119), "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56"),
            (Array(0..<200), "54d11e99127d159799dbce10f51a75e697780478"),
        ]
        for (message, expected) in vectors {
            let digest = message.withUnsafeBufferPointer { SHA1.hash($0) }
            let text = (0..<20).map { String(format: "%02x", digest[byte: $0]) }.joined()
            XCTAssertEqual(text, expected)
        }
    }
}
