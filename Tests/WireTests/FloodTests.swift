import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// A thousand peripherals that advertise as fast as the bus carries it.
///
/// `SOAK_SECONDS` in the environment makes the updates go on for that long; `make soak` sets it to ten minutes.
final class FloodTests: XCTestCase {
    private let count = 1_000
    private let updatesPerRound = 5_000

    func testEveryPeripheralIsReportedOnceAndUpdatesDoNotGrowMemory() throws {
        let simulator = try Simulator.onPrivateBus(room: .crowd(count, interval: 20))
        defer { simulator.end() }
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
        let journal = Journal()
        journal.watchStates(of: manager)
        XCTAssertTrue(journal.wait(limit: 20) { $0.states.contains(.poweredOn) }, manager.stateExplanation)
        journal.watch(manager.startScanning())
        XCTAssertTrue(simulator.wait(until: { simulator.adapters.contains(where: \.isDiscovering) }, limit: 20))
        flood(simulator, updates: count)
        XCTAssertTrue(
            journal.wait(limit: 60) { $0.sightings.count >= self.count }, "only \(journal.sightings.count) came")

        flood(simulator, updates: updatesPerRound)
        let before = residentKiB()
        let end = Date(timeIntervalSinceNow: soakSeconds)
        var rounds = 0
        repeat {
            flood(simulator, updates: updatesPerRound)
            rounds += 1
        } while Date() < end
        let growth = residentKiB() - before
        print("Flood: \((rounds + 1) * updatesPerRound) updates, memory grew by \(growth) KiB from \(before) KiB.")

        let addresses = journal.sightings.map(\.address)
        XCTAssertEqual(addresses.count, count, "Each is reported once, none twice.")
        XCTAssertEqual(Set(addresses).count, count)
        XCTAssertEqual(manager.peripherals.count, count)
        XCTAssertEqual(journal.expired, [])
        // The address sanitizer keeps what was released, to find who uses it.
        let isSanitized = ProcessInfo.processInfo.environment["ASAN_OPTIONS"] != nil
        XCTAssertLessThan(
            growth, isSanitized ? 524_288 : 4_096,
            "The process holds more after \(rounds) rounds of updates than before.")
    }

    private var soakSeconds: TimeInterval {
        ProcessInfo.processInfo.environment["SOAK_SECONDS"].flatMap(TimeInterval.init) ?? 0
    }

    private func flood(_ simulator: Simulator, updates: Int) {
        let finished = expectation(description: "the bus has taken \(updates) updates")
        simulator.simulateFlood(updates: updates) { finished.fulfill() }
        wait(for: [finished], timeout: 120)
    }

    /// What the kernel counts as this process's memory.
    private func residentKiB() -> Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") } ?? ""
        return Int(line.filter(\.isNumber)) ?? 0
    }
}
