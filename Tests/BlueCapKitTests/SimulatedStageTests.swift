import BlueZSimulator
import TestSupport
import XCTest

typealias ScanBodiesTests = LoopbackScanTests
typealias CentralBodiesTests = CentralBehaviourTests
typealias PairingBodiesTests = SimulatedPairingTests
typealias PairingServerBodiesTests = SimulatedPairingServerTests
typealias PeripheralBodiesTests = PeripheralBehaviourTests

/// Ring 2: the central role on the loopback bus, in virtual time.
final class CentralBehaviourTests: EachVersionTestCase {
    func bodies() -> CentralBodies { CentralBodies(on: SimulatedStage.inProcess(bluez: bluez)) }
}

/// Ring 2: the scan tests on the loopback bus, in virtual time.
final class LoopbackScanTests: EachVersionTestCase {
    func bodies() -> ScanBodies { ScanBodies(on: SimulatedStage.inProcess(bluez: bluez)) }
}

/// Ring 2: our peripheral and our centrals in one process, on adapters of the simulator.
final class PeripheralBehaviourTests: EachVersionTestCase {
    func bodies() -> PeripheralBodies { PeripheralBodies(on: SimulatedStage.inProcess(adapters: 2, bluez: bluez)) }

    /// With a second central on an adapter of its own.
    private func withTwoCentrals(_ body: (PeripheralBodies, any StageCentral) throws -> Void) throws {
        let stage = SimulatedStage.inProcess(adapters: 3, bluez: bluez)
        try body(PeripheralBodies(on: stage), OwnCentral(on: stage.withCentral(on: "hci2")))
    }

    func testLongValuesTakeSeveralPackets() throws { try bodies().longValuesTakeSeveralPackets(mtu: 517) }
    func testTwoSubscribersReceiveEachValueOnceInOrder() throws {
        try withTwoCentrals { try $0.twoSubscribersReceiveEachValueOnceInOrder(with: $1) }
    }
    func testUpdatesForOneCentralKeepTheirPlace() throws {
        guard bluez >= BlueZVersion(5, 76) else { return try bodies().updatesForOneCentralAreRefused() }
        try withTwoCentrals { try $0.updatesForOneCentralKeepTheirPlace(with: $1) }
    }
    func testASubscriberStaysWhenAnotherOneLeaves() throws {
        try withTwoCentrals { try $0.aSubscriberStaysWhenAnotherOneLeaves($1) }
    }
}

/// A central manager that pairs with virtual peripherals, with each version of BlueZ.
final class SimulatedPairingTests: EachVersionTestCase {
    func bodies() -> PairingBodies { PairingBodies(on: SimulatedStage.inProcess(bluez: bluez)) }

    func testAnUnansweredRequestIsRejectedBeforeBlueZGivesUp() throws {
        try bodies().anUnansweredRequestIsRejectedBeforeBlueZGivesUp()
    }
    func testAnAdapterWithoutKeysIsReportedAndRepaired() throws {
        try bodies().anAdapterWithoutKeysIsReportedAndRepaired()
    }
}

/// A peripheral manager that a virtual central pairs with, with each version of BlueZ.
final class SimulatedPairingServerTests: EachVersionTestCase {
    func bodies() -> PairingServerBodies {
        let stage = SimulatedStage.inProcess(bluez: bluez)
        return PairingServerBodies(on: stage, central: VirtualStageCentral(on: stage))
    }
}
