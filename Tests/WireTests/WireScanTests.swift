import TestSupport
import XCTest

/// Ring 3: the scan tests through a real `dbus-daemon`.
final class WireScanTests: XCTestCase {
    private func bodies() throws -> ScanBodies { ScanBodies(on: try SimulatedStage.onPrivateBus()) }

    func testReportsWhatIsAdvertised() throws { try bodies().reportsWhatIsAdvertised() }
    func testReportsOnlyWhoAdvertisesTheService() throws { try bodies().reportsOnlyWhoAdvertisesTheService() }
    func testAScanThatTimesOutStops() throws { try bodies().aScanThatTimesOutStops() }
    func testATimeOutAfterADiscoveryIsNoError() throws { try bodies().aTimeOutAfterADiscoveryIsNoError() }
    func testASecondScanOfOneManagerIsRefused() throws { try bodies().aSecondScanOfOneManagerIsRefused() }
    func testStoppingLeavesNoDiscoveryBehind() throws { try bodies().stoppingLeavesNoDiscoveryBehind() }
    func testTheStateFollowsThePower() throws { try bodies().theStateFollowsThePower() }
    func testAScanGoesOnAfterTheDaemonsRestart() throws { try bodies().aScanGoesOnAfterTheDaemonsRestart() }
}
