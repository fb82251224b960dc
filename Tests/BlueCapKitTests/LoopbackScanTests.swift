import TestSupport

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
