import BlueCapKit
import TestSupport
import XCTest

/// Ring 4: our peripheral on `hci1` pairs with our central on `hci0`. One `bluetoothd` serves both, so each has a connection to
/// the bus of its own, with an agent of its own: a second spelling of the bus's address makes one.
final class RadioPairingServerTests: XCTestCase {
    private func bodies() throws -> PairingServerBodies {
        let stage = try RadioStage()
        let central = OwnCentral(
            on: stage, busAddress: "unix:path=/run/dbus/system_bus_socket")
        return PairingServerBodies(on: stage, central: central)
    }

    func testAnUnpairedCentralIsRefused() throws { try bodies().anUnpairedCentralIsRefused() }
    func testAPairedCentralUsesWhatItsPairingAllows() throws { try bodies().aPairedCentralUsesWhatItsPairingAllows() }
    func testABondedCentralReadsAfterItReturnsWithoutAQuestion() throws {
        try bodies().aBondedCentralReadsAfterItReturnsWithoutAQuestion()
    }
    func testABondedCentralKeepsItsSubscription() throws { try bodies().aBondedCentralKeepsItsSubscription() }
    func testTheServerComparesANumber() throws { try bodies().theServerComparesANumber() }
    func testTheServerEntersAPasskey() throws { try bodies().theServerEntersAPasskey() }
    func testTheServerDisplaysAPasskey() throws {
        try bodies().theServerDisplaysAPasskey()
    }
    func testAWrongPasskeyOfTheServerFails() throws { try bodies().aWrongPasskeyOfTheServerFails() }
    func testRejectingTheCentralLeavesNoBond() throws { try bodies().rejectingTheCentralLeavesNoBond() }
    func testWithRejectNoCentralPairs() throws { try bodies().withRejectNoCentralPairs() }
    func testNoNewCentralPairsWhileTheAdapterIsNotPairable() throws {
        try bodies().noNewCentralPairsWhileTheAdapterIsNotPairable()
    }
    func testForgettingEndsTheBond() throws { try bodies().forgettingEndsTheBond() }
}
