import Foundation

/// Which services are offered, from the wish to the removal.
///
/// Each is registered with BlueZ by itself: whoever came or left another way would take the subscriptions of all others
/// along, since BlueZ changes what it has registered only by forgetting it (seen beside 5.66). So each fails for itself, too.
/// Pure: BlueZ's part goes out as effects and comes in as events.
struct ServiceRegistry {
    struct Number: Hashable, Sendable {
        let rawValue: UInt64
    }

    enum Failure: Hashable, Sendable {
        case notPoweredOn(ManagerState)
        case removed
        case refused(BusFailure)
        case ended
    }

    enum Effect: Equatable {
        /// Have BlueZ register it; answer with ``ServiceRegistry/registered(_:failure:)``. What follows is up to whoever does
        /// that: it comes back after the daemon's death by itself.
        case register(Number)
        /// Have BlueZ forget it.
        case unregister(Number)
        /// What `add` promised is decided.
        case settle(Number, Failure?)
        /// It is not offered any more.
        case drop(Number)
        case startTimer(Number, TimeInterval)
        case cancelTimer(Number)
    }

    private enum Status {
        /// For power.
        case waiting
        case registering
        case added
    }

    /// How long a service waits for a manager that is not powered on, in seconds.
    static let patience: TimeInterval = 10

    private struct Entry {
        let number: Number
        /// Whether it waits without end.
        let isPatient: Bool
        var status: Status
    }

    /// In the order in which they were wished, which becomes that of their handles.
    private var entries: [Entry] = []
    private var state = ManagerState.unknown

    /// All that are wished, in their order.
    var numbers: [Number] { entries.map(\.number) }
    /// Those that BlueZ has taken.
    var added: [Number] { entries.filter { $0.status == .added }.map(\.number) }
    func contains(_ number: Number) -> Bool { entries.contains { $0.number == number } }
    func isAdded(_ number: Number) -> Bool { entries.contains { $0.number == number && $0.status == .added } }

    // MARK: Wishes

    /// Another service is wished. Once for each.
    /// - Parameter isPatient: Whether it waits without end for a manager that is not powered on.
    mutating func add(_ number: Number, isPatient: Bool = false) -> [Effect] {
        guard !contains(number) else { return [] }
        let isOn = state == .poweredOn
        entries.append(Entry(number: number, isPatient: isPatient, status: isOn ? .registering : .waiting))
        if isOn { return [.register(number)] }
        return isPatient ? [] : [.startTimer(number, Self.patience)]
    }

    mutating func remove(_ number: Number) -> [Effect] { takeOut(number, .removed) }

    /// Another one takes its place.
    mutating func replace(_ number: Number?) -> [Effect] { number.map { takeOut($0, .removed) } ?? [] }

    mutating func removeAll(_ failure: Failure = .removed) -> [Effect] {
        entries.map(\.number).flatMap { takeOut($0, failure) }
    }

    private mutating func takeOut(_ number: Number, _ failure: Failure) -> [Effect] {
        guard let index = index(of: number) else { return [] }
        switch entries.remove(at: index).status {
        // Dropped before that is told: whoever hears of it may add it again.
        case .waiting: return [.cancelTimer(number), .drop(number), .settle(number, failure)]
        case .registering: return [.cancelTimer(number), .unregister(number), .drop(number), .settle(number, failure)]
        case .added: return [.unregister(number), .drop(number)]
        }
    }

    // MARK: What happens

    mutating func managerStateChanged(_ new: ManagerState) -> [Effect] {
        let old = state
        state = new
        guard (old == .poweredOn) != (new == .poweredOn) else { return [] }
        return entries.indices.flatMap { index -> [Effect] in
            let number = entries[index].number
            switch (entries[index].status, new == .poweredOn) {
            case (.waiting, true):
                entries[index].status = .registering
                return [.cancelTimer(number), .register(number)]
            case (.registering, true):
                return [.cancelTimer(number)]
            case (.registering, false):
                return entries[index].isPatient ? [] : [.startTimer(number, Self.patience)]
            case (.waiting, false), (.added, _):
                return []
            }
        }
    }

    /// A service has waited for long enough.
    mutating func timerFired(_ number: Number) -> [Effect] {
        guard contains(number), !isAdded(number), state != .poweredOn else { return [] }
        return takeOut(number, .notPoweredOn(state)).filter { $0 != .cancelTimer(number) }
    }

    /// There is another adapter: what the former one had is to be offered there. The former one's part has been let go of.
    func placeChanged() -> [Effect] { entries.filter { $0.status != .waiting }.map { .register($0.number) } }

    /// BlueZ has taken it, or refused it.
    mutating func registered(_ number: Number, failure: BusFailure?) -> [Effect] {
        guard let index = index(of: number), entries[index].status == .registering else { return [] }
        guard let failure else {
            entries[index].status = .added
            return [.cancelTimer(number), .settle(number, nil)]
        }
        return takeOut(number, .refused(failure))
    }

    private func index(of number: Number) -> Int? { entries.firstIndex { $0.number == number } }
}
