import Foundation

/// The advertisements of a manager, from the wish to their end. Pure: BlueZ's part of it goes out as effects and comes in
/// as events.
struct AdvertisingRegistry {
    struct Number: Hashable, Sendable {
        let rawValue: UInt64
    }

    /// Names a call that waits until everything it has ended is off the air.
    typealias Stop = UInt64

    enum Failure: Hashable, Sendable {
        case notPoweredOn(ManagerState)
        case notSupported
        case tooMany(Int)
        case invalid(String)
        case tooLong(AdvertisingField, Int)
        case refused(BusFailure)
        /// BlueZ has not answered in time.
        case unanswered
        case stopped
        case ended
    }

    enum Effect: Equatable {
        /// Ask BlueZ what the adapter can do; answer with ``AdvertisingRegistry/limitsKnown(_:refusal:)``.
        case askLimits(Number)
        /// Have BlueZ advertise it, and tell what becomes of it.
        case start(Number)
        /// Have BlueZ end it; answer with ``AdvertisingRegistry/confirmedEnd(_:)``.
        case end(Number)
        /// What `startAdvertising` promised is decided.
        case settle(Number, Failure?)
        /// It has ended, after it was on the air or before: nothing follows but the answer to ``end``.
        case ended(Number, AdvertisingEnd)
        case startTimer(Number, TimeInterval)
        case cancelTimer(Number)
        case startStopTimer(Stop, TimeInterval)
        case cancelStopTimer(Stop)
        /// `true`: in time.
        case settleStop(Stop, Bool)
    }

    /// What BlueZ says of an advertisement.
    enum Event: Hashable, Sendable {
        case waitingForAdapter, waitingForSupport
        case registering, registered
        /// Refused with an error that may pass, and tried again.
        case retrying(BusFailure)
        case refused(BusFailure)
        /// BlueZ has not answered, and is not asked again.
        case unanswered(BusFailure)
        case timedOut
    }

    enum Stage: Hashable {
        /// For power.
        case waiting
        case asking
        case starting
        case onAir
        /// It was on the air, and comes back by itself.
        case returning
    }

    private struct Entry {
        let number: Number
        let isMain: Bool
        var stage: Stage
        /// Why it is not on the air so far, if BlueZ says so.
        var delay: Failure?
    }

    private var entries: [Entry] = []
    private var state = ManagerState.unknown
    /// Those that were ended, and of which BlueZ has not said so yet.
    private var leaving: Set<Number> = []
    private var stops: [(id: Stop, awaited: Set<Number>)] = []
    private var lastStop: Stop = 0

    var isAdvertising: Bool { !entries.isEmpty }
    /// Whether one of those is under way of which there is but one.
    var hasMain: Bool { entries.contains(where: \.isMain) }
    var numbers: [Number] { entries.map(\.number) }
    func stage(of number: Number) -> Stage? { entries.first { $0.number == number }?.stage }

    // MARK: Wishes

    /// - Parameters:
    ///   - isMain: Whether there may be one such at a time: see ``hasMain``.
    ///   - timeout: In how many seconds it must be on the air; infinite for no limit.
    mutating func begin(_ number: Number, isMain: Bool, timeout: TimeInterval = .infinity) -> [Effect] {
        let isOn = state == .poweredOn
        entries.append(Entry(number: number, isMain: isMain, stage: isOn ? .asking : .waiting))
        return (timeout.isFinite ? [.startTimer(number, timeout)] : []) + (isOn ? [.askLimits(number)] : [])
    }

    /// Ends these; `nil` for all. The stop is settled when BlueZ has confirmed it, of those that were being ended already
    /// too, or when the time is up.
    mutating func stop(_ number: Number?, timeout: TimeInterval) -> (Stop, [Effect]) {
        lastStop += 1
        let stop = lastStop
        let numbers = number.map { [$0] } ?? self.numbers
        var effects = numbers.flatMap { takeOut($0, .stopped, .stopped) }
        let awaited = number.map { leaving.intersection([$0]) } ?? leaving
        if awaited.isEmpty {
            effects.append(.settleStop(stop, true))
        } else {
            stops.append((stop, awaited))
            if timeout.isFinite { effects.append(.startStopTimer(stop, timeout)) }
        }
        return (stop, effects)
    }

    /// Another one takes its place.
    mutating func replace(_ number: Number?) -> [Effect] { number.map { takeOut($0, .stopped, .stopped) } ?? [] }

    /// The manager ends, or starts over.
    mutating func endAll(_ failure: Failure, _ end: AdvertisingEnd) -> [Effect] {
        numbers.flatMap { takeOut($0, failure, end) }
    }

    /// Nobody says any more whether anything has ended.
    mutating func forgetStops() -> [Effect] {
        defer { stops = [] }
        return stops.flatMap { [.cancelStopTimer($0.id), .settleStop($0.id, true)] }
    }

    private mutating func takeOut(_ number: Number, _ failure: Failure, _ end: AdvertisingEnd) -> [Effect] {
        guard let index = entries.firstIndex(where: { $0.number == number }) else { return [] }
        let stage = entries.remove(at: index).stage
        switch stage {
        case .waiting, .asking:
            return [.cancelTimer(number), .settle(number, failure), .ended(number, end)]
        case .starting:
            leaving.insert(number)
            return [.cancelTimer(number), .settle(number, failure), .ended(number, end), .end(number)]
        case .onAir, .returning:
            leaving.insert(number)
            return [.ended(number, end), .end(number)]
        }
    }

    // MARK: What happens

    mutating func managerStateChanged(_ new: ManagerState) -> [Effect] {
        let old = state
        state = new
        guard (old == .poweredOn) != (new == .poweredOn) else { return [] }
        return entries.indices.flatMap { index -> [Effect] in
            let number = entries[index].number
            switch entries[index].stage {
            case .waiting where new == .poweredOn:
                entries[index].stage = .asking
                return [.askLimits(number)]
            case .asking where new != .poweredOn:
                entries[index].stage = .waiting
                return []
            case .waiting, .asking, .starting, .onAir, .returning:
                return []
            }
        }
    }

    /// What the adapter can do is known, as far as it can be.
    mutating func limitsKnown(_ number: Number, refusal: Failure?) -> [Effect] {
        guard let index = index(of: number, in: .asking) else { return [] }
        guard let refusal else {
            entries[index].stage = .starting
            return [.start(number)]
        }
        entries.remove(at: index)
        return [.cancelTimer(number), .settle(number, refusal), .ended(number, .notStarted)]
    }

    mutating func told(_ number: Number, _ event: Event) -> [Effect] {
        guard let index = entries.firstIndex(where: { $0.number == number }) else { return [] }
        let isSettled = entries[index].stage == .onAir || entries[index].stage == .returning
        switch event {
        case .registered:
            entries[index].stage = .onAir
            return isSettled ? [] : [.cancelTimer(number), .settle(number, nil)]
        case .waitingForAdapter, .registering:
            return delayed(at: index, by: nil)
        case .waitingForSupport:
            return delayed(at: index, by: .notSupported)
        case .retrying(let failure):
            return delayed(at: index, by: .refused(failure))
        case .refused(let failure):
            return finish(index, .refused(failure), .refused(failure))
        case .unanswered(let failure):
            return finish(index, .unanswered, .refused(failure))
        case .timedOut:
            return finish(index, .stopped, .timedOut)
        }
    }

    /// BlueZ has ended it, or does not begin it.
    private mutating func finish(_ index: Int, _ failure: Failure, _ end: AdvertisingEnd) -> [Effect] {
        let entry = entries.remove(at: index)
        leaving.insert(entry.number)
        let isSettled = entry.stage == .onAir || entry.stage == .returning
        return (isSettled ? [] : [.cancelTimer(entry.number), .settle(entry.number, failure)])
            + [.ended(entry.number, end), .end(entry.number)]
    }

    private mutating func delayed(at index: Int, by failure: Failure?) -> [Effect] {
        entries[index].delay = failure
        if entries[index].stage == .onAir { entries[index].stage = .returning }
        return []
    }

    /// The time-out of an advertisement has passed.
    mutating func timerFired(_ number: Number) -> [Effect] {
        guard let entry = entries.first(where: { $0.number == number }) else { return [] }
        switch entry.stage {
        case .waiting, .asking, .starting:
            let failure = state == .poweredOn ? entry.delay ?? .unanswered : .notPoweredOn(state)
            return takeOut(number, failure, .notStarted).filter { $0 != .cancelTimer(number) }
        case .onAir, .returning:
            return []
        }
    }

    /// There is another adapter: everything is begun there anew. The former one's part has been let go of.
    mutating func placeChanged() -> [Effect] {
        entries.indices.flatMap { index -> [Effect] in
            let number = entries[index].number
            switch entries[index].stage {
            case .waiting, .asking: return []
            case .starting: return [.start(number)]
            case .onAir, .returning:
                entries[index].stage = .returning
                return [.start(number)]
            }
        }
    }

    /// Nothing of it is left in BlueZ.
    mutating func confirmedEnd(_ number: Number) -> [Effect] {
        leaving.remove(number)
        var effects: [Effect] = []
        for index in stops.indices { stops[index].awaited.remove(number) }
        for stop in stops where stop.awaited.isEmpty {
            effects += [.cancelStopTimer(stop.id), .settleStop(stop.id, true)]
        }
        stops.removeAll { $0.awaited.isEmpty }
        return effects
    }

    mutating func stopTimerFired(_ stop: Stop) -> [Effect] {
        guard let index = stops.firstIndex(where: { $0.id == stop }) else { return [] }
        stops.remove(at: index)
        return [.settleStop(stop, false)]
    }

    private func index(of number: Number, in stage: Stage) -> Int? {
        entries.firstIndex { $0.number == number && $0.stage == stage }
    }
}
