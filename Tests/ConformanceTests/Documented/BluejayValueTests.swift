import Bluejay
import XCTest

/// The guide's heart rate measurement.
struct HeartRateMeasurement: Receivable {

    private var flags: UInt8 = 0
    private var measurement8bits: UInt8 = 0
    private var measurement16bits: UInt16 = 0
    private var energyExpended: UInt16 = 0
    private var rrInterval: UInt16 = 0

    private var isMeasurementIn8bits = true

    var measurement: Int {
        return isMeasurementIn8bits ? Int(measurement8bits) : Int(measurement16bits)
    }

    init(bluetoothData: Data) throws {
        flags = try bluetoothData.extract(start: 0, length: 1)

        isMeasurementIn8bits = (flags & 0b00000001) == 0b00000000

        if isMeasurementIn8bits {
            measurement8bits = try bluetoothData.extract(start: 1, length: 1)
        } else {
            measurement16bits = try bluetoothData.extract(start: 1, length: 2)
        }
    }

}

/// The guide's request to write. (`any` before Sendable is this package's rule; the guide's spelling compiles too.)
struct WriteRequest: Sendable {

    var handle: UInt16
    var data: any Sendable

    init(handle: UInt16, data: any Sendable) {
        self.handle = handle
        self.data = data
    }

    func toBluetoothData() -> Data {
        let startByte = UInt8(0x3A)
        let payloadLength = UInt8(3 + (data.toBluetoothData().count))
        let command = UInt8(0x02)
        let handleInBigEndian = handle.bigEndian

        let crc = (Bluejay.combine(sendables: [command, handleInBigEndian, data]) as NSData).crc16CCITT

        let request = Bluejay.combine(sendables: [
            startByte,
            payloadLength,
            command,
            handleInBigEndian,
            data,
            crc.bigEndian,
        ])

        return request
    }

}

extension NSData {
    /// The guide's custom extension: polynomial 0x1021, from 0xFFFF.
    fileprivate var crc16CCITT: UInt16 {
        (self as Data).reduce(0xFFFF) { crc, byte in
            (0..<8).reduce(crc ^ UInt16(byte) << 8) { crc, _ in crc & 0x8000 == 0 ? crc << 1 : crc << 1 ^ 0x1021 }
        }
    }
}

/// The guide's section Deserialization and Serialization.
final class BluejayValueTests: XCTestCase {
    func testAMeasurementIsMadeOfBytes() throws {
        XCTAssertEqual(try HeartRateMeasurement(bluetoothData: Data([0, 72])).measurement, 72)
        XCTAssertEqual(try HeartRateMeasurement(bluetoothData: Data([1, 0x2C, 0x01])).measurement, 300)
        XCTAssertThrowsError(try HeartRateMeasurement(bluetoothData: Data([1, 72])))
        XCTAssertThrowsError(try HeartRateMeasurement(bluetoothData: Data()))
    }

    func testBytesAreExtractedOrAnErrorIsThrown() throws {
        let flags: UInt8 = try Data([7, 8]).extract(start: 1, length: 1)
        XCTAssertEqual(flags, 8)
        XCTAssertThrowsError(try Data([7, 8]).extract(start: 2, length: 1) as UInt8)
        XCTAssertThrowsError(try Data([7, 8]).extract(start: -1, length: Int.max) as UInt8)
    }

    func testARequestBecomesBytes() {
        let request = WriteRequest(handle: 0x0102, data: UInt8(9))
        let bytes = [UInt8](request.toBluetoothData())
        XCTAssertEqual(bytes.prefix(6), [0x3A, 4, 2, 1, 2, 9])
        XCTAssertEqual(bytes.count, 8)
        // One request inside another.
        XCTAssertEqual(WriteRequest(handle: 1, data: request).toBluetoothData().count, 7 + 8)
    }

    func testSendablesAreCombined() {
        XCTAssertEqual(Bluejay.combine(sendables: [UInt8(1), UInt16(2), "a"]), Data([1, 2, 0, 97]))
    }

    func testTheBuiltInTypesAreBoth() throws {
        func both<T: Sendable & Receivable & Equatable>(_ value: T) throws -> Bool {
            try T(bluetoothData: value.toBluetoothData()) == value
        }
        XCTAssertTrue(try both(Int8(-1)) && both(Int16(-1)) && both(Int32(-1)) && both(Int64(-1)))
        XCTAssertTrue(try both(UInt8(1)) && both(UInt16(1)) && both(UInt32(1)) && both(UInt64(1)))
        XCTAssertTrue(try both(Data([1, 2])) && both("Grüße"))
    }

    func testIntegersWithoutAWidthAreNeither() {
        XCTAssertFalse(1 as Any is any Sendable)
        XCTAssertFalse(1 as Any is any Receivable)
        XCTAssertFalse(UInt(1) as Any is any Sendable)
    }

    func testTextIsUTF8() throws {
        XCTAssertEqual("ü".toBluetoothData(), Data([0xC3, 0xBC]))
        XCTAssertEqual(try String(bluetoothData: Data([0xC3, 0xBC])), "ü")
        XCTAssertThrowsError(try String(bluetoothData: Data([0xC3])))
    }

    /// The guide's protocol has the name of Swift's, which is there as well.
    func testSwiftsSendableIsBesideTheGuides() {
        struct Both: Sendable, Swift.Sendable {
            func toBluetoothData() -> Data { Data() }
        }
        let task: @Sendable () -> Both = { Both() }
        XCTAssertEqual(task().toBluetoothData(), Data())
    }
}
