public import BlueCapKit
public import Foundation
public import GatewayCore
import Synchronization

/// The gateway's use of one adapter: a scan that goes on, and links that are kept.
///
/// A radio reports what happens in the sequence in which it happens, through the function that it was created with. The function is
/// called on any thread, must not wait, and may call the radio's methods.
public final class Radio: Sendable {
    /// The time limit of one attempt to connect.
    static let attemptLimit: Duration = .seconds(10)
    /// The time limit of a command, with its connection.
    static let commandLimit: Duration = .seconds(30)

    let manager: CentralManager
    private let report: @Sendable (RadioEvent) -> Void
    private let followed: [FollowedDevice]
    private let state: Mutex<State>

    private struct State {
        var isScanWanted: Bool
        /// The sessions of devices to which a link is kept.
        var sessions: [DeviceName: DeviceSession] = [:]
        /// The devices to which a link is to be kept, though they have not been received.
        var awaited: Set<DeviceName> = []
        /// What else than the configuration asks for.
        var added: [DeviceName: [WatchedCharacteristic]] = [:]
        var scanChanges: AsyncStream<Void>.Continuation?
    }

    /// - Parameters:
    ///   - manager: The manager, which the radio uses alone.
    ///   - followed: The devices whose values are taken. The first that selects a device counts.
    ///   - isScanning: Whether the radio scans from the beginning.
    ///   - report: Receives the events.
    public init(
        _ manager: CentralManager, followed: [FollowedDevice], isScanning: Bool = true,
        report: @escaping @Sendable (RadioEvent) -> Void
    ) {
        (self.manager, self.followed, self.report) = (manager, followed, report)
        state = Mutex(State(isScanWanted: isScanning))
    }

    /// Scans until the task is cancelled, and then ends all links of the radio.
    public func run() async {
        let (changes, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        state.withLock { $0.scanChanges = continuation }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.watchState() }
            group.addTask { await self.scan(changes) }
            await group.waitForAll()
        }
        let sessions = state.withLock { state in
            defer { state.sessions = [:] }
            return Array(state.sessions.values)
        }
        await withTaskGroup(of: Void.self) { group in
            for session in sessions { group.addTask { await session.end() } }
        }
    }

    /// Whether the radio scans while Bluetooth can be used.
    public var isScanning: Bool {
        get { state.withLock(\.isScanWanted) }
        set {
            let changes = state.withLock { state in
                state.isScanWanted = newValue
                return state.scanChanges
            }
            if !newValue { manager.stopScanning() }
            changes?.yield()
        }
    }

    // MARK: Links

    /// Connects a device and keeps the link, at once or when the device is received.
    public func connect(_ device: DeviceName) {
        let peripheral = self.peripheral(device)
        state.withLock { state in
            guard state.sessions[device] == nil else { return }
            guard let peripheral else { return _ = state.awaited.insert(device) }
            begin(device, peripheral, &state)
        }
    }

    /// Ends the link to a device, and returns when BlueZ has confirmed its end.
    public func disconnect(_ device: DeviceName) async {
        let session = state.withLock { state in
            state.awaited.remove(device)
            return state.sessions.removeValue(forKey: device)
        }
        await session?.end()
    }

    /// The devices to which the radio keeps a link, or tries to.
    public var connectedDevices: Set<DeviceName> { state.withLock { Set($0.sessions.keys).union($0.awaited) } }

    /// Returns the strength of the link to a device, in dBm.
    public func linkStrength(_ device: DeviceName) async throws -> Int {
        guard let peripheral = peripheral(device) else { throw RadioError.unknownDevice(device) }
        return try await peripheral.readRSSI()
    }

    private func begin(_ device: DeviceName, _ peripheral: Peripheral, _ state: inout State) {
        state.awaited.remove(device)
        let name = peripheral.advertisements.localName
        let configured = followed.first { $0.selector.selects(device, name: name) }?.characteristics ?? []
        let session = DeviceSession(device, peripheral, report: report)
        for characteristic in configured + (state.added[device] ?? []) { session.watch(characteristic) }
        state.sessions[device] = session
        session.begin()
    }

    // MARK: Commands

    /// Reads a value, over the present link or one of its own.
    public func read(_ device: DeviceName, _ identifier: CharacteristicIdentifier) async throws -> Data {
        guard let peripheral = peripheral(device) else { throw RadioError.unknownDevice(device) }
        return try await peripheral.run(timeout: Self.commandLimit) { try await $0.read(identifier) }
    }

    /// Writes a value, over the present link or one of its own.
    public func write(
        _ value: Data, _ device: DeviceName, _ identifier: CharacteristicIdentifier,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        guard let peripheral = peripheral(device) else { throw RadioError.unknownDevice(device) }
        try await peripheral.run(timeout: Self.commandLimit) { try await $0.write(value, to: identifier, type: type) }
    }

    /// Takes the values of a characteristic, also on later links. It connects nothing.
    public func watch(_ device: DeviceName, _ characteristic: WatchedCharacteristic) {
        let session = state.withLock { state in
            state.added[device, default: []].removeAll { $0.identifier == characteristic.identifier }
            state.added[device, default: []].append(characteristic)
            return state.sessions[device]
        }
        session?.watch(characteristic)
    }

    /// No longer takes the values of a characteristic.
    public func unwatch(_ device: DeviceName, _ identifier: CharacteristicIdentifier) {
        let session = state.withLock { state in
            state.added[device]?.removeAll { $0.identifier == identifier }
            if state.added[device]?.isEmpty == true { state.added[device] = nil }
            return state.sessions[device]
        }
        session?.unwatch(identifier)
    }

    private func peripheral(_ device: DeviceName) -> Peripheral? {
        let address = device.address
        return manager.retrievePeripherals().first { $0.address == address }
    }

    // MARK: The scan

    private func watchState() async {
        var last: String?? = .none
        for await outcome in manager.whenStateChanges().outcomes {
            guard case .success(let state) = outcome else { continue }
            let reason: String? = state == .poweredOn ? nil : manager.stateExplanation
            if last != .some(reason) { report(.unavailable(reason: reason)) }
            last = .some(reason)
        }
    }

    private func scan(_ changes: AsyncStream<Void>) async {
        var iterator = changes.makeAsyncIterator()
        while !Task.isCancelled {
            guard isScanning else {
                await iterator.next()
                continue
            }
            do {
                try await manager.waitUntilPoweredOn()
                beginAwaited()
                let reports = manager.startScanningForReports(options: ScanOptions(allowsDuplicates: true))
                for try await report in reports { received(report) }
            } catch {
                // A refused scan; `stateExplanation` or the log has the cause.
                report(.unavailable(reason: "\(error)"))
            }
            // The scan has ended with the adapter, or by `isScanning`, or was refused.
            if isScanning { try? await Task.sleep(for: .seconds(1)) }
        }
    }

    private func received(_ scanned: ScanReport) {
        guard let device = DeviceName(scanned.peripheral.address) else { return }
        report(
            .report(
                DeviceReport(
                    device: device, addressType: scanned.peripheral.addressType, date: scanned.date,
                    rssi: scanned.rssi, advertisements: scanned.advertisements)))
        state.withLock { state in
            if state.awaited.contains(device) { begin(device, scanned.peripheral, &state) }
        }
    }

    /// Begins with the devices that BlueZ already has, such as those with a link of an earlier process, which do not advertise.
    private func beginAwaited() {
        for device in state.withLock(\.awaited) {
            guard let peripheral = peripheral(device) else { continue }
            state.withLock { state in
                if state.awaited.contains(device) { begin(device, peripheral, &state) }
            }
        }
    }
}
