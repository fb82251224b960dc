import BlueCapBlueZ
import Foundation

/// What happens to an update if the queue is full while a central is subscribed.
///
/// ``UnsubscribedUpdatePolicy`` applies while no central is subscribed.
public enum UpdateQueuePolicy: Hashable, Sendable, CaseIterable {
    /// `update` throws ``MutableCharacteristicError/updateQueueFull(limit:)``, so that no update is lost without an
    /// error.
    case refuse
    /// The oldest update that waits is dropped; ``MutableCharacteristic/droppedUpdates`` counts such updates. An update
    /// that was handed over to BlueZ is not dropped, so one more than the limit may wait behind it.
    case dropOldest
}

/// What happens to the updates of a characteristic while no central is subscribed to it.
///
/// No policy lets `update` throw ``MutableCharacteristicError/updateQueueFull(limit:)`` while no central is subscribed.
/// ``MutableCharacteristic/droppedUpdates`` counts the updates that a policy drops. ``UpdateQueuePolicy`` applies while
/// a central is subscribed.
public enum UnsubscribedUpdatePolicy: Hashable, Sendable, CaseIterable {
    /// The updates wait in their order and are sent when a central subscribes. The queue keeps the newest
    /// ``MutableCharacteristic/updateQueueLimit`` updates and drops older ones, including updates that were handed over
    /// to BlueZ and not accepted.
    case queue
    /// Only the newest update waits and is sent when a central subscribes.
    case latest
    /// No update waits. A central that subscribes receives the updates that are made after that.
    case discard
}

/// The updates of a characteristic that are to be sent to the subscribed centrals: in order, each until BlueZ has
/// accepted it.
///
/// A value that was handed over stays at the head until its outcome is confirmed. If the subscription ends before that,
/// the value is handed over again in the next one, unless ``unsubscribedPolicy`` drops it. The queue has no side
/// effects: its owner hands over what ``next()`` returns, and reports the outcome of each value with ``ended(_:)``, in
/// their order, unless the subscription has ended before.
struct UpdateQueue {
    /// The number of updates that may be handed over without a confirmation: enough to keep a socket busy, and too few
    /// to fill the buffers of the bus.
    static let window = 64
    /// The number of times that an indication is sent if no central confirms it.
    static let mostAttempts = 2

    private(set) var limit = 1_024
    var policy = UpdateQueuePolicy.refuse
    private(set) var unsubscribedPolicy = UnsubscribedUpdatePolicy.queue
    private(set) var dropped = 0
    /// The updates that were confirmed.
    private(set) var sent = 0
    private(set) var isSubscribed = false

    /// The updates that wait begin at `head`; those before it were sent, and are removed from time to time.
    private var updates: [ServerUpdate] = []
    private var head = 0
    private var inFlight = 0
    /// The number of times that the first update was sent without a confirmation.
    private var attempts = 0
    /// Whether the owner was woken and has not called ``next()`` yet.
    private var isAwaited = false

    var count: Int { updates.count - head }
    var isEmpty: Bool { count == 0 }
    var pending: [Data] { updates[head...].map(\.value) }

    /// Sets the limit, at least 1. This call drops nothing. Without a subscription, ``add(_:)``, ``unsubscribed()`` and
    /// ``keepUnsubscribed(_:)`` drop the updates above the limit.
    mutating func limit(to count: Int) { limit = max(count, 1) }

    /// Sets which updates may wait without a subscription. Returns those that are dropped because of it.
    mutating func keepUnsubscribed(_ policy: UnsubscribedUpdatePolicy) -> [ServerUpdate] {
        unsubscribedPolicy = policy
        return isSubscribed ? [] : trim()
    }

    // MARK: Adding

    /// Adds an update, unless the policy refuses it. Returns the updates that are dropped for it: older ones, or the value
    /// itself if none may wait; `nil` if it is refused.
    mutating func add(_ update: ServerUpdate) -> [ServerUpdate]? {
        guard isSubscribed else {
            updates.append(update)
            return trim()
        }
        guard count >= limit else {
            updates.append(update)
            return []
        }
        guard policy == .dropOldest else { return nil }
        // Updates that were handed over may have arrived, and cannot be cancelled: if there are no others, one more
        // waits behind them.
        let victim = count > inFlight ? updates.remove(at: head + inFlight) : nil
        updates.append(update)
        guard let victim else { return [] }
        dropped += 1
        return [victim]
    }

    /// Drops the oldest updates that may not wait, while there is no subscription and no update is handed over. Updates
    /// that were handed over and not confirmed are the oldest.
    private mutating func trim() -> [ServerUpdate] {
        let most =
            switch unsubscribedPolicy {
            case .queue: limit
            case .latest: 1
            case .discard: 0
            }
        let excess = max(count - most, 0)
        dropped += excess
        return (0..<excess).map { _ in removeFirst() }
    }

    // MARK: Handing over

    /// Returns whether the owner has to be woken to call ``next()``; true once until it does.
    mutating func mustWake() -> Bool {
        guard isSubscribed, !isAwaited, count > inFlight, inFlight <= Self.window / 2 else { return false }
        isAwaited = true
        return true
    }

    /// Returns the next update to hand over; `nil` if there is none, or if many have no outcome yet.
    mutating func next() -> ServerUpdate? {
        isAwaited = false
        guard isSubscribed, inFlight < min(count, Self.window) else { return nil }
        inFlight += 1
        return updates[head + inFlight - 1]
    }

    /// The oldest update that was handed over has this outcome. Returns the update if it is removed, so that it is not
    /// released under the lock of the caller.
    mutating func ended(_ outcome: UpdateOutcome) -> ServerUpdate? {
        guard inFlight > 0 else { return nil }
        switch outcome {
        case .sent:
            sent += 1
        case .unconfirmed where attempts + 1 < Self.mostAttempts:
            attempts += 1
            beginAgain()
            return nil
        case .unconfirmed, .unreachable:
            dropped += 1
        }
        return removeFirst()
    }

    // MARK: Subscriptions

    mutating func subscribed() {
        guard !isSubscribed else { return }
        isSubscribed = true
        beginAgain()
    }

    /// Ends the last subscription. Returns the updates that may not wait for the next one: those for single centrals,
    /// and those that the policy drops.
    mutating func unsubscribed() -> [ServerUpdate] {
        isSubscribed = false
        beginAgain()
        return dropDirected() + trim()
    }

    private mutating func dropDirected() -> [ServerUpdate] {
        let directed = updates[head...].filter { $0.centrals != nil }
        guard !directed.isEmpty else { return [] }
        dropped += directed.count
        attempts = 0
        (updates, head) = (updates[head...].filter { $0.centrals == nil }, 0)
        return directed
    }

    /// Removes all updates; ``dropped`` does not count them.
    mutating func removeAll() -> [ServerUpdate] {
        let removed = updates
        (updates, head, attempts) = ([], 0, 0)
        _ = unsubscribed()
        return removed
    }

    private mutating func beginAgain() {
        inFlight = 0
        isAwaited = false
    }

    private mutating func removeFirst() -> ServerUpdate {
        let first = updates[head]
        updates[head] = ServerUpdate(Data())
        head += 1
        inFlight = max(inFlight - 1, 0)
        attempts = 0
        if head * 2 >= updates.count {
            updates.removeFirst(head)
            head = 0
        }
        return first
    }
}
