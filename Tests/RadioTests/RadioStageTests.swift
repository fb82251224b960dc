import TestSupport
import XCTest

typealias ScanBodiesTests = RadioScanTests
typealias CentralBodiesTests = RadioCentralTests
typealias PairingBodiesTests = RadioPairingTests
typealias PairingServerBodiesTests = RadioPairingServerTests
typealias PeripheralBodiesTests = RadioPeripheralTests

/// Ring 4: the scan tests on real `bluetoothd`.
final class RadioScanTests: XCTestCase {
    func bodies() throws -> ScanBodies { ScanBodies(on: try RadioStage()) }
}

/// Ring 4: the central role on real `bluetoothd`, with a peripheral that shares no code with us.
final class RadioCentralTests: XCTestCase {
    func bodies() throws -> CentralBodies { CentralBodies(on: try RadioStage()) }
}

/// Ring 4: pairings of a central manager on real `bluetoothd`, with a peripheral and an agent that share no code with us.
final class RadioPairingTests: XCTestCase {
    func bodies() throws -> PairingBodies { PairingBodies(on: try RadioStage()) }

    func testAnUnansweredRequestIsRejectedBeforeBlueZGivesUp() throws {
        try bodies().anUnansweredRequestIsRejectedBeforeBlueZGivesUp(answerTimeout: 5)
    }
    func testAnAdapterWithoutKeysIsReportedAndRepaired() throws {
        try bodies().anAdapterWithoutKeysIsReportedAndRepaired()
    }
}

/// Ring 4: our peripheral on `hci1` pairs with our central on `hci0`. One `bluetoothd` serves both, so each has a connection to
/// the bus of its own, with an agent of its own: a second spelling of the bus's address makes one.
final class RadioPairingServerTests: XCTestCase {
    func bodies() throws -> PairingServerBodies {
        let stage = try RadioStage()
        let central = OwnCentral(on: stage, busAddress: "unix:path=/run/dbus/system_bus_socket")
        return PairingServerBodies(on: stage, central: central)
    }
}
