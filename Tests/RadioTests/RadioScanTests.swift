import TestSupport
import XCTest

/// Ring 4: the scan tests on real `bluetoothd`.
final class RadioScanTests: XCTestCase {
    private func bodies() throws -> ScanBodies { ScanBodies(on: try RadioStage()) }

    func testReportsWhatIsAdvertised() throws { try bodies().reportsWhatIsAdvertised() }
    func testReportsOnlyWhoAdvertisesTheService() throws { try bodies().reportsOnlyWhoAdvertisesTheService() }
    func testAScanThatTimesOutStops() throws { try bodies().aScanThatTimesOutStops() }
    func testATimeOutAfterADiscoveryIsNoError() throws { try bodies().aTimeOutAfterADiscoveryIsNoError() }
    func testASecondScanOfOneManagerIsRefused() throws { try bodies().aSecondScanOfOneManagerIsRefused() }
    func testStoppingLeavesNoDiscoveryBehind() throws { try bodies().stoppingLeavesNoDiscoveryBehind() }
    func testTheStateFollowsThePower() throws { try bodies().theStateFollowsThePower() }
    func testAScanGoesOnAfterTheDaemonsRestart() throws { try bodies().aScanGoesOnAfterTheDaemonsRestart() }
}
