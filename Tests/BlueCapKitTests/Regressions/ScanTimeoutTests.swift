import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// A scan's time-out was an error also if the scan had discovered peripherals. The documents say that it is one if nothing
/// is discovered.
final class ScanTimeoutTests: XCTestCase {
    private typealias Scan = (CentralManager) -> FutureStream<Peripheral>

    private let simulator = Simulator.inProcess(room: .empty)
    private let journal = Journal()
    private let service = CBUUID(string: "180D")
    private let strap = VirtualPeripheral(
        "C0:00:00:00:00:01", advertisement: Advertisement(localName: "Strap", serviceUUIDs: ["180D"]), interval: 0.2)

    /// Each form of `startScanning` that takes a time.
    private var forms: [(name: String, scan: Scan)] {
        let duplicates = ScanOptions(allowsDuplicates: true)
        return [
            ("timeout", { $0.startScanning(timeout: 5) }),
            ("timeout, services", { [service] in $0.startScanning(forServiceUUIDs: [service], timeout: 5) }),
            ("timeout as a duration", { $0.startScanning(timeout: .seconds(5)) }),
            ("duration", { $0.startScanning(duration: 5) }),
            ("duration, services", { [service] in $0.startScanning(forServiceUUIDs: [service], duration: 5) }),
            ("timeout, duplicates", { $0.startScanning(timeout: .seconds(5), options: duplicates) }),
        ]
    }

    private func watchedEnd(of stream: FutureStream<Peripheral>) -> Journal {
        let journal = Journal()
        journal.watch(stream)
        stream.collect().onSuccess(context: ImmediateContext()) { _ in journal.write { $0.completions += 1 } }
        return journal
    }

    func testAScanThatDiscoveredSomethingEndsWithItsTimeOutAndNoError() throws {
        simulator.add(strap)
        for form in forms {
            let manager = try simulator.centralManager()
            let journal = watchedEnd(of: form.scan(manager))
            simulator.advance(by: 4.9)
            XCTAssertTrue(manager.isScanning, form.name)
            XCTAssertEqual(journal.read(\.completions), 0, form.name)
            simulator.advance(by: 0.2)
            XCTAssertFalse(manager.isScanning, form.name)
            XCTAssertEqual(journal.read(\.completions), 1, "\(form.name): the stream has not ended")
            XCTAssertEqual(Set(journal.sightings.map(\.name)), ["Strap"], form.name)
            XCTAssertEqual(journal.failures, [], form.name)
            simulator.advance(by: 1)
            XCTAssertEqual(simulator.discoverySessions, [], form.name)
        }
    }

    func testAScanThatDiscoveredNothingFailsWithItsTimeOut() throws {
        for form in forms {
            let manager = try simulator.centralManager()
            let journal = watchedEnd(of: form.scan(manager))
            simulator.advance(by: 4.9)
            XCTAssertEqual(journal.failures, [], form.name)
            simulator.advance(by: 0.2)
            XCTAssertFalse(manager.isScanning, form.name)
            XCTAssertEqual(journal.failures, [.peripheralScanTimeout], form.name)
            XCTAssertEqual(journal.read(\.completions), 0, form.name)
        }
    }

    func testAPeripheralThatDoesNotMatchIsNotADiscovery() throws {
        simulator.add(strap)
        let manager = try simulator.centralManager()
        let journal = watchedEnd(of: manager.startScanning(forServiceUUIDs: [CBUUID(string: "1809")], timeout: 5))
        simulator.advance(by: 6)
        XCTAssertEqual(journal.failures, [.peripheralScanTimeout])
    }

    func testAPeripheralThatAnEarlierScanDiscoveredCountsForTheNext() throws {
        simulator.add(strap)
        let manager = try simulator.centralManager()
        journal.watch(manager.startScanning(timeout: 5))
        simulator.advance(by: 6)
        journal.watch(manager.startScanning(timeout: 5))
        simulator.advance(by: 6)
        XCTAssertEqual(journal.sightings.map(\.name), ["Strap", "Strap"])
        XCTAssertEqual(journal.failures, [])
        simulator.remove(strap.address)
        simulator.advance(by: 60)
        journal.watch(manager.startScanning(timeout: 5))
        simulator.advance(by: 6)
        XCTAssertEqual(journal.failures, [.peripheralScanTimeout])
    }
}
