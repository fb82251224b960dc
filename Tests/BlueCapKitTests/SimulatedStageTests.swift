import BlueZSimulator
import TestSupport
import XCTest

/// Ring 2: the central role on the loopback bus, in virtual time.
final class CentralBehaviourTests: EachVersionTestCase {
    private func bodies() throws -> CentralBodies { CentralBodies(on: SimulatedStage.inProcess(bluez: bluez)) }

    func testAPeripheralThatEndsTheLinkIsConnectedAgain() throws {
        try bodies().aPeripheralThatEndsTheLinkIsConnectedAgain()
    }
    func testALinkThatIsAskedForWhileTheLastOneEndsStays() throws {
        try bodies().aLinkThatIsAskedForWhileTheLastOneEndsStays()
    }
    func testAPeripheralThatIsNotThereTimesOutAndIsConnectedWhenItIsBack() throws {
        try bodies().aPeripheralThatIsNotThereTimesOutAndIsConnectedWhenItIsBack()
    }
    func testTheDaemonsRestartEndsALinkThatComesBack() throws { try bodies().theDaemonsRestartEndsALinkThatComesBack() }
    func testAllServicesOfSeveralApplicationsAreFound() throws {
        try bodies().allServicesOfSeveralApplicationsAreFound()
    }
    func testReadsWhatThereIs() throws { try bodies().readsWhatThereIs() }
    func testReadsAValueThatIsLongerThanAPacket() throws { try bodies().readsAValueThatIsLongerThanAPacket() }
    func testWritesWithAndWithoutResponse() throws { try bodies().writesWithAndWithoutResponse() }
    func testWritesAValueThatIsLongerThanAPacket() throws { try bodies().writesAValueThatIsLongerThanAPacket() }
    func testManyWritesAtOnceArriveInOrder() throws { try bodies().manyWritesAtOnceArriveInOrder() }
    func testWhatTheApplicationRefusesFailsWithItsCode() throws {
        try bodies().whatTheApplicationRefusesFailsWithItsCode()
    }
    func testScriptsHaveThePeripheralToThemselvesAndLeaveNoLinkBehind() throws {
        try bodies().scriptsHaveThePeripheralToThemselvesAndLeaveNoLinkBehind()
    }
    func testTwoCharacteristicsOfOneUUIDAreTwo() throws { try bodies().twoCharacteristicsOfOneUUIDAreTwo() }
    func testReceivesWhatIsNotifiedUntilItStops() throws { try bodies().receivesWhatIsNotifiedUntilItStops() }
    func testReceivesWhatIsNotifiedUntilTheLinkHasEnded() throws {
        try bodies().receivesWhatIsNotifiedUntilTheLinkHasEnded()
    }
    func testReceivesWhatIsIndicated() throws { try bodies().receivesWhatIsIndicated() }
    func testAReadWhileSubscribedIsNoNotification() throws { try bodies().aReadWhileSubscribedIsNoNotification() }
    func testASubscriptionAndWhatIsUnderWayOutliveAReset() throws {
        try bodies().aSubscriptionAndWhatIsUnderWayOutliveAReset()
    }
    func testASubscriptionComesBackWithTheLink() throws { try bodies().aSubscriptionComesBackWithTheLink() }
    func testAThousandNotificationsArriveInOrder() throws { try bodies().aThousandNotificationsArriveInOrder() }
    func testServicesGoAndComeWhileConnected() throws { try bodies().servicesGoAndComeWhileConnected() }
    func testAThousandNotificationsArriveInOrderThroughASocket() throws {
        try bodies().aThousandNotificationsArriveInOrderThroughASocket()
    }
    func testAnAttemptThatIsCancelledLeavesNothingBehind() throws {
        try bodies().anAttemptThatIsCancelledLeavesNothingBehind()
    }
}

/// Ring 2: the scan tests on the loopback bus, in virtual time.
final class LoopbackScanTests: EachVersionTestCase {
    private func bodies() throws -> ScanBodies { ScanBodies(on: SimulatedStage.inProcess(bluez: bluez)) }

    func testReportsWhatIsAdvertised() throws { try bodies().reportsWhatIsAdvertised() }
    func testReportsOnlyWhoAdvertisesTheService() throws { try bodies().reportsOnlyWhoAdvertisesTheService() }
    func testAScanThatTimesOutStops() throws { try bodies().aScanThatTimesOutStops() }
    func testATimeOutAfterADiscoveryIsNoError() throws { try bodies().aTimeOutAfterADiscoveryIsNoError() }
    func testASecondScanOfOneManagerIsRefused() throws { try bodies().aSecondScanOfOneManagerIsRefused() }
    func testStoppingLeavesNoDiscoveryBehind() throws { try bodies().stoppingLeavesNoDiscoveryBehind() }
    func testTheStateFollowsThePower() throws { try bodies().theStateFollowsThePower() }
    func testAScanGoesOnAfterTheDaemonsRestart() throws { try bodies().aScanGoesOnAfterTheDaemonsRestart() }
}

/// Ring 2: our peripheral and our centrals in one process, on adapters of the simulator.
final class PeripheralBehaviourTests: EachVersionTestCase {
    private func bodies() -> PeripheralBodies {
        let stage = SimulatedStage.inProcess(adapters: 2, bluez: bluez)
        return PeripheralBodies(on: stage, central: OwnCentral(on: stage))
    }

    /// With a second central on an adapter of its own.
    private func withTwoCentrals(_ body: (PeripheralBodies, any StageCentral) throws -> Void) throws {
        let stage = SimulatedStage.inProcess(adapters: 3, bluez: bluez)
        let bodies = PeripheralBodies(on: stage, central: OwnCentral(on: stage))
        try body(bodies, OwnCentral(on: stage.withCentral(on: "hci2")))
    }

    func testAllServicesAreFoundInTheirOrder() throws { try bodies().allServicesAreFoundInTheirOrder() }
    func testReadsAreAnsweredWithTheValue() throws { try bodies().readsAreAnsweredWithTheValue() }
    func testTheApplicationAnswersReads() throws { try bodies().theApplicationAnswersReads() }
    func testWritesArriveBothWays() throws { try bodies().writesArriveBothWays() }
    func testLongValuesTakeSeveralPackets() throws { try bodies().longValuesTakeSeveralPackets(mtu: 517) }
    func testWritesAreRefused() throws { try bodies().writesAreRefused() }
    func testAThousandUpdatesArriveInOrderOverASocket() throws {
        try bodies().aThousandUpdatesArriveInOrderOverASocket()
    }
    func testAThousandUpdatesArriveInOrderOverTheBus() throws {
        try bodies().aThousandUpdatesArriveInOrderOverTheBus()
    }
    func testIndicationsArriveInOrder() throws { try bodies().indicationsArriveInOrder() }
    func testAnUpdateOfNoBytesIsOneOfThem() throws { try bodies().anUpdateOfNoBytesIsOneOfThem() }
    func testUpdatesWaitForASubscriber() throws { try bodies().updatesWaitForASubscriber() }
    func testSubscribersComeAndGo() throws { try bodies().subscribersComeAndGo() }
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
    func testAServiceThatComesAndGoesLeavesTheOthersAlone() throws {
        try bodies().aServiceThatComesAndGoesLeavesTheOthersAlone()
    }
    func testAllComesBackAfterTheDaemonsDeath() throws { try bodies().allComesBackAfterTheDaemonsDeath() }
}

/// A central manager that pairs with virtual peripherals, with each version of BlueZ.
final class SimulatedPairingTests: EachVersionTestCase {
    private var bodies: PairingBodies { PairingBodies(on: SimulatedStage.inProcess(bluez: bluez)) }

    func testJustWorksPairsAndKeepsTheLink() throws { try bodies.justWorksPairsAndKeepsTheLink() }
    func testANumberIsComparedOnBothSides() throws { try bodies.aNumberIsComparedOnBothSides() }
    func testAPasskeyIsEnteredHere() throws { try bodies.aPasskeyIsEnteredHere() }
    func testAPasskeyIsDisplayedHere() throws { try bodies.aPasskeyIsDisplayedHere() }
    func testAWrongPasskeyFails() throws { try bodies.aWrongPasskeyFails() }
    func testAWrongPasskeyOfThePeerFails() throws { try bodies.aWrongPasskeyOfThePeerFails() }
    func testANumberThatThePeerRejectsFails() throws { try bodies.aNumberThatThePeerRejectsFails() }
    func testARejectionOfOursIsNamedSo() throws { try bodies.aRejectionOfOursIsNamedSo() }
    func testWithoutAHandlerThePolicyRejects() throws { try bodies.withoutAHandlerThePolicyRejects() }
    func testAnUnansweredRequestIsRejectedBeforeBlueZGivesUp() throws {
        try bodies.anUnansweredRequestIsRejectedBeforeBlueZGivesUp()
    }
    func testCancellingLeavesNoBondAlsoIfThePeerAcceptsLater() throws {
        try bodies.cancellingLeavesNoBondAlsoIfThePeerAcceptsLater()
    }
    func testALinkThatIsLostWhilePairingFailsAndLeavesNoBond() throws {
        try bodies.aLinkThatIsLostWhilePairingFailsAndLeavesNoBond()
    }
    func testTwoManagersShareOnePairing() throws { try bodies.twoManagersShareOnePairing() }
    func testAPairingOfAnotherProgramIsJoined() throws { try bodies.aPairingOfAnotherProgramIsJoined() }
    func testABondOfAnotherProgramIsReported() throws { try bodies.aBondOfAnotherProgramIsReported() }
    func testAPairingThatNoManagerWantsIsRejected() throws { try bodies.aPairingThatNoManagerWantsIsRejected() }
    func testAnotherProgramCannotCallTheAgent() throws { try bodies.anotherProgramCannotCallTheAgent() }
    func testTheAgentLeavesWithTheLastManager() throws { try bodies.theAgentLeavesWithTheLastManager() }
    func testTheAgentIsRegisteredAgainAfterARestart() throws { try bodies.theAgentIsRegisteredAgainAfterARestart() }
    func testAnEncryptedReadPairsOnDemandAndIsRepeated() throws {
        try bodies.anEncryptedReadPairsOnDemandAndIsRepeated()
    }
    func testASubscriptionPairsOnDemand() throws { try bodies.aSubscriptionPairsOnDemand() }
    func testWithRejectAnEncryptedReadFailsAndSaysWhichSecurityItNeeds() throws {
        try bodies.withRejectAnEncryptedReadFailsAndSaysWhichSecurityItNeeds()
    }
    func testAnAuthenticatedReadAfterJustWorksFails() throws { try bodies.anAuthenticatedReadAfterJustWorksFails() }
    func testABondedPeripheralIsReadAfterReconnectingWithoutAQuestion() throws {
        try bodies.aBondedPeripheralIsReadAfterReconnectingWithoutAQuestion()
    }
    func testABondOutlivesTheDaemon() throws { try bodies.aBondOutlivesTheDaemon() }
    func testAPeripheralWithoutKeysIsReportedAndRepaired() throws {
        try bodies.aPeripheralWithoutKeysIsReportedAndRepaired()
    }
    func testAnAdapterWithoutKeysIsReportedAndRepaired() throws {
        try bodies.anAdapterWithoutKeysIsReportedAndRepaired()
    }
    func testUnpairEndsTheLinkAndTheBond() throws { try bodies.unpairEndsTheLinkAndTheBond() }
    func testAPrivateAddressChangesAndThePeripheralStays() throws {
        try bodies.aPrivateAddressChangesAndThePeripheralStays()
    }
    func testARefusedQuestionIsAskedAgain() throws { try bodies.aRefusedQuestionIsAskedAgain() }
    func testARequestEndsWhenItsDeviceIsRemoved() throws { try bodies.aRequestEndsWhenItsDeviceIsRemoved() }
    func testTheBondOfARefusedPasskeyIsRemovedWhenThePowerReturns() throws {
        try bodies.theBondOfARefusedPasskeyIsRemovedWhenThePowerReturns()
    }
    func testAPairingWhileServicesAreDiscoveredSucceeds() throws {
        try bodies.aPairingWhileServicesAreDiscoveredSucceeds()
    }
    func testAPairingWithADeadBondFails() throws { try bodies.aPairingWithADeadBondFails() }
}

/// A peripheral manager that a virtual central pairs with, with each version of BlueZ.
final class SimulatedPairingServerTests: EachVersionTestCase {
    private var bodies: PairingServerBodies {
        let stage = SimulatedStage.inProcess(bluez: bluez)
        return PairingServerBodies(on: stage, central: VirtualStageCentral(on: stage))
    }

    func testAnUnpairedCentralIsRefused() throws { try bodies.anUnpairedCentralIsRefused() }
    func testAPairedCentralUsesWhatItsPairingAllows() throws { try bodies.aPairedCentralUsesWhatItsPairingAllows() }
    func testABondedCentralReadsAfterItReturnsWithoutAQuestion() throws {
        try bodies.aBondedCentralReadsAfterItReturnsWithoutAQuestion()
    }
    func testABondedCentralKeepsItsSubscription() throws { try bodies.aBondedCentralKeepsItsSubscription() }
    func testTheServerComparesANumber() throws { try bodies.theServerComparesANumber() }
    func testTheServerEntersAPasskey() throws { try bodies.theServerEntersAPasskey() }
    func testTheServerDisplaysAPasskey() throws { try bodies.theServerDisplaysAPasskey() }
    func testAWrongPasskeyOfTheServerFails() throws { try bodies.aWrongPasskeyOfTheServerFails() }
    func testRejectingTheCentralLeavesNoBond() throws { try bodies.rejectingTheCentralLeavesNoBond() }
    func testWithRejectNoCentralPairs() throws { try bodies.withRejectNoCentralPairs() }
    func testNoNewCentralPairsWhileTheAdapterIsNotPairable() throws {
        try bodies.noNewCentralPairsWhileTheAdapterIsNotPairable()
    }
    func testForgettingEndsTheBond() throws { try bodies.forgettingEndsTheBond() }
}
