import BlueZSimulator
import BlueCapFutures
import BlueCapReactor
import TestSupport
import XCTest

@testable import BlueCapKit

/// What comes back after a program has ended in the middle of things.
///
/// A manager that keeps its links when it is released leaves the same state as a killed process: BlueZ still has the links, and
/// the file has the requests.
final class RestorationBehaviourTests: ConnectionStage {
    private let folder = TemporaryFolder()
    /// The programs that are running.
    private var running: [CentralManager] = []
    private let identifier = RestorationSamples.identifier
    private var place: RestorationPlace { RestorationPlace(identifier: identifier, root: folder.path) }

    private static let sensor = VirtualPeripheral(
        strapAddress, addressType: .random, advertisement: Advertisement(localName: "Strap"), interval: 0.2,
        services: [
            VirtualService(
                "180D",
                characteristics: [
                    VirtualCharacteristic("2A37", [.notify]), VirtualCharacteristic("2A38", [.read], value: [1]),
                ])
        ])

    private func configuration(keepingLinks: Bool = true) -> CentralManager.Configuration {
        CentralManager.Configuration(
            busAddress: simulator.address, restoreIdentifier: identifier, stateDirectory: folder.path,
            keepsLinks: keepingLinks)
    }

    /// Returns a manager that has read the kept state, and what it has reported of it.
    private func restoring(_ configuration: CentralManager.Configuration? = nil) throws -> (
        CentralManager, CentralSession.Restored
    ) {
        let manager = manager(configuration ?? self.configuration())
        running.append(manager)
        manager.session.keeper?.wait()
        return (manager, try simulator.outcome(of: manager.session.restoredPromise.future, within: 10))
    }

    private func failure(_ manager: CentralManager) -> CentralManagerError? {
        manager.session.keeper?.wait()
        return simulator.failure(of: manager.whenStateRestored() as Future<Void>, within: 10) as? CentralManagerError
    }

    /// Everything that was decided so far is on the disk.
    private func keep(_ manager: CentralManager) {
        simulator.advance(by: 1)
        manager.session.keeper?.wait()
    }

    private func kept() throws -> RestorationState {
        let data = try Data(contentsOf: URL(fileURLWithPath: place.file))
        return try RestorationState(decoding: data, for: identifier)
    }

    private var subscriptions: Int { simulator.subscriptions(to: "2A37", at: Self.strapAddress).count }

    private func measurement(of peripheral: Peripheral) throws -> Characteristic {
        try simulator.outcome(of: peripheral.discoverAllServices() as Future<Peripheral>, within: 10)
        let service = try XCTUnwrap(peripheral.service(CBUUID(string: "180D")))
        try simulator.outcome(of: service.discoverAllCharacteristics() as Future<Service>, within: 10)
        return try XCTUnwrap(service.characteristic(CBUUID(string: "2A37")))
    }

    /// A program that connected, subscribed, and is no more.
    private func runOnce(_ configuration: CentralManager.Configuration? = nil) throws {
        let (manager, restored) = try restoring(configuration)
        XCTAssertEqual(restored.peripherals, [])
        let strap = find([Self.sensor], with: manager)[0]
        journal.watch(strap.connect(timeoutRetries: 7, connectionTimeout: 20))
        expect(.connect)
        try simulator.outcome(of: measurement(of: strap).startNotifying() as Future<Characteristic>, within: 10)
        keep(manager)
        XCTAssertEqual(subscriptions, 1)
        running = []
    }

    // MARK: Connections and subscriptions

    func testALinkThatOutlivedTheProgramIsTakenOverAndItsSubscriptionTakenUp() throws {
        try runOnce()
        simulator.advance(by: 5)
        XCTAssertEqual(simulator.links.count, 1)
        let connects = calls("Connect")

        let (_, restored) = try restoring()
        let strap = try XCTUnwrap(restored.peripherals.first)
        XCTAssertEqual(strap.address, Self.strapAddress.description)
        XCTAssertEqual(strap.state, .connected)
        XCTAssertEqual(strap.name, "Strap")
        XCTAssertTrue(simulator.advance(until: { subscriptions == 1 }, limit: 10))
        XCTAssertEqual(calls("Connect"), connects)

        let values = Journal()
        let measurement = try measurement(of: strap)
        XCTAssertTrue(simulator.advance(until: { measurement.isNotifying }, limit: 10))
        let stream: FutureStream<Data> = measurement.receiveNotificationUpdates()
        stream.onSuccess(context: ImmediateContext()) { _ in values.write { $0.completions += 1 } }
        simulator.notify(Self.strapAddress, characteristic: "2A37", value: [0, 80])
        XCTAssertTrue(simulator.advance(until: { values.read(\.completions) == 1 }, limit: 5))
    }

    private func subscribeToTwoWithTheSameUUID() throws {
        let (manager, _) = try restoring()
        var device = Self.sensor
        device.services = [
            VirtualService("180D", characteristics: (0..<2).map { _ in VirtualCharacteristic("2A37", [.notify]) })
        ]
        let strap = find([device], with: manager)[0]
        journal.watch(strap.connect())
        expect(.connect)
        let service = try XCTUnwrap(try measurement(of: strap).service)
        for characteristic in service.characteristics {
            try simulator.outcome(of: characteristic.startNotifying() as Future<Characteristic>, within: 10)
        }
        keep(manager)
        running = []
    }

    func testRestoredSubscriptionsWithTheSameUUIDHaveTheirHandles() throws {
        try subscribeToTwoWithTheSameUUID()
        simulator.simulateOutOfRange(of: Self.strapAddress)
        simulator.advance(by: 5)

        let (_, restored) = try restoring()
        let again = try XCTUnwrap(restored.peripherals.first)
        let identifiers = again.restoredSubscriptions
        XCTAssertEqual(Set(identifiers.compactMap(\.handle)).count, 2, "\(identifiers)")
        again.forgetRestoredSubscription(to: try XCTUnwrap(identifiers.first))
        XCTAssertEqual(again.restoredSubscriptions.map(\.handle), [nil], "one alone needs none")
    }

    func testALinkThatIsGoneComesBackWithItsSubscriptionAndStaysWanted() throws {
        try runOnce()
        simulator.simulateLinkLoss(of: Self.strapAddress)
        simulator.advance(by: 60)
        XCTAssertEqual(simulator.links, [])

        let (manager, restored) = try restoring()
        XCTAssertEqual(restored.peripherals.count, 1)
        XCTAssertTrue(simulator.advance(until: { subscriptions == 1 }, limit: 30))
        simulator.simulateLinkLoss(of: Self.strapAddress)
        XCTAssertTrue(simulator.advance(until: { simulator.links.isEmpty }, limit: 5))
        XCTAssertTrue(simulator.advance(until: { subscriptions == 1 }, limit: 30))
        keep(manager)
        XCTAssertEqual(try kept().connections.first?.subscriptions.count, 1)
    }

    func testADeviceThatBlueZReportsBeforeTheStateIsReadIsConnectedWithoutASearch() throws {
        try runOnce()
        simulator.simulateLinkLoss(of: Self.strapAddress)
        simulator.advance(by: 5)
        XCTAssertEqual(simulator.links, [])
        let searches = calls("StartDiscovery")

        // The disk is busy until Bluetooth is ready.
        let isReady = DispatchSemaphore(value: 0)
        let busy = StateKeeper<RestorationState>(identifier: "busy", folder: folder.path)
        busy?.open(for: ManualLoop()) { _ in isReady.wait() }
        let manager = try CentralManager(configuration: configuration())
        running.append(manager)
        manager.whenStateChanges().onSuccess(context: ImmediateContext()) { _ in isReady.signal() }
        XCTAssertTrue(simulator.advance(until: { subscriptions == 1 }, limit: 30))
        XCTAssertEqual(calls("StartDiscovery"), searches)
    }

    func testTheArgumentsOfConnectAreKept() throws {
        try runOnce()
        let connection = try XCTUnwrap(kept().connections.first)
        XCTAssertEqual(connection.timeoutRetries, 7)
        XCTAssertNil(connection.disconnectRetries, "no limit")
        XCTAssertEqual(connection.connectionTimeout, 20)
        XCTAssertEqual(connection.subscriptions.map(\.characteristic), [CBUUID(string: "2A37")])
    }

    func testTheApplicationsConnectTakesOver() throws {
        try runOnce()
        let (_, restored) = try restoring()
        let strap = try XCTUnwrap(restored.peripherals.first)
        connect(strap)
        simulator.simulateLinkLoss(of: Self.strapAddress)
        expect(.disconnect)
        simulator.advance(by: 60)
        XCTAssertEqual(strap.state, .disconnected)
    }

    func testWhoWasDisconnectedIsNotRestored() throws {
        let (manager, _) = try restoring()
        let strap = find([Self.sensor], with: manager)[0]
        connect(strap)
        keep(manager)
        XCTAssertEqual(try kept().connections.count, 1)
        strap.disconnect()
        keep(manager)
        XCTAssertFalse(FileManager.default.fileExists(atPath: place.file))
    }

    func testAnAttemptWithoutSuccessIsRestored() throws {
        let (manager, _) = try restoring()
        let strap = find([Self.sensor], with: manager)[0]
        simulator.remove(Self.strapAddress)
        strap.connect()
        keep(manager)
        XCTAssertEqual(try kept().connections.count, 1)
    }

    func testAManagerThatEndsWithItsLinksKeepsNothing() throws {
        try runOnce(configuration(keepingLinks: false))
        simulator.advance(by: 5)
        XCTAssertEqual(simulator.links, [])
        let (_, restored) = try restoring()
        XCTAssertEqual(restored.peripherals, [])
    }

    func testWithTheRadioOffTheStateIsReportedAndTheLinkComesLater() throws {
        try runOnce()
        simulator.simulatePowerOff()
        simulator.advance(by: 3)
        let manager = try CentralManager(configuration: configuration())
        XCTAssertNil(failure(manager))
        XCTAssertEqual(simulator.links, [])
        simulator.simulatePowerOn()
        XCTAssertTrue(simulator.advance(until: { subscriptions == 1 }, limit: 30))
    }

    func testWithoutBlueZTheStateIsReportedNevertheless() throws {
        try runOnce()
        simulator.simulateDaemonDeath()
        let manager = try CentralManager(configuration: configuration())
        XCTAssertNil(failure(manager))
        keep(manager)
        XCTAssertEqual(try kept().connections.count, 1)
    }

    // MARK: The scan

    func testTheScansServicesAndOptionsAreReportedAndTheScanIsNotBegun() throws {
        do {
            let (manager, _) = try restoring()
            _ = manager.startScanning(
                forServiceUUIDs: [CBUUID(string: "180D")],
                options: ScanOptions(allowsDuplicates: true, rssiThreshold: -70))
            keep(manager)
            running = []
        }
        simulator.advance(by: 1)
        let (manager, _) = try restoring()
        let future: Future<(peripherals: [Peripheral], scannedServices: [CBUUID], options: [String: AnyObject])> =
            manager.whenStateRestored()
        let restored = try XCTUnwrap(future.result).get()
        XCTAssertEqual(restored.scannedServices, [CBUUID(string: "180D")])
        XCTAssertEqual(restored.options[CBCentralManagerScanOptionAllowDuplicatesKey] as? Bool, true)
        XCTAssertEqual(restored.options["CentralManagerScanOptionRSSIThresholdKey"] as? Int, -70)
        XCTAssertEqual(restored.options.count, 2)
        XCTAssertFalse(manager.isScanning)
    }

    // MARK: Files

    func testTheFirstRunRestoresNothingAndSucceeds() throws {
        let (manager, restored) = try restoring()
        XCTAssertEqual(restored.peripherals, [])
        XCTAssertNil(manager.stateRestorationProblem)
        keep(manager)
        XCTAssertFalse(FileManager.default.fileExists(atPath: place.file))
    }

    func testWithoutAnIdentifierTheFutureSaysWhatIsMissing() throws {
        guard case .invalidOption(let text) = failure(manager()) else { return XCTFail("restored") }
        XCTAssertTrue(text.contains("restoreIdentifier"), text)
    }

    func testWrongOptionsAreNamed() {
        for (key, value) in [
            (CBCentralManagerOptionRestoreIdentifierKey, ""), (CBCentralManagerOptionRestoreIdentifierKey, 5),
            ("CentralManagerOptionStateDirectoryKey", "relative"),
        ] as [(String, Any)] {
            guard
                case .invalidOption(let text) = failure(
                    CentralManager(options: ["CentralManagerOptionBusAddressKey": simulator.address, key: value]))
            else {
                XCTFail("\(value) was taken")
                continue
            }
            XCTAssertTrue(text.contains(key), text)
        }
    }

    func testADamagedStateIsSetAsideAndTheManagerStartsAfresh() throws {
        try FileManager.default.createDirectory(atPath: place.folder, withIntermediateDirectories: true)
        try "half a sta".write(toFile: place.file, atomically: false, encoding: .utf8)
        let manager = manager(configuration())
        XCTAssertEqual(failure(manager), .restoreFailed)
        XCTAssertEqual(try String(contentsOfFile: place.aside(1), encoding: .utf8), "half a sta")
        connect(find([Self.sensor], with: manager)[0])
        keep(manager)
        XCTAssertEqual(try kept().connections.count, 1)
    }

    func testASecondManagerWithTheSameIdentifierReportsItAndWorks() throws {
        let (first, _) = try restoring()
        let second = manager(configuration())
        XCTAssertEqual(failure(second), .restoreIdentifierInUse(place.file))
        connect(find([Self.sensor], with: second)[0])
        keep(first)
        keep(second)
        XCTAssertFalse(FileManager.default.fileExists(atPath: place.file))
        XCTAssertNotNil(second.stateRestorationProblem)
        withExtendedLifetime(first) {}
    }

    func testAFolderThatCannotBeMadeIsSaidAndTheManagerWorks() throws {
        let manager = manager(.init(restoreIdentifier: identifier, stateDirectory: "/proc/self"))
        XCTAssertEqual(failure(manager), .restoreFailed)
        XCTAssertTrue(manager.stateRestorationProblem?.contains("/proc/self/central") == true)
        connect(find([Self.sensor], with: manager)[0])
    }

    func testAManagerThatGoesAtOnceLosesNothingOfWhatWasKept() throws {
        try runOnce()
        for _ in 0..<3 {
            _ = try CentralManager(configuration: configuration(keepingLinks: false))
        }
        let (_, restored) = try restoring()
        XCTAssertEqual(restored.peripherals.count, 1)
    }
}
