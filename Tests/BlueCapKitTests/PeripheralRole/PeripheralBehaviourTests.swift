import TestSupport

/// Ring 2: our peripheral and our central in one process, on two adapters of the simulator.
final class PeripheralBehaviourTests: EachVersionTestCase {
    private func bodies() -> PeripheralBodies {
        let stage = SimulatedStage.inProcess(adapters: 2, bluez: bluez)
        return PeripheralBodies(on: stage, central: OwnCentral(on: stage))
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
    func testAServiceThatComesAndGoesLeavesTheOthersAlone() throws {
        try bodies().aServiceThatComesAndGoesLeavesTheOthersAlone()
    }
    func testAllComesBackAfterTheDaemonsDeath() throws { try bodies().allComesBackAfterTheDaemonsDeath() }
}
