import Bluejay
import BlueZSimulator
import XCTest

/// The guide's section Scanning.
final class BluejayScanTests: DocumentedBluejayCase, @unchecked Swift.Sendable {
    private final class TableView {
        var reloads = 0
        func reloadData() { reloads += 1 }
    }

    /// The guide's view controller with a table of what was discovered.
    private final class ViewController {
        let bluejay: Bluejay
        let seen: Notes
        let heartRateService = ServiceIdentifier(uuid: "180D")
        let tableView = TableView()
        var peripherals: [ScanDiscovery] = []

        init(_ bluejay: Bluejay, _ seen: Notes) { (self.bluejay, self.seen) = (bluejay, seen) }

        private func debugPrint(_ text: String) { seen.note(text) }

        func basicScan() {
            bluejay.scan(
                serviceIdentifiers: [heartRateService],
                discovery: { [weak self] (discovery, discoveries) -> ScanAction in
                    guard let weakSelf = self else {
                        return .stop
                    }

                    weakSelf.peripherals = discoveries
                    weakSelf.tableView.reloadData()

                    return .continue
                },
                stopped: { (discoveries, error) in
                    if let error = error {
                        self.debugPrint("Scan stopped with error: \(error.localizedDescription)")
                    } else {
                        self.debugPrint("Scan stopped without error.")
                    }
                })
        }

        func monitor() {
            bluejay.scan(
                duration: 5,
                allowDuplicates: true,
                serviceIdentifiers: nil,
                discovery: { [weak self] (discovery, discoveries) -> ScanAction in
                    guard let weakSelf = self else {
                        return .stop
                    }

                    weakSelf.peripherals = discoveries
                    weakSelf.tableView.reloadData()

                    return .continue
                },
                expired: { [weak self] (lostDiscovery, discoveries) -> ScanAction in
                    guard let weakSelf = self else {
                        return .stop
                    }

                    weakSelf.debugPrint("Lost discovery: \(lostDiscovery)")

                    weakSelf.peripherals = discoveries
                    weakSelf.tableView.reloadData()

                    return .continue
                }
            ) { (discoveries, error) in
                if let error = error {
                    self.debugPrint("Scan stopped with error: \(error.localizedDescription)")
                } else {
                    self.debugPrint("Scan stopped without error.")
                }
            }
        }
    }

    func testABasicScan() {
        startBluejay()
        simulator.add(Self.sensor)
        let controller = ViewController(bluejay, seen)
        controller.basicScan()
        eventually("the discovery") { controller.tableView.reloads == 1 }
        pass(1)
        XCTAssertEqual(controller.peripherals.map(\.peripheralIdentifier.name), ["Heart"])
        bluejay.stopScanning()
        eventually("the end") { seen.contains("Scan stopped without error.") }
        XCTAssertEqual(controller.tableView.reloads, 1)
    }

    func testABasicScanStopsWithTheErrorThatThereIs() {
        startBluejay()
        let controller = ViewController(bluejay, seen)
        controller.basicScan()
        simulator.simulatePowerOff()
        eventually("the end") {
            seen.texts.first?.hasPrefix("Scan stopped with error: Bluetooth is not available") == true
        }
    }

    func testMonitoringReceivesEachAdvertisementForItsDuration() {
        startBluejay()
        simulator.add(Self.sensor)
        let controller = ViewController(bluejay, seen)
        controller.monitor()
        eventually("the end", limit: 7) { seen.contains("Scan stopped without error.") }
        XCTAssertGreaterThan(controller.tableView.reloads, 20)
        XCTAssertEqual(controller.peripherals.count, 1)
    }

    func testMonitoringReportsPeripheralsThatStopAdvertising() {
        let scan = Bluejay.scan
        startBluejay()
        simulator.add(Self.sensor)
        let seen = seen
        scan(bluejay)(
            0, true, nil, { _, _ in .continue },
            { lostDiscovery, discoveries in
                seen.note("lost \(lostDiscovery.peripheralIdentifier.name), \(discoveries.count) left")
                return .stop
            }, { discoveries, error in seen.note("stopped \(discoveries.count)") })
        pass(2)
        simulator.remove(Self.address)
        eventually("the end") { seen.contains("stopped 0") }
        XCTAssertEqual(seen.texts, ["lost Heart, 0 left", "stopped 0"])
    }

    func testADiscoveryIsAnsweredWithAnAction() {
        // Each of the document's four.
        func isExhaustive(_ action: ScanAction) -> String {
            switch action {
            case .continue: "continue"
            case .blacklist: "blacklist"
            case .stop: "stop"
            case .connect: "connect"
            }
        }
        XCTAssertEqual([ScanAction.continue, .blacklist, .stop].map(isExhaustive), ["continue", "blacklist", "stop"])
    }

    func testABlacklistedPeripheralIsIgnoredForTheRestOfTheScan() {
        startBluejay()
        simulator.add(Self.sensor)
        let seen = seen
        bluejay.scan(
            duration: 2, allowDuplicates: true, serviceIdentifiers: nil,
            discovery: { _, _ in
                seen.note("discovery")
                return .blacklist
            }, stopped: { _, _ in seen.note("stopped") })
        eventually("the end") { seen.contains("stopped") }
        XCTAssertEqual(seen.texts, ["discovery", "stopped"])
    }

    func testTheScanStopsAndAConnectionFollows() {
        startBluejay()
        simulator.add(Self.sensor)
        let seen = seen
        let connectionResult: (ConnectionResult) -> Void = { result in
            guard case .success(let peripheral) = result else { return }
            seen.note("connected \(peripheral.name)")
        }
        bluejay.scan(
            serviceIdentifiers: [ServiceIdentifier(uuid: "180D")],
            discovery: { discovery, _ in .connect(discovery, connectionResult) },
            stopped: { _, _ in seen.note("stopped") })
        eventually("the connection") { bluejay.isConnected }
        XCTAssertEqual(seen.texts, ["stopped", "connected Heart"])
    }

    func testAConnectionIsMatchedWithTwoValues() {
        startBluejay()
        simulator.add(Self.sensor)
        let seen = seen
        // An action that is taken apart and put together again keeps its time-out.
        func logged(_ action: ScanAction) -> ScanAction {
            guard case .connect(let discovery, let completion) = action else { return action }
            seen.note("connect \(discovery.peripheralIdentifier.name)")
            return .connect(discovery) { (result: ConnectionResult) in
                if case .failure(let error) = result { seen.note("\(error as? BluejayError == .connectionTimedOut)") }
                completion(result)
            }
        }
        let simulator = simulator
        bluejay.scan(
            serviceIdentifiers: nil,
            discovery: { discovery, _ in
                logged(.connect(discovery, .seconds(5), nil, { (_: ConnectionResult) in seen.note("completion") }))
            }, stopped: { _, _ in simulator.remove(Self.address) })
        eventually("the time-out", limit: 20) { seen.contains("completion") }
        XCTAssertEqual(seen.texts, ["connect Heart", "true", "completion"])
    }

    func testTheConnectionThatFollowsMayHaveATimeOutAndWarnings() {
        startBluejay()
        simulator.add(Self.sensor)
        let seen = seen
        bluejay.scan(
            serviceIdentifiers: nil,
            discovery: { discovery, _ in
                .connect(
                    discovery, .seconds(15),
                    WarningOptions(notifyOnConnection: false, notifyOnDisconnection: true, notifyOnNotification: false)
                ) { _ in seen.note("connected") }
            }, stopped: { _, _ in })
        eventually("the connection") { seen.contains("connected") }
        XCTAssertTrue(bluejay.isConnected)
    }
}
