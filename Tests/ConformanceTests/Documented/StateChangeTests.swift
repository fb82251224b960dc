import BlueCapKit
import BlueZSimulator
import XCTest

final class StateChangeTests: DocumentedCase, @unchecked Sendable {
    func testTheStateHasTheDocumentedCases() {
        let documented: [ManagerState] = [
            .unauthorized, .unknown, .unsupported, .resetting, .poweredOff, .poweredOn,
        ]
        XCTAssertEqual(Set(documented), Set(ManagerState.allCases))
        let describing: any CustomStringConvertible = ManagerState.poweredOn
        XCTAssertEqual(describing.description, "poweredOn")
    }

    func testUnlikelyIsAnotherNameForUnknown() {
        XCTAssertEqual(ManagerState.unlikely, .unknown)
        // The documents' switch stays exhaustive.
        switch ManagerState.unlikely {
        case .poweredOn, .poweredOff, .unauthorized, .resetting, .unsupported: XCTFail("It is unknown.")
        case .unknown: break
        }
    }

    func testStateChangesAreAStream() {
        let whenStateChanges: (CentralManager) -> () -> FutureStream<ManagerState> = CentralManager.whenStateChanges
        let stream = whenStateChanges(poweredManager())()
        XCTAssertEqual(stream.count, 1)
    }

    func testTheRestoreIdentifierMayBeAnNSString() {
        let options: [String: Any] = [
            CBCentralManagerOptionRestoreIdentifierKey: "us.gnos.BlueCap.documentation-manager" as NSString,
            "CentralManagerOptionBusAddressKey": simulator.address as NSString,
        ]
        let manager = CentralManager(options: options)
        eventually("poweredOn") { manager.poweredOn }
    }

    // MARK: Examples

    func testStateChangesAreProcessedAsInTheEarliestDocument() {
        let manager = CentralManager(options: [
            CBCentralManagerOptionRestoreIdentifierKey: "us.gnos.BlueCap.documentation-manager" as NSString,
            "CentralManagerOptionBusAddressKey": simulator.address,
        ])

        let stateChangeFuture = manager.whenStateChanges()

        stateChangeFuture.onSuccess { state in
            switch state {
            case .poweredOn:
                self.seen.note("on")
            case .poweredOff, .unauthorized:
                self.seen.note("off")
            case .resetting:
                self.seen.note("resetting")
            case .unknown:
                self.seen.note("unknown")
            case .unsupported:
                self.seen.note("unsupported")
            }
        }

        stateChangeFuture.onFailure { error in
            self.seen.note("\(error)")
        }

        eventually("on") { seen.contains("on") }
        simulator.simulatePowerOff()
        eventually("off") { seen.contains("off") }
        simulator.simulateDaemonDeath()
        eventually("resetting") { seen.contains("resetting") }
        XCTAssertEqual(seen.texts, ["on", "off", "resetting"])
    }

    func testStateChangesAreProcessedAsDocumentedLater() {
        let manager = CentralManager(options: [
            CBCentralManagerOptionRestoreIdentifierKey: "us.gnos.BlueCap.documentation-manager" as NSString,
            "CentralManagerOptionBusAddressKey": simulator.address,
        ])

        let stateChangeFuture = manager.whenStateChanges()

        stateChangeFuture.onSuccess { state in
            switch state {
            case .poweredOn:
                break
            case .poweredOff, .unauthorized:
                break
            case .resetting:
                break
            case .unknown:
                break
            case .unsupported:
                self.seen.note("unsupported")
            }
        }

        simulator.simulateAdapterRemoval()
        eventually("unsupported") { seen.contains("unsupported") }
    }
}
