import BlueZSimulator
import TestSupport
import XCTest

/// Ring 3: our peripheral and our centrals through a real `dbus-daemon`, on adapters of the simulator.
final class WirePeripheralTests: XCTestCase {
    private func bodies() throws -> PeripheralBodies {
        let stage = try SimulatedStage.onPrivateBus(adapters: 2)
        return PeripheralBodies(on: stage, central: OwnCentral(on: stage))
    }

    /// With a second central on an adapter of its own.
    private func withTwoCentrals(_ body: (PeripheralBodies, any StageCentral) throws -> Void) throws {
        let stage = try SimulatedStage.onPrivateBus(adapters: 3)
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
        try withTwoCentrals { try $0.updatesForOneCentralKeepTheirPlace(with: $1) }
    }
    func testUpdatesForOneCentralAreRefused() throws {
        let stage = try SimulatedStage.onPrivateBus(adapters: 2, bluez: .v5_72)
        try PeripheralBodies(on: stage, central: OwnCentral(on: stage)).updatesForOneCentralAreRefused()
    }
    func testASubscriberStaysWhenAnotherOneLeaves() throws {
        try withTwoCentrals { try $0.aSubscriberStaysWhenAnotherOneLeaves($1) }
    }
    func testAServiceThatComesAndGoesLeavesTheOthersAlone() throws {
        try bodies().aServiceThatComesAndGoesLeavesTheOthersAlone()
    }
    func testAllComesBackAfterTheDaemonsDeath() throws { try bodies().allComesBackAfterTheDaemonsDeath() }
}
