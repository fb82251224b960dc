import BlueZSimulator
import BlueCapFutures
import Logging
import TestSupport
import XCTest

@testable import BlueCapKit

/// What a manager writes to the application's logger.
final class LoggingTests: XCTestCase {
    /// Keeps what is logged.
    private final class Book: Sendable {
        let lines = Locked<[String]>([])

        func logger(_ level: Logger.Level) -> Logger {
            var logger = Logger(label: "test") { _ in Handler(lines: self.lines) }
            logger.logLevel = level
            return logger
        }

        var text: String { lines.withLock { $0.joined(separator: "\n") } }
        func has(_ words: String...) -> Bool {
            lines.withLock { lines in lines.contains { line in words.allSatisfy { line.contains($0) } } }
        }
    }

    private struct Handler: LogHandler {
        let lines: Locked<[String]>
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let entries = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
            let text = (["\(event.level)", "\(event.message)"] + entries).joined(separator: " ")
            lines.withLock { $0.append(text) }
        }
    }

    private let strap: VirtualAddress = "C0:00:00:00:00:01"

    private func simulator() -> Simulator {
        let simulator = Simulator.inProcess(room: .empty)
        simulator.add(
            .strap([
                VirtualCharacteristic("2A37", [.notify], notifications: .cycle([[0, 72]], every: 1)),
                VirtualCharacteristic("2A39", [.read, .write], value: [0xAB, 0xCD]),
            ]))
        return simulator
    }

    private func manager(on simulator: Simulator, _ logger: Logger?) -> CentralManager {
        var configuration = CentralManager.Configuration()
        configuration.busAddress = simulator.address
        configuration.logger = logger
        return try! CentralManager(configuration: configuration)
    }

    /// Scans, connects, subscribes, reads, writes, fails, and loses the link.
    private func story(_ manager: CentralManager, _ simulator: Simulator) async throws {
        let executor = simulator.taskExecutor
        let work = Task(executorPreference: executor) {
            try await manager.poweredOn(timeout: 10)
            let peripheral = try await manager.startScanning(timeout: 30).first().value
            manager.stopScanning()
            _ = try await peripheral.connect().first().value
            let control = CharacteristicIdentifier.strap("2A39")
            let notifying = try await peripheral.characteristic(.strap("2A37")).value
            _ = try await notifying.startNotifying().value
            let _: Data = try await peripheral.read(control).value
            try await peripheral.write(Data([0xAB, 0xCD, 0xEF]), to: control).value
            return peripheral
        }
        await simulator.advance(by: 30)
        _ = try await work.value
        simulator.simulateLinkLoss(of: strap)
        await simulator.advance(by: 1)
    }

    func testTheStoryOfALinkIsLoggedWithItsLevelsAndMetadata() async throws {
        let (book, simulator) = (Book(), simulator())
        try await story(manager(on: simulator, book.logger(.trace)), simulator)
        XCTAssertTrue(book.has("info state", "adapter=hci0", "state=poweredOn"), book.text)
        XCTAssertTrue(book.has("info scan started", "adapter=hci0"), book.text)
        XCTAssertTrue(book.has("trace received", "peripheral=C0:00:00:00:00:01"), book.text)
        XCTAssertTrue(book.has("info scan stopped"), book.text)
        XCTAssertTrue(book.has("debug connecting", "peripheral=C0:00:00:00:00:01"), book.text)
        XCTAssertTrue(book.has("info link up", "peripheral=C0:00:00:00:00:01"), book.text)
        XCTAssertTrue(book.has("info subscribed", "characteristic=2A37", "service=180D"), book.text)
        XCTAssertTrue(book.has("trace reading", "characteristic=2A39", "operation=read"), book.text)
        XCTAssertTrue(book.has("trace writing", "characteristic=2A39", "length=3", "operation=write"), book.text)
        XCTAssertTrue(book.has("notice link down", "why=linkLost"), book.text)
        XCTAssertFalse(book.text.lowercased().contains("abcd"), "a value is logged: \(book.text)")
        XCTAssertFalse(book.text.contains("171, 205"), "a value is logged: \(book.text)")
    }

    func testALevelLeavesOutWhatIsBelowIt() async throws {
        let (book, simulator) = (Book(), simulator())
        try await story(manager(on: simulator, book.logger(.info)), simulator)
        XCTAssertTrue(book.has("info link up"), book.text)
        XCTAssertFalse(book.has("debug "), book.text)
        XCTAssertFalse(book.has("trace "), book.text)
        let (silent, other) = (Book(), self.simulator())
        try await story(manager(on: other, silent.logger(.critical)), other)
        XCTAssertEqual(silent.text, "")
    }

    func testTheLoggerIsAnOptionToo() async throws {
        let (book, simulator) = (Book(), simulator())
        let manager = try CentralManager(
            configuration: .init(busAddress: simulator.address, logger: book.logger(.info)))
        await simulator.advance(until: { manager.poweredOn }, limit: 5)
        XCTAssertTrue(book.has("info state", "state=poweredOn"), book.text)
        simulator.simulatePowerOff()
        await simulator.advance(by: 2)
        XCTAssertTrue(book.has("warning state", "state=poweredOff", "why=The adapter hci0"), book.text)
    }

    // MARK: The peripheral role

    func testServicesRequestsAndPairingsAreLoggedWithoutTheirPasskey() async throws {
        let (book, simulator) = (Book(), Simulator.inProcess(room: .empty))
        var configuration = PeripheralManager.Configuration()
        configuration.busAddress = simulator.address
        configuration.pairingPolicy = .ask(.keyboardOnly)
        configuration.logger = book.logger(.trace)
        let manager = try PeripheralManager(configuration: configuration)
        manager.whenPairingIsRequested().onSuccess(context: ImmediateContext()) { request in
            if let passkey = Passkey(digits: "264811") { request.enter(passkey) }
        }
        let level = MutableCharacteristic(
            uuid: "2A19", properties: .read, permissions: [.readable, .readAuthenticationRequired],
            value: Data([0xAB, 0xCD]))
        let battery = MutableService(uuid: "180F")
        battery.characteristics = [level]
        let added: Future<Void> = manager.add(battery)
        let advertising: Future<Void> = manager.startAdvertising("Battery", uuids: [battery.uuid])
        await simulator.advance(until: { added.completed && advertising.completed }, limit: 10)
        let security = VirtualSecurity(.displayOnly, user: VirtualUser(displays: 264_811))
        let phone = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:01", name: "Phone", security: security))
        await simulator.advance(by: 2)
        let pairing = phone.pair()
        await simulator.advance(until: { pairing.result != nil }, limit: 60)
        await simulator.advance(by: 2)
        XCTAssertTrue(book.has("info registered", "service=180F"), book.text)
        XCTAssertTrue(book.has("info centrals", "central=C0:FF:EE:00:CE:01"), book.text)
        XCTAssertTrue(book.has("info bonded", "central=C0:FF:EE:00:CE:01"), book.text)
        XCTAssertFalse(book.text.contains("264811"), "the passkey is logged: \(book.text)")
        XCTAssertFalse(book.text.contains("171, 205"), book.text)
    }
}
