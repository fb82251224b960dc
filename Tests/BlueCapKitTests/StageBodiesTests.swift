import TestSupport
import XCTest

// The calls of the shared bodies, in rings 2, 3 and 4: WireTests and RadioTests have links to this file. Each module says by type
// aliases which of its classes have these tests; such a class has `bodies()`.

/// ``ScanBodies``.
extension ScanBodiesTests {
    func testReportsWhatIsAdvertised() throws { try bodies().reportsWhatIsAdvertised() }
    func testReportsOnlyWhoAdvertisesTheService() throws { try bodies().reportsOnlyWhoAdvertisesTheService() }
    func testAScanThatTimesOutStops() throws { try bodies().aScanThatTimesOutStops() }
    func testATimeOutAfterADiscoveryIsNoError() throws { try bodies().aTimeOutAfterADiscoveryIsNoError() }
    func testASecondScanOfOneManagerIsRefused() throws { try bodies().aSecondScanOfOneManagerIsRefused() }
    func testStoppingLeavesNoDiscoveryBehind() throws { try bodies().stoppingLeavesNoDiscoveryBehind() }
    func testTheStateFollowsThePower() throws { try bodies().theStateFollowsThePower() }
    func testAScanGoesOnAfterTheDaemonsRestart() throws { try bodies().aScanGoesOnAfterTheDaemonsRestart() }
}

/// ``CentralBodies``.
extension CentralBodiesTests {
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
    func testAScriptStaysOnTheManagersExecutor() throws { try bodies().aScriptStaysOnTheManagersExecutor() }
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

/// ``PairingBodies``.
extension PairingBodiesTests {
    func testJustWorksPairsAndKeepsTheLink() throws { try bodies().justWorksPairsAndKeepsTheLink() }
    func testANumberIsComparedOnBothSides() throws { try bodies().aNumberIsComparedOnBothSides() }
    func testAPasskeyIsEnteredHere() throws { try bodies().aPasskeyIsEnteredHere() }
    func testAPasskeyIsDisplayedHere() throws { try bodies().aPasskeyIsDisplayedHere() }
    func testAWrongPasskeyFails() throws { try bodies().aWrongPasskeyFails() }
    func testAWrongPasskeyOfThePeerFails() throws { try bodies().aWrongPasskeyOfThePeerFails() }
    func testANumberThatThePeerRejectsFails() throws { try bodies().aNumberThatThePeerRejectsFails() }
    func testARejectionOfOursIsNamedSo() throws { try bodies().aRejectionOfOursIsNamedSo() }
    func testWithoutAHandlerThePolicyRejects() throws { try bodies().withoutAHandlerThePolicyRejects() }
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

/// ``PeripheralBodies``, for one central.
extension PeripheralBodiesTests {
    func testAllServicesAreFoundInTheirOrder() throws { try bodies().allServicesAreFoundInTheirOrder() }
    func testReadsAreAnsweredWithTheValue() throws { try bodies().readsAreAnsweredWithTheValue() }
    func testTheApplicationAnswersReads() throws { try bodies().theApplicationAnswersReads() }
    func testWritesArriveBothWays() throws { try bodies().writesArriveBothWays() }
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
    func testAServiceThatComesAndGoesLeavesTheOthersAlone() throws {
        try bodies().aServiceThatComesAndGoesLeavesTheOthersAlone()
    }
    func testAllComesBackAfterTheDaemonsDeath() throws { try bodies().allComesBackAfterTheDaemonsDeath() }
}
