import BlueZSimulator
import TestSupport
import XCTest

typealias ScanBodiesTests = WireScanTests
typealias CentralBodiesTests = WireCentralTests
typealias PairingBodiesTests = WirePairingTests
typealias PeripheralBodiesTests = WirePeripheralTests
typealias BusBodiesTests = DBusConnectionTests

/// Ring 3: the scan tests through a real `dbus-daemon`.
final class WireScanTests: XCTestCase {
    func bodies() throws -> ScanBodies { ScanBodies(on: try SimulatedStage.onPrivateBus()) }
}

/// Ring 3: the central role through a real `dbus-daemon`.
final class WireCentralTests: XCTestCase {
    func bodies() throws -> CentralBodies { CentralBodies(on: try SimulatedStage.onPrivateBus()) }
}

/// Ring 3: pairings of a central manager through a real `dbus-daemon`, which carries the calls of the agents.
final class WirePairingTests: XCTestCase {
    func bodies() throws -> PairingBodies { PairingBodies(on: try SimulatedStage.onPrivateBus()) }

    func testAnUnansweredRequestIsRejectedBeforeBlueZGivesUp() throws {
        try bodies().anUnansweredRequestIsRejectedBeforeBlueZGivesUp(answerTimeout: 5)
    }
}

/// Ring 3: our peripheral and our centrals through a real `dbus-daemon`, on adapters of the simulator.
final class WirePeripheralTests: XCTestCase {
    func bodies() throws -> PeripheralBodies { PeripheralBodies(on: try SimulatedStage.onPrivateBus(adapters: 2)) }

    /// With a second central on an adapter of its own.
    private func withTwoCentrals(_ body: (PeripheralBodies, any StageCentral) throws -> Void) throws {
        let stage = try SimulatedStage.onPrivateBus(adapters: 3)
        try body(PeripheralBodies(on: stage), OwnCentral(on: stage.withCentral(on: "hci2")))
    }

    func testLongValuesTakeSeveralPackets() throws { try bodies().longValuesTakeSeveralPackets(mtu: 517) }
    func testTwoSubscribersReceiveEachValueOnceInOrder() throws {
        try withTwoCentrals { try $0.twoSubscribersReceiveEachValueOnceInOrder(with: $1) }
    }
    func testUpdatesForOneCentralKeepTheirPlace() throws {
        try withTwoCentrals { try $0.updatesForOneCentralKeepTheirPlace(with: $1) }
    }
    func testUpdatesForOneCentralAreRefused() throws {
        try PeripheralBodies(on: SimulatedStage.onPrivateBus(adapters: 2, bluez: .v5_72))
            .updatesForOneCentralAreRefused()
    }
    func testASubscriberStaysWhenAnotherOneLeaves() throws {
        try withTwoCentrals { try $0.aSubscriberStaysWhenAnotherOneLeaves($1) }
    }
}

/// Connections on a real daemon; DBusTests has the same tests on the in-process bus.
final class DBusConnectionTests: XCTestCase {
    func bodies() throws -> BusBodies { BusBodies(on: try .daemon()) }
}
