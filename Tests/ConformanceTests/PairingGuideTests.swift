import BlueCapKit
import BlueZSimulator
import XCTest

/// The code of Documentation/Pairing.md: a block is a program of Examples, or a part of this file or of
/// PairingGuideBluejayTests.swift.
final class PairingGuideTests: XCTestCase {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    private static let sources = ["", "Bluejay"].map { "Tests/ConformanceTests/PairingGuide\($0)Tests.swift" }
    private let state = CharacteristicIdentifier(uuid: "AA11", service: ServiceIdentifier(uuid: "AA10"))
    private let keys = CharacteristicIdentifier(uuid: "AA12", service: ServiceIdentifier(uuid: "AA10"))
    private lazy var room = Self.root.appendingPathComponent("Examples/Rooms/lock.json").path
    private var manager: CentralManager?

    func testEachBlockIsCompiled() throws {
        func lines(_ path: String) throws -> [String] {
            try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
                .components(separatedBy: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        let examples = try FileManager.default.contentsOfDirectory(
            atPath: Self.root.appendingPathComponent("Examples").path)
        let programs = examples.map { "Examples/\($0)/main.swift" }
            .filter { FileManager.default.fileExists(atPath: Self.root.appendingPathComponent($0).path) }
        let compiled = try (programs + Self.sources).map {
            try "\n" + lines($0).joined(separator: "\n")
        }
        var count = 0
        let page = try lines("Documentation/Pairing.md").joined(separator: "\n")
        for block in page.components(separatedBy: "```swift\n").dropFirst() {
            let code = try XCTUnwrap(block.components(separatedBy: "```").first)
            XCTAssertTrue(compiled.contains { $0.contains("\n" + code) }, "Not compiled: \(code)")
            count += 1
        }
        XCTAssertGreaterThan(count, 8)
    }

    // MARK: The blocks

    /// Runs a script with the peripheral of the room, which a manager with that policy has discovered.
    private func run<T: Sendable>(
        _ policy: PairingPolicy, bluez: BlueZVersion = .v5_82,
        _ script: @escaping @Sendable (CentralManager, Peripheral, Simulator) async throws -> T
    ) async throws -> T {
        let simulator = Simulator.inProcess(room: try .named(room), bluez: bluez)
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address, pairingPolicy: policy))
        return try await simulator.run {
            try await manager.waitUntilPoweredOn(timeout: .seconds(10))
            let peripheral = try await manager.startScanning(timeout: .seconds(30)).first().value
            manager.stopScanning()
            return try await script(manager, peripheral, simulator)
        }
    }

    func testAPolicyIsAValue() async throws {
        let policy = try await run(.reject) { manager, _, _ in
            var policy = PairingPolicy.ask(.displayYesNo)  // the user can see a number and confirm it
            policy.answerTimeout = .seconds(15)
            policy.pairsOnDemand = false
            manager.pairingPolicy = policy
            return manager.pairingPolicy
        }
        XCTAssertEqual(policy.answerTimeout, .seconds(15))
        XCTAssertEqual(policy.capability, .displayYesNo)
    }

    func testAValuePairsOnDemand() async throws {
        let state = state
        let value = try await run(.justWorks) { _, peripheral, _ in
            try await peripheral.run(timeout: .seconds(20)) { connected in
                let peripheral = connected.peripheral
                let value = try await peripheral.read(state)  // pairs first, if the value requires it
                return value
            }
        }
        XCTAssertEqual(value, Data([1]))
    }

    func testABondIsForgotten() async throws {
        let count = try await run(.justWorks) { manager, peripheral, simulator in
            let changes = Task(executorPreference: simulator.taskExecutor) {
                for try await change in peripheral.whenPairingChanges() where change.origin == .elsewhere {
                    if change.isBonded { print("Another program has paired with it.") }
                }
            }
            defer { changes.cancel() }
            try await peripheral.run(timeout: .seconds(20)) { try await $0.pair() }
            XCTAssertEqual(manager.bonds().map(\.isOurs), [true])
            await simulator.advance(by: 5)
            for bond in manager.bonds() where bond.isOurs && !bond.isConnected {
                try await manager.forget(bond)
            }
            return manager.bonds().count
        }
        XCTAssertEqual(count, 0)
    }

    func testAPeripheralThatHasLostItsKeysIsRepaired() async throws {
        let state = state
        let isBonded = try await run(.justWorks, bluez: BlueZVersion(5, 86)) { _, peripheral, simulator in
            try await peripheral.run(timeout: .seconds(20)) { try await $0.pair() }
            simulator.simulateKeyLoss(of: "C0:5A:17:00:10:CC", side: .device)
            func userWantsToPairAgain() async -> Bool { true }
            do {
                let value: UInt8 = try await peripheral.run(timeout: .seconds(30)) { try await $0.read(state) }
                print(value)
            } catch PeripheralError.pairing(.keyMissing) {
                guard await userWantsToPairAgain() else { return false }
                try await peripheral.repair()
            }
            XCTAssertEqual(peripheral.pairingCount, 2)
            return peripheral.isBonded
        }
        XCTAssertTrue(isBonded)
    }

    /// Serves the lock, and returns when the manager ends.
    private static func serve(
        _ manager: PeripheralManager, _ userConfirms: @Sendable (String) async -> Bool
    ) async throws {
        let state = MutableCharacteristic(
            uuid: "AA11", properties: [.read, .notify, .notifyEncryptionRequired],
            permissions: .readEncryptionRequired, value: Data([1]))
        let keys = MutableCharacteristic(
            uuid: "AA12", properties: .read, permissions: .readAuthenticationRequired, value: Data("1 key".utf8))
        let lock = MutableService(uuid: "AA10")
        lock.characteristics = [state, keys]
        manager.pairingPolicy = .ask(.displayYesNo)  // before the service is added
        try await manager.add(lock)
        try await manager.startAdvertising("Front Door", uuids: [lock.uuid])
        for try await request in manager.whenPairingIsRequested() {
            if case .confirm(let passkey) = request.kind, await userConfirms(passkey.digits) {
                request.confirm()
            } else {
                request.reject()
            }
        }
    }

    func testACentralComparesANumberAndReads() async throws {
        let simulator = Simulator.inProcess(room: .empty)
        let manager = try PeripheralManager(configuration: .init(busAddress: simulator.address))
        let serving = Task(executorPreference: simulator.taskExecutor) {
            try await PairingGuideTests.serve(manager) { $0.count == 6 }
        }
        await simulator.advance(by: 5)
        let phone = simulator.connect(
            VirtualCentral("C0:FF:EE:00:CE:01", name: "Phone", security: VirtualSecurity(.displayYesNo)))
        await simulator.advance(by: 5)
        let refused = phone.read(.uuid("AA11"))
        await simulator.advance(by: 5)
        XCTAssertEqual(refused.failure, .attribute(0x0F))
        let pairing = phone.pair()
        await simulator.advance(by: 5)
        XCTAssertNil(pairing.failure)
        let keys = phone.read(.uuid("AA12"))
        await simulator.advance(by: 5)
        XCTAssertEqual(try keys.result?.get(), Array("1 key".utf8))
        XCTAssertEqual(manager.bonds().map(\.isOurs), [true])
        serving.cancel()
    }

    func testTheKeysAreReadAfterTheNumberIsConfirmed() async throws {
        let room = room
        let keys = keys
        let simulator = Simulator.inProcess(room: try .named(room), bluez: .v5_66)
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address, pairingPolicy: .ask))
        let user = Task(executorPreference: simulator.taskExecutor) {
            for try await request in manager.whenPairingIsRequested() {
                if case .confirm = request.kind { request.confirm() } else { request.reject() }
            }
        }
        let value = try await simulator.run {
            try await manager.waitUntilPoweredOn(timeout: .seconds(10))
            let door = try await manager.startScanning(timeout: .seconds(30)).first().value
            manager.stopScanning()
            try await door.pair()
            return try await door.read(keys)
        }
        XCTAssertEqual(value, Data("1 key".utf8))
        user.cancel()
    }

    /// Reads a protected value while another program has the default agent, which accepts each pairing.
    private func isBondedByAReading(_ isStrict: Bool) async throws -> Bool {
        let state = state
        return try await run(.reject) { manager, peripheral, simulator in
            simulator.add(VirtualAgent(isDefault: true))
            if isStrict {
                manager.pairingPolicy = .reject.asDefaultAgent()
            }
            _ = try? await peripheral.run(timeout: .seconds(20)) { try await $0.read(state) }
            return peripheral.isBonded
        }
    }

    func testOnlyStrictModePreventsAPairingThatAnotherAgentAccepts() async throws {
        let (isBonded, isBondedInStrictMode) = try await (isBondedByAReading(false), isBondedByAReading(true))
        XCTAssertTrue(isBonded)
        XCTAssertFalse(isBondedInStrictMode)
    }
}
