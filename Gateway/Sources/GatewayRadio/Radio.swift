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
        /// The devices that are to be connected and have not been received, with whether their links are kept.
        var awaited: [DeviceName: Bool] = [:]
        /// Of what a subscription has begun in this process.
        var subscribed: Set<Subscription> = []
        /// What else than the configuration asks for.
        var added: [DeviceName: [WatchedCharacteristic]] = [:]
        var scanChanges: AsyncStream<Void>.Continuation?
    }

    private struct Subscription: Hashable {
        var device: DeviceName
        var identifier: CharacteristicIdentifier
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
            group.addTask { await self.watchForeignLinks() }
            await group.waitForAll()
        }
        let sessions = state.withLock { state in
            state.awaited = [:]
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

    /// Connects a device, at once or when it is received.
    ///
    /// - Parameters:
    ///   - device: The device.
    ///   - isKept: Whether the radio connects again after a lost link or a failed attempt. Otherwise ``LinkChange/ended`` follows
    ///     those.
    public func connect(_ device: DeviceName, isKept: Bool = true) {
        let peripheral = self.peripheral(device)
        let session = state.withLock { state -> DeviceSession? in
            guard state.sessions[device] == nil else { return nil }
            state.awaited[device] = isKept
            return peripheral.flatMap { self.session(device, $0, &state) }
        }
        session?.begin()
    }

    /// Ends the link to a device, or the attempt, and returns when BlueZ has confirmed its end.
    ///
    /// - Returns: Whether there was one; then ``LinkChange/ended`` has been reported.
    @discardableResult
    public func disconnect(_ device: DeviceName) async -> Bool {
        let session = state.withLock { state in
            state.awaited[device] = nil
            return state.sessions[device]
        }
        await session?.end()
        if session == nil { await endForeignLink(device) }
        return session != nil
    }

    /// Ends a link that an earlier process has left.
    private func endForeignLink(_ device: DeviceName) async {
        let limit = ContinuousClock.now + .seconds(10)
        while let peripheral = foreignLink(device), ContinuousClock.now < limit {
            peripheral.disconnect()
            try? await Task.sleep(for: .milliseconds(50))
        }
    }

    private func foreignLink(_ device: DeviceName) -> Peripheral? {
        let address = device.address
        return manager.retrieveConnectedPeripherals(withServices: []).first { $0.address == address }
    }

    /// The devices that are connected, or are to be.
    public var connectedDevices: Set<DeviceName> { state.withLock { Set($0.sessions.keys).union($0.awaited.keys) } }

    /// Makes the session of a device that is awaited; `nil` if it is not.
    private func session(_ device: DeviceName, _ peripheral: Peripheral, _ state: inout State) -> DeviceSession? {
        guard state.sessions[device] == nil, let isKept = state.awaited.removeValue(forKey: device) else { return nil }
        let name = peripheral.advertisements.localName
        let configured = followed.first { $0.selector.selects(device, name: name) }?.characteristics ?? []
        let session = DeviceSession(device, peripheral, isKept: isKept) { [weak self] session, event in
            self?.received(event, of: device, session)
        }
        for characteristic in configured + (state.added[device] ?? []) { session.watch(characteristic) }
        state.sessions[device] = session
        return session
    }

    private func received(_ event: SessionEvent, of device: DeviceName, _ session: DeviceSession) {
        switch event {
        case .link(let change):
            if change == .ended {
                state.withLock { if $0.sessions[device] === session { $0.sessions[device] = nil } }
            }
            report(.link(device, change))
        case .began(let identifier):
            let isFirst = state.withLock {
                $0.subscribed.insert(Subscription(device: device, identifier: identifier)).inserted
            }
            report(.gap(device, identifier, isFirst ? .restarted : .linkLost, Date()))
        case .gap(let identifier): report(.gap(device, identifier, .linkLost, Date()))
        case .value(let identifier, let data): report(.value(device, identifier, data, Date()))
        case .failed(let identifier, let reason): report(.watchFailed(device, identifier, reason: reason))
        }
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
            ?? foreignLink(device)
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
                let reports = manager.startScanningForReports(options: ScanOptions(allowsDuplicates: true))
                for try await report in reports { received(report) }
            } catch {
                // A refused scan; `stateExplanation` or the log has the cause.
                guard !Task.isCancelled else { break }
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
        state.withLock { self.session(device, scanned.peripheral, &$0) }?.begin()
    }

    private func watchForeignLinks() async {
        while !Task.isCancelled {
            for peripheral in manager.retrieveConnectedPeripherals(withServices: []) {
                guard let device = DeviceName(peripheral.address), state.withLock({ $0.sessions[device] == nil })
                else { continue }
                report(
                    .foreignLink(device, name: peripheral.advertisements.localName, rssi: peripheral.rssi))
                state.withLock { self.session(device, peripheral, &$0) }?.begin()
            }
            try? await Task.sleep(for: .seconds(1))
        }
    }
}
