import TestSupport
import XCTest

/// ``PairingServerBodies``; RadioTests has a link to this file.
extension PairingServerBodiesTests {
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
