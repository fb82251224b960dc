import BlueCapKit
import Foundation
import GatewayCore
import Synchronization

/// What a session reports.
enum SessionEvent: Sendable {
    case link(LinkChange)
    /// A subscription has begun.
    case began(CharacteristicIdentifier)
    case gap(CharacteristicIdentifier)
    case value(CharacteristicIdentifier, Data)
    case failed(CharacteristicIdentifier, reason: String)
}

/// The link to one device, and the values that are taken over it.
final class DeviceSession: Sendable {
    private let device: DeviceName
    private let peripheral: Peripheral
    private let isKept: Bool
    private let reportEvent: @Sendable (DeviceSession, SessionEvent) -> Void
    private let state = Mutex(State())

    private struct State {
        var link: Task<Void, Never>?
        /// The pause between two links.
        var pause: Task<Void, Never>?
        var watches: [CharacteristicIdentifier: Watch] = [:]
        var isConnected = false
        var hasEnded = false
    }

    private struct Watch {
        var characteristic: WatchedCharacteristic
        var task: Task<Void, Never>?
    }

    init(
        _ device: DeviceName, _ peripheral: Peripheral, isKept: Bool,
        report: @escaping @Sendable (DeviceSession, SessionEvent) -> Void
    ) {
        (self.device, self.peripheral, self.isKept, reportEvent) = (device, peripheral, isKept, report)
    }

    private func report(_ event: SessionEvent) { reportEvent(self, event) }

    /// Connects.
    func begin() {
        state.withLock { state in
            if state.link == nil, !state.hasEnded { state.link = Task { [self] in await connect() } }
        }
    }

    /// Ends the link, and returns when BlueZ has confirmed its end, or after ten seconds.
    func end() async {
        let (link, pause) = state.withLock { state in
            state.hasEnded = true
            return (state.link, state.pause)
        }
        pause?.cancel()
        peripheral.disconnect()
        let limit = Task {
            try await Task.sleep(for: .seconds(10))
            link?.cancel()
        }
        await link?.value
        limit.cancel()
    }

    func watch(_ characteristic: WatchedCharacteristic) {
        state.withLock { state in
            guard !state.hasEnded else { return }
            if let present = state.watches[characteristic.identifier] {
                if present.characteristic == characteristic { return }
                present.task?.cancel()
            }
            state.watches[characteristic.identifier] = Watch(characteristic: characteristic)
            if state.isConnected { start(characteristic.identifier, &state) }
        }
    }

    func unwatch(_ identifier: CharacteristicIdentifier) {
        state.withLock { $0.watches.removeValue(forKey: identifier) }?.task?.cancel()
    }

    // MARK: The link

    private func connect() async {
        var pause: Duration = .seconds(1)
        while !isEnding {
            report(.link(.connecting))
            await followLink { pause = .seconds(1) }
            if !isKept || isEnding { break }
            // No retry of the manager's can succeed now; later one may.
            let length = pause
            let sleep = state.withLock { state in
                let sleep = Task<Void, Never> { if !isEnding { try? await Task.sleep(for: length) } }
                state.pause = sleep
                return sleep
            }
            await sleep.value
            pause = min(pause * 2, .seconds(60))
        }
        await finish()
    }

    private var isEnding: Bool { Task.isCancelled || state.withLock(\.hasEnded) }

    /// Returns when there is no link and the manager does not try to connect; if the session is to end, when BlueZ has confirmed the
    /// end of the link, and all that has arrived over it has been reported.
    private func followLink(connected: () -> Void) async {
        let changes = peripheral.stayConnected(timeout: Radio.attemptLimit)
        if isEnding { peripheral.disconnect() }
        do {
            for try await change in changes where !isEnding {
                switch change {
                case .connected:
                    connected()
                    report(.link(.connected))
                    startWatches()
                    continue
                case .disconnected(let reason):
                    state.withLock { $0.isConnected = false }
                    let detail = peripheral.disconnectDetail.map { ": \($0)" } ?? ""
                    report(.link(.lost(reason: "\(reason)\(detail)")))
                case .timedOut:
                    report(.link(.failed(reason: "no link within \(Radio.attemptLimit)")))
                }
                if !isKept { return }
            }
        } catch {
            report(.link(.failed(reason: "\(error)")))
        }
    }

    private func finish() async {
        state.withLock { ($0.hasEnded, $0.isConnected) = (true, false) }
        // Ends what is left of an attempt, if the session has ended by itself.
        if peripheral.state != .disconnected { peripheral.disconnect() }
        let limit = ContinuousClock.now + .seconds(10)
        while peripheral.state != .disconnected, ContinuousClock.now < limit {
            await Task { try? await Task.sleep(for: .milliseconds(20)) }.value
        }
        // Only now: the device has sent values until its link ended.
        let watches = state.withLock { state in
            defer { state.watches = [:] }
            return state.watches.values.compactMap(\.task)
        }
        for watch in watches { watch.cancel() }
        report(.link(.ended))
    }

    // MARK: Values

    private func startWatches() {
        state.withLock { state in
            state.isConnected = true
            for identifier in state.watches.keys { start(identifier, &state) }
        }
    }

    /// A watch goes on over later links.
    private func start(_ identifier: CharacteristicIdentifier, _ state: inout State) {
        guard let watch = state.watches[identifier], watch.task == nil else { return }
        state.watches[identifier]?.task = Task { [weak self] in
            await self?.take(watch.characteristic)
        }
    }

    private func take(_ characteristic: WatchedCharacteristic) async {
        while !Task.isCancelled {
            do {
                switch characteristic.mode {
                case .notify: try await takeNotifications(characteristic.identifier)
                case .read(let interval): try await takeReadings(characteristic.identifier, interval)
                }
            } catch {
                if Task.isCancelled { return }
                report(.failed(characteristic.identifier, reason: "\(error)"))
            }
            try? await Task.sleep(for: .seconds(5))
        }
    }

    private func takeNotifications(_ identifier: CharacteristicIdentifier) async throws {
        let characteristic = try await peripheral.characteristic(identifier, timeout: .seconds(30))
        let events = characteristic.notificationEvents()
        report(.began(identifier))
        // Each is reported when it arrives, so that none waits in a queue when the session ends.
        let reported = events.map(context: ImmediateContext()) { [self] event in
            switch event {
            case .value(let data): report(.value(identifier, data))
            case .gap: report(.gap(identifier))
            }
        }
        for try await _ in reported.values(waiting: 1) {}
    }

    private func takeReadings(_ identifier: CharacteristicIdentifier, _ interval: Duration) async throws {
        while !Task.isCancelled {
            if state.withLock(\.isConnected) {
                let data: Data = try await peripheral.read(identifier, timeout: .seconds(30))
                report(.value(identifier, data))
            }
            try await Task.sleep(for: interval)
        }
    }
}
