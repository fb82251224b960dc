import Bluejay
import BlueZSimulator
import TestSupport
import XCTest

/// What comes back after a program has ended in the middle of things.
///
/// A manager that keeps its links when it is released leaves the same state as a killed process.
final class RestorationTests: BluejayCase, @unchecked Swift.Sendable {
    private var folder = ""

    override func setUp() {
        super.setUp()
        folder = NSTemporaryDirectory() + "bluejay-tests-" + UUID().uuidString
    }

    override func tearDown() {
        super.tearDown()
        waitForTheDisk()
        try? FileManager.default.removeItem(atPath: folder)
    }

    private func start(
        _ mode: BackgroundRestoreMode, _ observer: (any ConnectionObserver)? = nil,
        atOnce: (Bluejay) -> Void = { _ in }
    ) {
        var configuration = managerConfiguration
        configuration.stateDirectory = folder
        configuration.keepsLinks = true
        bluejay.start(
            mode: .new(
                StartOptions(enableBluetoothAlert: true, backgroundRestore: mode, managerConfiguration: configuration)),
            connectionObserver: observer)
        atOnce(bluejay)
        waitForTheDisk()
        eventually("Bluetooth") { bluejay.isBluetoothAvailable }
    }

    /// Ends a program that is connected and listens to two characteristics.
    @discardableResult
    private func endWhileListening() -> PeripheralIdentifier {
        start(.enable("us.gnos.bluejay"))
        let identifier = connect()
        for identifier in [Self.measurement, Self.answers] {
            bluejay.listen(to: identifier) { (_: ReadResult<Data>) in }
        }
        eventually("the listens") { simulator.links.first?.subscriptions.count == 2 }
        pass(1)
        waitForTheDisk()
        bluejay = nil
        settle()
        waitForTheDisk()
        settle()
        XCTAssertEqual(simulator.links.count, 1, "The link outlives the program.")
        XCTAssertEqual(simulator.subscriptions(to: .uuid("2A37"), at: Self.address), [])
        bluejay = Bluejay(callbackQueue: callbacks)
        return identifier
    }

    func testTheConnectionComesBackAndTheRestorerIsAskedFirst() {
        endWhileListening()
        let restorer = Restorer(seen, bluejay, [Self.measurement])
        let observer = Observer(seen)
        start(.enableWithListenRestorer("us.gnos.bluejay", restorer), observer)
        expect("connected Strap 1")
        eventually("the listen") { !simulator.subscriptions(to: .uuid("2A37"), at: Self.address).isEmpty }
        pass(0.5)
        notify([0, 61])
        XCTAssertEqual(
            Set(seen.texts.prefix(3)), ["available true", "restore \(Self.measurement)", "restore \(Self.answers)"])
        XCTAssertEqual(Array(seen.texts.dropFirst(3)), ["connected Strap 1", "listen 2 bytes"])
        XCTAssertEqual(try bluejay.isListening(to: Self.measurement), true)
        XCTAssertEqual(simulator.subscriptions(to: .uuid("2A3A"), at: Self.address), [])
        XCTAssertEqual(try bluejay.isListening(to: Self.answers), false)
    }

    func testWithoutARestorerListensAreEnded() {
        endWhileListening()
        start(.enable("us.gnos.bluejay"))
        eventually("the connection") { bluejay.isConnected }
        pass(5)
        XCTAssertEqual(simulator.subscriptions(to: .uuid("2A37"), at: Self.address), [])
        XCTAssertEqual(simulator.subscriptions(to: .uuid("2A3A"), at: Self.address), [])
    }

    func testAConnectionThatWasLostMeanwhileIsTakenUpAgainWithItsListens() {
        endWhileListening()
        simulator.simulateLinkLoss(of: Self.address)
        pass(1)
        let restorer = Restorer(seen, bluejay, [Self.measurement, Self.answers])
        start(.enableWithListenRestorer("us.gnos.bluejay", restorer))
        eventually("the connection") { bluejay.isConnected }
        eventually("the listens") { simulator.links.first?.subscriptions.count == 2 }
        pass(0.5)
        notify([1], from: "2A3A")
        XCTAssertEqual(seen.texts.last, "listen 1 bytes")
    }

    func testTheFirstStartHasNothingToRestore() {
        let restorer = Restorer(seen, bluejay, [])
        start(.enableWithListenRestorer("us.gnos.bluejay", restorer))
        pass(6)
        XCTAssertEqual(seen.texts, [])
        XCTAssertFalse(bluejay.isConnecting)
    }

    func testWhatWasDisconnectedStaysSo() {
        start(.enable("us.gnos.bluejay"))
        connect()
        pass(1)
        bluejay.disconnect { [seen] in seen.note("disconnect", $0) }
        expect("disconnect Strap 1")
        pass(1)
        waitForTheDisk()
        bluejay = nil
        settle()
        waitForTheDisk()
        bluejay = Bluejay(callbackQueue: callbacks)
        start(.enable("us.gnos.bluejay"))
        pass(6)
        XCTAssertFalse(bluejay.isConnecting || bluejay.isConnected)
    }

    func testARestoredListenIsSettledWhenBluejayStops() {
        endWhileListening()
        simulator.simulateLinkLoss(of: Self.address)
        pass(1)
        strap.connectionAnswer = .ignore
        let restorer = Restorer(seen, bluejay, [Self.measurement])
        start(.enableWithListenRestorer("us.gnos.bluejay", restorer))
        expect("restore \(Self.measurement)")
        _ = bluejay.stopAndExtractBluetoothState()
        expect("listen stopped")
    }

    func testARestoredListenEndsWithTheAttemptThatItWaitsFor() {
        let identifier = endWhileListening()
        simulator.simulateLinkLoss(of: Self.address)
        pass(1)
        strap.connectionAnswer = .ignore
        let restorer = Restorer(seen, bluejay, [Self.measurement])
        start(.enableWithListenRestorer("us.gnos.bluejay", restorer))
        expect("restore \(Self.measurement)")
        bluejay.disconnect { [seen] in seen.note("disconnect", $0) }
        expect("disconnect Strap 1")
        expect("listen explicitDisconnect")
        strap.connectionAnswer = .accept(after: 0)
        bluejay.connect(identifier) { [seen] in seen.note("connect", $0) }
        expect("connect Strap 1")
        pass(1)
        XCTAssertEqual(try bluejay.isListening(to: Self.measurement), false)
        XCTAssertEqual(simulator.subscriptions(to: .uuid("2A37"), at: Self.address), [])
    }

    func testWhoConnectsAtOnceHasTheConnectionThatComesBack() {
        let identifier = endWhileListening()
        let restorer = Restorer(seen, bluejay, [Self.measurement])
        start(.enableWithListenRestorer("us.gnos.bluejay", restorer)) { [seen] bluejay in
            bluejay.connect(identifier) { seen.note("connect", $0) }
        }
        expect("connect Strap 1")
        eventually("the listen") { !simulator.subscriptions(to: .uuid("2A37"), at: Self.address).isEmpty }
        pass(3)
        notify([0, 61])
        XCTAssertTrue(bluejay.isConnected)
        XCTAssertEqual(seen.texts.last, "listen 2 bytes")
        XCTAssertEqual(simulator.subscriptions(to: .uuid("2A3A"), at: Self.address), [])
    }
}

extension RestorationTests {
    // MARK: Reports to the application

    /// Starts with a restorer for a connection that does not come back, and ends the attempt.
    private func checkFailure(_ name: String, line: UInt = #line, end: (Bluejay) -> Void) {
        endWhileListening()
        simulator.simulateLinkLoss(of: Self.address)
        pass(1)
        strap.connectionAnswer = .ignore
        let (restorer, failures) = (Restorer(Notes(), bluejay, []), Reporter())
        let config = BackgroundRestoreConfig(
            restoreIdentifier: "us.gnos.bluejay", backgroundRestorer: failures, listenRestorer: restorer)
        start(.enable(config))
        eventually("the attempt", line: line) { bluejay.isConnecting }
        end(bluejay)
        eventually("the failure", line: line) { failures.seen.count > 0 }
        pass(20)
        XCTAssertEqual(failures.seen.texts, ["failed Strap 1 \(name)"], line: line)
        withExtendedLifetime(restorer) {}
    }

    func testARestorationFailsWithTheReasonIfBluetoothIsOff() {
        checkFailure("bluetoothUnavailable") { _ in simulator.simulatePowerOff() }
    }

    func testARestorationFailsWithTheReasonIfTheApplicationDisconnects() {
        checkFailure("explicitDisconnect") { $0.disconnect() }
    }

    func testARestorationFailsWithTheReasonIfBluejayStops() {
        checkFailure("stopped") { _ = $0.stopAndExtractBluetoothState() }
    }

    func testALogObserverReceivesWhyNothingWasRestored() throws {
        endWhileListening()
        waitForTheDisk()
        let files = try XCTUnwrap(FileManager.default.enumerator(atPath: folder)).compactMap { $0 as? String }
        for file in files {
            let path = folder + "/" + file
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), !isFolder.boolValue else {
                continue
            }
            let handle = try XCTUnwrap(FileHandle(forWritingAtPath: path))
            try handle.truncate(atOffset: 0)
            try handle.write(contentsOf: Data("no state".utf8))
            try handle.close()
        }
        let logger = Logger()
        bluejay.register(logObserver: logger)
        start(.enable("us.gnos.bluejay"))
        eventually("the reason") { logger.seen.texts.contains { $0.contains("set aside") } }
        let lines = logger.seen.texts.filter { $0.hasPrefix("Nothing was restored: ") }
        XCTAssertEqual(lines.count, 1, "\(logger.seen.texts)")
        XCTAssertTrue(lines.allSatisfy { $0.contains(folder) && $0.contains(".unreadable-1") }, "\(lines)")
    }

    func testALogObserverReceivesThatTheIdentifierIsInUse() {
        start(.enable("us.gnos.bluejay"))
        let first = bluejay
        bluejay = Bluejay(callbackQueue: callbacks)
        let logger = Logger()
        bluejay.register(logObserver: logger)
        start(.enable("us.gnos.bluejay"))
        eventually("the reason") { logger.seen.texts.contains { $0.hasPrefix("Nothing was restored: ") } }
        withExtendedLifetime(first) {}
    }

    func testALogObserverReceivesNoFailureWhereBluejayStopsBeforeItHasRestored() {
        let logger = Logger()
        bluejay.register(logObserver: logger)
        start(.enable("us.gnos.bluejay"))
        _ = bluejay.stopAndExtractBluetoothState()
        settle()
        waitForTheDisk()
        pass(6)
        XCTAssertEqual(logger.seen.texts.filter { $0.hasPrefix("Nothing was restored") }, [])
    }
}

private final class Reporter: BackgroundRestorer {
    let seen = Notes()

    func didRestoreConnection(to peripheral: PeripheralIdentifier) -> BackgroundRestoreCompletion {
        seen.note("restored \(peripheral.name)")
        return .continue
    }

    func didFailToRestoreConnection(
        to peripheral: PeripheralIdentifier, error: any Error
    ) -> BackgroundRestoreCompletion {
        seen.note("failed \(peripheral.name)", error)
        return .continue
    }
}

private final class Logger: LogObserver {
    let seen = Notes()

    func debug(_ text: String) { seen.note(text) }
}

// Unchecked: called on the callback queue alone.
private final class Restorer: ListenRestorer, @unchecked Swift.Sendable {
    let seen: Notes
    weak let bluejay: Bluejay?
    let wanted: Set<CharacteristicIdentifier>

    init(_ seen: Notes, _ bluejay: Bluejay, _ wanted: Set<CharacteristicIdentifier>) {
        (self.seen, self.bluejay, self.wanted) = (seen, bluejay, wanted)
    }

    func willRestoreListen(on characteristic: CharacteristicIdentifier) -> Bool {
        seen.note("restore \(characteristic)")
        guard wanted.contains(characteristic) else { return false }
        bluejay?.restoreListen(to: characteristic) { [seen] (result: ReadResult<Data>) in seen.note("listen", result) }
        return true
    }
}
