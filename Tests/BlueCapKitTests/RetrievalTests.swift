import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// Peripherals that are retrieved without a scan, and the signal strength that BlueZ reports.
final class RetrievalTests: ConnectionStage {
    func testAPeripheralThatBlueZRemembersIsRetrievedByItsIdentifier() {
        var known = Self.device(1)
        known.isRemembered = true
        simulator.add(known)
        let manager = manager()
        let identifier = BluetoothAddress("C0:00:00:00:00:01")!.identifier(type: .public)
        XCTAssertEqual(manager.peripherals, [])
        let retrieved = manager.retrievePeripherals(withIdentifiers: [UUID(), identifier])
        XCTAssertEqual(retrieved.map(\.address), ["C0:00:00:00:00:01"])
        XCTAssertEqual(manager.peripherals, retrieved)
        XCTAssertTrue(manager.retrievePeripherals(withIdentifiers: [identifier]).first === retrieved.first)
        connect(retrieved[0])
        XCTAssertEqual(manager.retrieveConnectedPeripherals(withServices: []), retrieved)
    }

    func testConnectedPeripheralsAreRetrievedByTheirServices() {
        let strap = strap()
        XCTAssertEqual(central.retrieveConnectedPeripherals(withServices: []), [])
        connect(strap)
        simulator.advance(by: 2)
        XCTAssertEqual(central.retrieveConnectedPeripherals(withServices: [CBUUID(string: "180D")]), [strap])
        XCTAssertEqual(central.retrieveConnectedPeripherals(withServices: [CBUUID(string: "181D")]), [])
        XCTAssertEqual(central.retrieveConnectedPeripherals(withServices: []), [strap])
    }

    func testWhatWasDiscoveredIsRetrievedAlsoAfterItHasExpired() {
        let strap = strap()
        simulator.remove(Self.strapAddress)
        journal.watch(central.startScanning())
        simulator.advance(by: 100)
        central.stopScanning()
        XCTAssertEqual(central.peripherals, [])
        XCTAssertEqual(central.retrievePeripherals(), [strap])
        XCTAssertEqual(central.peripherals, [strap])
    }

    func testTheStrengthOfALinkIsTheNewestAdvertisementsOrNotKnown() {
        let strap = strap()
        let readings = Journal()
        func read() {
            strap.readRSSI().onComplete(context: ImmediateContext()) { result in
                readings.write { entries in
                    switch result {
                    case .success: entries.completions += 1
                    case .failure(let error): entries.failures.append(error)
                    }
                }
            }
            simulator.advance(by: 0.1)
        }
        read()
        XCTAssertEqual(readings.peripheralErrors, [.disconnected])
        connect(strap)
        read()
        XCTAssertEqual(readings.peripheralErrors, [.disconnected, .rssiUnavailable])
        simulator.simulateSighting(of: Self.strapAddress, rssi: -42)
    }

    func testPollingReadsEachPeriodUntilItIsStopped() {
        let strap = strap()
        connect(strap)
        let readings = Journal()
        strap.startPollingRSSI(period: 2).onFailure(context: ImmediateContext()) { error in
            readings.write { $0.failures.append(error) }
        }
        simulator.advance(by: 5)
        XCTAssertEqual(readings.peripheralErrors, [.rssiUnavailable, .rssiUnavailable, .rssiUnavailable])
        strap.stopPollingRSSI()
        simulator.advance(by: 10)
        XCTAssertEqual(readings.peripheralErrors.count, 3)
        let refused = Journal()
        strap.startPollingRSSI(period: 0).onFailure(context: ImmediateContext()) { error in
            refused.write { $0.failures.append(error) }
        }
        XCTAssertEqual(refused.peripheralErrors.count, 1)
    }
}
