import BlueZ
import Foundation
import Reactor

/// What of a manager outlives its process, and how it comes back.
extension CentralState {
    /// Seconds that somebody who waits for the restored state is kept waiting for word of Bluetooth.
    static let restorationPatience: TimeInterval = 5

    /// All that was under way at this moment.
    mutating func kept() -> RestorationState {
        var kept = RestorationState(scan: scan?.request)
        for key in dealingKeys {
            if let connection = readDealing(with: key, { $0.kept(key) }) { kept.connections.append(connection) }
        }
        kept.connections.sort { $0.key.rawValue < $1.key.rawValue }
        return kept
    }

    /// Wants again what an earlier run wanted. Whoever waits for that is told when it is known how Bluetooth stands: then
    /// links that outlived the process are known, too.
    mutating func restore(_ kept: RestorationState) -> [Effect] {
        var effects: [Effect] = []
        for connection in kept.connections {
            let key = connection.key
            unlistedRestored.insert(key)
            // Somebody was quicker: their own wish holds.
            guard readDealing(with: key, { $0.connection.isWanted }) != true else { continue }
            effects += peripheral(key) { $0.restore(connection) }
        }
        isRestoring = true
        return effects
            + (managerState == .unknown ? [.startTimer(.restoration, Self.restorationPatience)] : endRestoring())
    }

    /// How things stand is known, or takes too long.
    mutating func endRestoring() -> [Effect] {
        guard isRestoring else { return [] }
        isRestoring = false
        return [.cancelTimer(.restoration), .restored]
    }

    /// A restored peripheral is listed from the moment at which BlueZ has its device.
    mutating func listRestored(_ key: PeripheralKey, device: ObjectKey?, at now: Instant, date: Date) -> [Effect] {
        guard unlistedRestored.contains(key), device != nil || peripherals[key] != nil else { return [] }
        unlistedRestored.remove(key)
        return list(key, device: device, at: now, date: date)
    }
}
