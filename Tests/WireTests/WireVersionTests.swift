import BlueZSimulator
import TestSupport
import XCTest

/// Ring 3: the shared tests that depend on the version of BlueZ most, on the versions that the others do not have.
final class WireVersionTests: EachVersionTestCase {
    override var versions: [BlueZVersion] { [.v5_66, .v5_72, .v5_87] }

    private func stage() throws -> SimulatedStage { try SimulatedStage.onPrivateBus(bluez: bluez) }

    func testReportsWhatIsAdvertised() throws { try ScanBodies(on: try stage()).reportsWhatIsAdvertised() }
    func testReportsOnlyWhoAdvertisesTheService() throws {
        try ScanBodies(on: try stage()).reportsOnlyWhoAdvertisesTheService()
    }
    func testTheStateFollowsThePower() throws { try ScanBodies(on: try stage()).theStateFollowsThePower() }
    func testAPeripheralThatEndsTheLinkIsConnectedAgain() throws {
        try CentralBodies(on: try stage()).aPeripheralThatEndsTheLinkIsConnectedAgain()
    }
    func testAllServicesOfSeveralApplicationsAreFound() throws {
        try CentralBodies(on: try stage()).allServicesOfSeveralApplicationsAreFound()
    }
    func testReceivesWhatIsIndicated() throws { try CentralBodies(on: try stage()).receivesWhatIsIndicated() }
    func testASubscriptionComesBackWithTheLink() throws {
        try CentralBodies(on: try stage()).aSubscriptionComesBackWithTheLink()
    }
}
