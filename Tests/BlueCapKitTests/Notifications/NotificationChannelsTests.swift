import BlueZ
import Foundation
import GATT
import XCTest

@testable import BlueCapKit

final class NotificationChannelsTests: XCTestCase {
    private let channels = NotificationChannels()

    private func key(_ handle: UInt16) throws -> AttributeKey {
        let adapter = try XCTUnwrap(ObjectKey(adapter: 0))
        let device = try XCTUnwrap(ObjectKey(device: BluetoothAddress(rawValue: 1), on: adapter))
        return AttributeKey(device: device, handle: handle)
    }

    private func open(_ handles: Range<UInt16>) throws {
        for handle in handles {
            let subject = CharacteristicKey(
                peripheral: PeripheralKey(rawValue: 1), characteristic: AttributeID(rawValue: Int(handle)))
            channels.open(try key(handle), of: subject, .signals, afterGap: false)
        }
    }

    private func flushed() -> [Int: [Data?]] {
        var all: [Int: [Data?]] = [:]
        channels.flush { all[$0.characteristic.rawValue] = $1 }
        return all
    }

    func testChannelsThatAreClosedLeaveNothing() throws {
        try open(0..<20)
        for handle in [7, 0, 19] + Array(8..<19) as [UInt16] {
            _ = channels.close(try key(handle))
            channels.forget(try key(handle))
        }
        XCTAssertEqual(channels.count, 6)
        for handle in 0..<20 as Range<UInt16> { _ = channels.signalled(try key(handle), Data([UInt8(handle)])) }
        XCTAssertEqual(
            flushed(), Dictionary(uniqueKeysWithValues: (1...6).map { ($0, [Data([UInt8($0)])]) }))
        for handle in 0..<20 as Range<UInt16> {
            _ = channels.close(try key(handle))
            channels.forget(try key(handle))
        }
        XCTAssertEqual(channels.count, 0)
        try open(3..<4)
        _ = channels.signalled(try key(3), Data([3]))
        XCTAssertEqual(flushed(), [3: [Data([3])]])
    }

    func testAChannelIsKeptWhileItIsOpenOrAValueWaitsForARead() throws {
        try open(1..<2)
        channels.forget(try key(1))
        channels.readBegan(try key(1))
        _ = channels.signalled(try key(1), Data([1]))
        XCTAssertEqual(flushed(), [:])
        _ = channels.close(try key(1))
        channels.forget(try key(1))
        channels.readEnded(try key(1), offset: 0, reply: Data([2]))
        XCTAssertEqual(flushed(), [1: [Data([1])]])
    }
}
