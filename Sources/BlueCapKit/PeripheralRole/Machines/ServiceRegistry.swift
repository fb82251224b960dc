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
        case notSupported
        /// BlueZ has not answered in time.
        case unanswered
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

    private struct Entry {
        let number: Number
        var status: Status
        /// Why BlueZ has not registered it so far, if it says so.
        var delay: Failure?
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
    /// - Parameter timeout: In how many seconds it must be registered; infinite for no limit.
    mutating func add(_ number: Number, timeout: TimeInterval = .infinity) -> [Effect] {
        guard !contains(number) else { return [] }
        let isOn = state == .poweredOn
        entries.append(Entry(number: number, status: isOn ? .registering : .waiting))
        return (timeout.isFinite ? [.startTimer(number, timeout)] : []) + (isOn ? [.register(number)] : [])
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
        guard old != .poweredOn, new == .poweredOn else { return [] }
        // What is being registered when the power goes is registered again by itself.
        return entries.indices.filter { entries[$0].status == .waiting }.map { index in
            entries[index].status = .registering
            return .register(entries[index].number)
        }
    }

    /// The time-out of a service has passed.
    mutating func timerFired(_ number: Number) -> [Effect] {
        guard let entry = entries.first(where: { $0.number == number }), entry.status != .added else { return [] }
        let failure =
            state == .poweredOn ? entry.delay ?? .unanswered : .notPoweredOn(state)
        return takeOut(number, failure).filter { $0 != .cancelTimer(number) }
    }

    /// BlueZ says what keeps it from registering a service, or, with `nil`, that nothing does any more.
    mutating func delayed(_ number: Number, by failure: Failure?) -> [Effect] {
        if let index = index(of: number) { entries[index].delay = failure }
        return []
    }

    /// There is another adapter: what the former one had is to be offered there. The former one's part has been let go of.
    func placeChanged() -> [Effect] { entries.filter { $0.status != .waiting }.map { .register($0.number) } }

    /// BlueZ has taken it, or refused it.
    mutating func registered(_ number: Number, failure: Failure?) -> [Effect] {
        guard let index = index(of: number), entries[index].status == .registering else { return [] }
        guard let failure else {
            entries[index].status = .added
            return [.cancelTimer(number), .settle(number, nil)]
        }
        return takeOut(number, failure)
    }

    private func index(of number: Number) -> Int? { entries.firstIndex { $0.number == number } }
}
