import TestSupport
import XCTest

/// Ring 4: the central role on real `bluetoothd`, with a peripheral that shares no code with us.
final class RadioCentralTests: XCTestCase {
    private func bodies() throws -> CentralBodies { CentralBodies(on: try RadioStage()) }

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
