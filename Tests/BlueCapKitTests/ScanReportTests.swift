import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

/// Reports of a scan that are values, beside the handles of `startScanning`.
final class ScanReportTests: XCTestCase {
    private let simulator = Simulator.inProcess(room: .empty)
    private let everything = ScanOptions(allowsDuplicates: true)

    /// Numbers its advertisements, each with a strength of its own.
    private final class Numbered: PeripheralBehavior {
        func advertisement(of peripheral: VirtualPeripheral, at seconds: TimeInterval) -> Advertisement {
            var advertisement = peripheral.advertisement
            advertisement.manufacturerData[0xFFFF] = [number(at: seconds)]
            return advertisement
        }

        func rssi(of peripheral: VirtualPeripheral, at seconds: TimeInterval) -> Int? {
            -40 - Int(number(at: seconds) % 50)
        }

        private func number(at seconds: TimeInterval) -> UInt8 { UInt8(truncatingIfNeeded: Int(seconds * 10 + 0.5)) }
    }

    private let tag = VirtualPeripheral(
        "C0:00:00:00:00:01", advertisement: Advertisement(localName: "Tag", serviceUUIDs: ["180F"]), interval: 0.1)
    private let other = VirtualPeripheral(
        "C0:00:00:00:00:02", rssi: .constant(-70), advertisement: Advertisement(localName: "Other"), interval: 0.1)

    private func number(_ report: ScanReport) -> Int? {
        report.advertisements.manufacturerDataByCompany[0xFFFF]?.first.map(Int.init)
    }

    private func kept<T>(_ stream: FutureStream<T>) -> [T] { stream.futures.compactMap { $0.result?.value } }

    func testEachReportHasItsOwnDataAndTime() throws {
        simulator.add(tag, behavior: Numbered())
        let manager = simulator.central()
        let start = simulator.seconds
        let stream = manager.startScanningForReports(options: everything)
        simulator.advance(by: 5)
        let reports = kept(stream)
        XCTAssertGreaterThan(reports.count, 30)
        let numbers = try reports.map { try XCTUnwrap(number($0)) }
        XCTAssertEqual(numbers, numbers.sorted())
        XCTAssertGreaterThan(Set(numbers).count, 30)
        for (report, number) in zip(reports, numbers) {
            XCTAssertEqual(report.rssi, -40 - number % 50)
            XCTAssertEqual(report.advertisements.localName, "Tag")
            XCTAssertEqual(report.advertisements.serviceUUIDs, [CBUUID(string: "180F")])
            XCTAssertTrue(report.peripheral === reports[0].peripheral)
        }
        // The clock of the simulator and that of the manager are one.
        let dates = reports.map { $0.date.timeIntervalSince(reports[0].date) }
        for (seconds, number) in zip(dates, numbers) {
            XCTAssertEqual(seconds, Double(number - numbers[0]) / 10, accuracy: 0.11)
        }
        XCTAssertLessThanOrEqual(try XCTUnwrap(dates.last), simulator.seconds - start)
        // The handle has the newest data only.
        XCTAssertEqual(reports.map { _ in reports[0].peripheral.rssi }, reports.map { _ in reports.last?.rssi })
    }

    func testAReportHasTheReadingsOfASensor() throws {
        // A thermometer whose data contains its address, and another device with the same data.
        let data: [UInt8] = [0xA4, 0xC1, 0x38, 0xAA, 0xBB, 0xCC, 0x00, 0xCE, 0x33, 0x43, 0x0A, 0x6E, 0xC3]
        let services: [String: [UInt8]] = ["FCD2": [0x40, 0x02, 0xC4, 0x09, 0x03, 0xBF, 0x13], "181A": data]
        for address: VirtualAddress in ["A4:C1:38:AA:BB:CC", "C0:00:00:00:00:03"] {
            simulator.add(
                VirtualPeripheral(
                    address, advertisement: Advertisement(localName: "Sensor", serviceData: services), interval: 0.1))
        }
        simulator.add(tag)
        let manager = simulator.central()
        let stream = manager.startScanningForReports(options: everything)
        simulator.advance(by: 2)
        let reports = Dictionary(kept(stream).map { ($0.peripheral.address, $0) }) { $1 }
        let readings = try XCTUnwrap(reports["A4:C1:38:AA:BB:CC"]).sensorReadings
        XCTAssertEqual(readings.map(\.format), ["bthome_v2", "atc1441"])
        XCTAssertEqual(readings.map { $0[.temperature]?.value }, [.number(25), .number(20.6)])
        XCTAssertEqual(try XCTUnwrap(reports["C0:00:00:00:00:03"]).sensorReadings.map(\.format), ["bthome_v2"])
        XCTAssertEqual(try XCTUnwrap(reports["C0:00:00:00:00:01"]).sensorReadings, [])
    }

    func testInAFloodEachReportIsSeenWithItsOwnStrength() throws {
        simulator.add(tag)
        simulator.add(other)
        let manager = simulator.central()
        let stream = manager.startScanningForReports(capacity: 10_000, options: everything)
        simulator.advance(by: 0.5)
        let before = stream.count
        let isDone = Locked(false)
        simulator.simulateFlood(updates: 2_000) { isDone.withLock { $0 = true } }
        XCTAssertTrue(simulator.advance(until: { isDone.withLock { $0 } }, limit: 5))
        simulator.run()
        let flood = kept(stream).dropFirst(before).filter { $0.peripheral.address == "C0:00:00:00:00:01" }
        XCTAssertGreaterThanOrEqual(flood.count, 900)
        // Handlers run late here: all reports are in before the first is looked at. The strength changes each time.
        for (report, next) in zip(flood, flood.dropFirst()) { XCTAssertNotEqual(report.rssi, next.rssi) }
        XCTAssertEqual(Set(flood.map(\.peripheral.rssi)).count, 1, "A handle has the newest strength alone.")
    }

    func testWithoutDuplicatesEachPeripheralIsReportedOnce() {
        simulator.add(tag)
        simulator.add(other)
        let manager = simulator.central()
        let stream = manager.startScanningForReports()
        simulator.advance(by: 3)
        XCTAssertEqual(
            Set(kept(stream).map(\.peripheral.address)), ["C0:00:00:00:00:01", "C0:00:00:00:00:02"])
        XCTAssertEqual(stream.count, 2)
    }

    func testTheServicesAndOptionsOfAScanHold() {
        simulator.add(tag)
        simulator.add(other)
        let manager = simulator.central()
        let services = manager.startScanningForReports(forServiceUUIDs: [CBUUID(string: "180F")])
        simulator.advance(by: 1)
        XCTAssertEqual(kept(services).map(\.advertisements.localName), ["Tag"])
        manager.stopScanning()
        simulator.advance(by: 1)
        let strong = manager.startScanningForReports(options: ScanOptions(rssiThreshold: 21))
        guard case .invalidOption? = strong.futures.first?.result?.error as? CentralManagerError else {
            return XCTFail("Not the failure expected: \(strong.futures.map(\.result))")
        }
    }

    func testItIsTheManagersScanAndEndsAsOne() {
        simulator.add(tag)
        let manager = simulator.central()
        let isOver = expectation(description: "over")
        let stream = manager.startScanningForReports(options: everything)
        Task {
            var count = 0
            for await outcome in stream.outcomes where outcome.isSuccess() { count += 1 }
            XCTAssertGreaterThan(count, 0)
            isOver.fulfill()
        }
        XCTAssertTrue(manager.isScanning)
        XCTAssertEqual(
            manager.startScanning().futures.first?.result?.error as? CentralManagerError, .isScanning)
        simulator.advance(by: 1)
        manager.stopScanning()
        simulator.advance(by: 1)
        wait(for: [isOver], timeout: 60)
        XCTAssertFalse(manager.isScanning)
        XCTAssertFalse(stream.futures.contains { $0.result?.isFailure() == true })
        XCTAssertEqual(simulator.discoverySessions, [])
    }

    func testATimeOutWithoutAReportIsAnError() {
        let manager = simulator.central()
        let stream = manager.startScanningForReports(timeout: 2)
        simulator.advance(by: 3)
        XCTAssertEqual(
            stream.futures.compactMap { $0.result?.error as? CentralManagerError }, [.peripheralScanTimeout])
        XCTAssertFalse(manager.isScanning)
    }
}
