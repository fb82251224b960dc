import BlueCapGATT
import BlueCapReactor
import XCTest

@testable import BlueCapKit
@testable import BlueCapBlueZ

final class PeripheralTableTests: XCTestCase {
    private let scan = ScanNumber(rawValue: 1)
    private let date = Date(timeIntervalSince1970: 0)

    private func key(_ number: Int) -> PeripheralKey { PeripheralKey(rawValue: UInt64(number)) }
    private func source(_ number: Int) -> ObjectKey { ObjectKey(rawValue: UInt64(number)) }
    private func time(_ seconds: Double) -> Instant { Instant.origin.advanced(by: seconds) }

    private func table(capacity: Int, listing count: Int) -> PeripheralTable {
        var table = PeripheralTable(capacity: capacity)
        for number in 0..<count {
            _ = table.list(key(number), reportedBy: scan, device: source(number), at: time(Double(number)), date: date)
        }
        return table
    }

    func testARecordIsSmall() {
        XCTAssertLessThanOrEqual(MemoryLayout<PeripheralRecord>.stride, 64)
    }

    func testTheLongestSilentMakeRoomForTheNew() {
        var table = table(capacity: 8, listing: 8)
        _ = table.update(key(0)) { $0.recordSighting(at: time(100)) }
        XCTAssertEqual(table.list(key(8), reportedBy: scan, device: source(8), at: time(101), date: date), [key(1)])
        XCTAssertEqual(table.listedCount, 8)
    }

    func testAnyNumberOfNewDevicesNeverExceedsTheCapacity() {
        var table = PeripheralTable(capacity: 500)
        for number in 0..<20_000 {
            for evicted in table.list(
                key(number), reportedBy: scan, device: source(0), at: time(Double(number)), date: date)
            {
                _ = table.release(evicted)
            }
            XCTAssertLessThanOrEqual(table.listedCount, 500)
        }
    }

    func testOnePutsUpWithFourIntervalsOfSilenceAndAtLeastThirtySeconds() {
        var table = table(capacity: 8, listing: 1)
        XCTAssertEqual(table.silent(at: time(29)), [])
        XCTAssertEqual(table.silent(at: time(30)), [key(0)])
        for second in stride(from: 20.0, through: 100, by: 20) {
            _ = table.update(key(0)) { $0.recordSighting(at: time(second)) }
        }
        XCTAssertEqual(table.silent(at: time(179)), [])
        XCTAssertEqual(table.silent(at: time(180)), [key(0)])
    }

    func testAPauseIsNoInterval() {
        var table = table(capacity: 8, listing: 1)
        for second in [1.0, 2, 3, 4_000] { _ = table.update(key(0)) { $0.recordSighting(at: time(second)) } }
        XCTAssertEqual(table[key(0)]?.interval, 1)
    }

    func testWhatIsOffTheListStaysUntilItsHandleIsReleased() {
        var table = table(capacity: 8, listing: 1)
        XCTAssertTrue(table.unlist(key(0)))
        XCTAssertFalse(table.unlist(key(0)))
        XCTAssertEqual(table[key(0)]?.device, source(0))
        _ = table.release(key(0))
        XCTAssertNil(table[key(0)])
    }

    func testTheLastValuesOfARemovedDeviceAreKeptUntilItComesBack() {
        var table = table(capacity: 8, listing: 1)
        var device = Device1(address: BluetoothAddress(rawValue: 1))
        device.rawRSSI = -40
        _ = table.update(key(0)) { $0.wasRemoved(source(1), device) }
        XCTAssertNil(table[key(0)]?.lastValues, "That was the device of another adapter.")
        _ = table.update(key(0)) { $0.wasRemoved(source(0), device) }
        XCTAssertEqual(table[key(0)]?.lastValues?.device.rssi, -40)
        _ = table.update(key(0)) { $0.isPresent(as: source(1)) }
        XCTAssertNil(table[key(0)]?.lastValues)
        XCTAssertEqual(table[key(0)]?.device, source(1))
    }

    func testReleasingAListedOneChangesNothing() {
        var table = table(capacity: 8, listing: 1)
        _ = table.release(key(0))
        XCTAssertEqual(table[key(0)]?.isListed, true)
    }

    func testOneThatComesBackKeepsTheDateOfItsDiscovery() {
        var table = table(capacity: 8, listing: 1)
        _ = table.unlist(key(0))
        _ = table.list(key(0), reportedBy: scan, device: source(1), at: time(50), date: date.addingTimeInterval(50))
        XCTAssertEqual(table[key(0)]?.discoveredAt, date)
        XCTAssertEqual(table.listedCount, 1)
    }
}

extension PeripheralTable {
    fileprivate mutating func list(
        _ key: PeripheralKey, reportedBy scan: ScanNumber, device: ObjectKey, at now: Instant, date: Date
    ) -> [PeripheralKey] {
        list(key, reportedBy: scan, or: PeripheralRecord.Listing(device: device, discoveredAt: date, lastReceived: now))
    }
}
