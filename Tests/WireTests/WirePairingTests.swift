import TestSupport
import XCTest

/// Ring 3: pairings of a central manager through a real `dbus-daemon`, which carries the calls of the agents.
final class WirePairingTests: XCTestCase {
    private func bodies() throws -> PairingBodies { PairingBodies(on: try SimulatedStage.onPrivateBus()) }

    func testJustWorksPairsAndKeepsTheLink() throws { try bodies().justWorksPairsAndKeepsTheLink() }
    func testANumberIsComparedOnBothSides() throws { try bodies().aNumberIsComparedOnBothSides() }
    func testAPasskeyIsEnteredHere() throws { try bodies().aPasskeyIsEnteredHere() }
    func testAPasskeyIsDisplayedHere() throws { try bodies().aPasskeyIsDisplayedHere() }
    func testAWrongPasskeyFails() throws { try bodies().aWrongPasskeyFails() }
    func testAWrongPasskeyOfThePeerFails() throws { try bodies().aWrongPasskeyOfThePeerFails() }
    func testANumberThatThePeerRejectsFails() throws { try bodies().aNumberThatThePeerRejectsFails() }
    func testARejectionOfOursIsNamedSo() throws { try bodies().aRejectionOfOursIsNamedSo() }
    func testWithoutAHandlerThePolicyRejects() throws { try bodies().withoutAHandlerThePolicyRejects() }
    func testAnUnansweredRequestIsRejectedBeforeBlueZGivesUp() throws {
        try bodies().anUnansweredRequestIsRejectedBeforeBlueZGivesUp(answerTimeout: 5)
    }
    func testCancellingLeavesNoBondAlsoIfThePeerAcceptsLater() throws {
        try bodies().cancellingLeavesNoBondAlsoIfThePeerAcceptsLater()
    }
    func testALinkThatIsLostWhilePairingFailsAndLeavesNoBond() throws {
        try bodies().aLinkThatIsLostWhilePairingFailsAndLeavesNoBond()
    }
    func testTwoManagersShareOnePairing() throws { try bodies().twoManagersShareOnePairing() }
    func testAPairingOfAnotherProgramIsJoined() throws { try bodies().aPairingOfAnotherProgramIsJoined() }
    func testABondOfAnotherProgramIsReported() throws { try bodies().aBondOfAnotherProgramIsReported() }
    func testAPairingThatNoManagerWantsIsRejected() throws { try bodies().aPairingThatNoManagerWantsIsRejected() }
    func testAnotherProgramCannotCallTheAgent() throws { try bodies().anotherProgramCannotCallTheAgent() }
    func testTheAgentLeavesWithTheLastManager() throws { try bodies().theAgentLeavesWithTheLastManager() }
    func testTheAgentIsRegisteredAgainAfterARestart() throws { try bodies().theAgentIsRegisteredAgainAfterARestart() }
    func testAnEncryptedReadPairsOnDemandAndIsRepeated() throws {
        try bodies().anEncryptedReadPairsOnDemandAndIsRepeated()
    }
    func testASubscriptionPairsOnDemand() throws { try bodies().aSubscriptionPairsOnDemand() }
    func testWithRejectAnEncryptedReadFailsAndSaysWhichSecurityItNeeds() throws {
        try bodies().withRejectAnEncryptedReadFailsAndSaysWhichSecurityItNeeds()
    }
    func testAnAuthenticatedReadAfterJustWorksFails() throws { try bodies().anAuthenticatedReadAfterJustWorksFails() }
    func testABondedPeripheralIsReadAfterReconnectingWithoutAQuestion() throws {
        try bodies().aBondedPeripheralIsReadAfterReconnectingWithoutAQuestion()
    }
    func testABondOutlivesTheDaemon() throws { try bodies().aBondOutlivesTheDaemon() }
    func testAPeripheralWithoutKeysIsReportedAndRepaired() throws {
        try bodies().aPeripheralWithoutKeysIsReportedAndRepaired()
    }
    func testUnpairEndsTheLinkAndTheBond() throws { try bodies().unpairEndsTheLinkAndTheBond() }
    func testAPrivateAddressChangesAndThePeripheralStays() throws {
        try bodies().aPrivateAddressChangesAndThePeripheralStays()
    }
    func testARefusedQuestionIsAskedAgain() throws { try bodies().aRefusedQuestionIsAskedAgain() }
    func testARequestEndsWhenItsDeviceIsRemoved() throws { try bodies().aRequestEndsWhenItsDeviceIsRemoved() }
    func testTheBondOfARefusedPasskeyIsRemovedWhenThePowerReturns() throws {
        try bodies().theBondOfARefusedPasskeyIsRemovedWhenThePowerReturns()
    }
    func testAPairingWhileServicesAreDiscoveredSucceeds() throws {
        try bodies().aPairingWhileServicesAreDiscoveredSucceeds()
    }
    func testAPairingWithADeadBondFails() throws { try bodies().aPairingWithADeadBondFails() }
}
