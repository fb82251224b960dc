import BlueZSimulator
import TestSupport

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
