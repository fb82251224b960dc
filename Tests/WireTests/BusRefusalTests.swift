import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// Managers on buses that refuse their calls, and on a bus that ends.
final class BusRefusalTests: XCTestCase {
    private let journal = Journal()
    private let limit = 20.0

    private func manager(on bus: PolicedBus) -> CentralManager {
        let manager = try! CentralManager(configuration: .init(busAddress: bus.address))
        journal.watchStates(of: manager)
        return manager
    }

    func testAPolicyThatForbidsBlueZMakesTheManagerUnauthorized() throws {
        let bus = try PolicedBus(policy: PolicedBus.allowingAll + #"<deny send_destination="org.bluez"/>"#)
        let simulator = try Simulator(address: bus.address)
        defer { simulator.end() }

        let manager = manager(on: bus)
        XCTAssertTrue(journal.wait(limit: limit) { !$0.states.isEmpty })
        journal.watch(manager.startScanning())

        XCTAssertEqual(journal.states, [.unauthorized])
        XCTAssertEqual(journal.failures, [.unauthorized])
        XCTAssertTrue(manager.stateExplanation.contains("policy"), manager.stateExplanation)
    }

    func testABusThatDoesNotAdmitUsMakesTheManagerUnauthorized() throws {
        let bus = try PolicedBus(policy: PolicedBus.allowingAll + #"<deny user="*"/>"#)

        let manager = manager(on: bus)
        XCTAssertTrue(journal.wait(limit: limit) { !$0.states.isEmpty })

        XCTAssertEqual(journal.states, [.unauthorized], manager.stateExplanation)
    }

    func testAScanGoesOnWhenTheBusHasDiedAndIsBack() throws {
        let bus = try PolicedBus()
        let first = try Simulator(address: bus.address)
        let manager = manager(on: bus)
        XCTAssertTrue(journal.wait(limit: limit) { $0.states == [.poweredOn] })
        journal.watch(manager.startScanning(options: ScanOptions(allowsDuplicates: true)))
        XCTAssertTrue(journal.wait(limit: limit) { !$0.sightings.isEmpty })

        bus.die()
        XCTAssertTrue(journal.wait(limit: limit) { $0.states == [.poweredOn, .resetting] })
        first.end()
        let before = journal.sightings.count
        try bus.start()
        let second = try Simulator(address: bus.address)
        defer { second.end() }

        XCTAssertTrue(journal.wait(limit: limit) { $0.states == [.poweredOn, .resetting, .poweredOn] })
        XCTAssertTrue(journal.wait(limit: limit) { $0.sightings.count > before })
        XCTAssertTrue(manager.isScanning)
    }
}
