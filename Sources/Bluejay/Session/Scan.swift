import BlueCapKit
import Foundation

/// A scan, and its discoveries so far.
// Unchecked: its variables are accessed on the callback queue alone.
final class Scan: @unchecked Swift.Sendable {
    let duration: TimeInterval
    let allowsDuplicates: Bool
    /// The change of signal strength in dB from which a peripheral is discovered again.
    let throttle: Int
    let services: [CBUUID]?
    let discovery: (ScanDiscovery, [ScanDiscovery]) -> ScanAction
    let expired: ((ScanDiscovery, [ScanDiscovery]) -> ScanAction)?
    let stopped: ([ScanDiscovery], (any Error)?) -> Void
    private var discoveries: [ScanDiscovery] = []
    private var blacklist: Set<PeripheralIdentifier> = []
    /// Whether `stopped` was called; no call follows it.
    private var isOver = false

    init(
        duration: TimeInterval, allowsDuplicates: Bool, throttle: Int, services: [CBUUID]?,
        discovery: @escaping (ScanDiscovery, [ScanDiscovery]) -> ScanAction,
        expired: ((ScanDiscovery, [ScanDiscovery]) -> ScanAction)?,
        stopped: @escaping ([ScanDiscovery], (any Error)?) -> Void
    ) {
        (self.duration, self.allowsDuplicates, self.throttle) = (duration, allowsDuplicates, throttle)
        (self.services, self.discovery, self.expired, self.stopped) = (services, discovery, expired, stopped)
    }

    func hasDiscovered(_ found: ScanDiscovery) -> ScanAction {
        let identifier = found.peripheralIdentifier
        guard !isOver, !blacklist.contains(identifier) else { return .continue }
        if let place = discoveries.firstIndex(where: { $0.peripheralIdentifier == identifier }) {
            guard abs(discoveries[place].rssi - found.rssi) >= throttle else { return .continue }
            discoveries[place] = found
        } else {
            discoveries.append(found)
        }
        return noting(discovery(found, discoveries), about: identifier)
    }

    func hasExpired(_ identifier: PeripheralIdentifier) -> ScanAction {
        guard !isOver, let expired,
            let place = discoveries.firstIndex(where: { $0.peripheralIdentifier == identifier })
        else { return .continue }
        let lost = discoveries.remove(at: place)
        guard !blacklist.contains(identifier) else { return .continue }
        return noting(expired(lost, discoveries), about: identifier)
    }

    private func noting(_ action: ScanAction, about identifier: PeripheralIdentifier) -> ScanAction {
        if case .blacklist = action { blacklist.insert(identifier) }
        return action
    }

    func hasStopped(_ outcome: BluejaySession.Outcome) {
        isOver = true
        if case .failure(let error) = outcome { stopped(discoveries, error) } else { stopped(discoveries, nil) }
    }
}
