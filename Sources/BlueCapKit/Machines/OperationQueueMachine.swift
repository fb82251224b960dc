import BlueCapFutures

/// A strict queue: operations are executed in the order of their requests, one at a time, and each is settled exactly
/// once.
///
/// The machine stores only the names of operations and their outcomes. Its owner starts, stops and settles operations
/// as the effects require, in the order of the effects.
///
/// The first operation has one of three states:
///
/// | state | `enqueued` | `began` | `finished` | `cancelled` |
/// |---|---|---|---|---|
/// | none | `begin`: `starting` | – | – | – |
/// | `starting` | waits | `running` | `settle`, the next begins | `settle`, the next begins |
/// | `running` | waits | – | `settle`, the next begins | `settle`, `stop`: `ending` |
/// | `ending` | waits | – | the next begins | – |
///
/// An operation that waits can be cancelled at any time, and is settled at once. An operation that runs is settled at
/// once too, and its work with the peripheral ends a moment later: no other operation begins before that. An event with
/// the name of an operation that is not in the queue, or has been settled, has no effect, so a late reply is harmless.
/// For this, each operation needs a name of its own.
package struct OperationQueueMachine<ID: Hashable & Sendable, Outcome: Sendable>: Sendable {
    package enum Event: Sendable {
        /// An operation is requested, with a name of its own.
        case enqueued(ID)
        /// The operation has begun. Check ``current`` before: it may have been cancelled.
        case began(ID)
        /// The operation has ended, or was stopped.
        case finished(ID, Outcome)
        case cancelled(ID, Outcome)
        case allCancelled(Outcome)
    }

    package enum Effect: Sendable {
        case begin(ID)
        /// Stops an operation that was cancelled while it ran; `finished` follows.
        case stop(ID)
        case settle(ID, Outcome)
    }

    private enum First: Sendable {
        case starting(ID)
        case running(ID)
        /// Settled, and its work has not ended yet.
        case ending(ID)
    }

    private var first: First?
    private var line = Ring<ID>()

    package init() {}

    // MARK: Queries

    /// The first operation, until it is settled.
    package var current: ID? {
        switch first {
        case .starting(let id), .running(let id): id
        case .ending, nil: nil
        }
    }

    /// The operation that has begun, until it is settled.
    package var running: ID? { if case .running(let id) = first { id } else { nil } }

    /// The operations that wait, in their order.
    package var waiting: [ID] { line.elements }

    /// The number of operations that have not been settled.
    package var count: Int { (current == nil ? 0 : 1) + line.count }

    /// Whether no operation waits and none is executing, not even one that was cancelled.
    package var isIdle: Bool { first == nil && line.isEmpty }

    /// The number of operations before this one: 0 for the first. `nil` if it is not in the queue, or has been settled.
    package func position(of id: ID) -> Int? {
        if current == id { return 0 }
        return waiting.firstIndex(of: id).map { $0 + (first == nil ? 0 : 1) }
    }

    // MARK: Events

    package mutating func event(_ event: Event) -> [Effect] {
        switch event {
        case .enqueued(let id): enqueued(id)
        case .began(let id): began(id)
        case .finished(let id, let outcome): finished(id, outcome)
        case .cancelled(let id, let outcome): cancelled(id, outcome)
        case .allCancelled(let outcome): allCancelled(outcome)
        }
    }

    private mutating func enqueued(_ id: ID) -> [Effect] {
        line.append(id)
        return first == nil ? next() : []
    }

    private mutating func next() -> [Effect] {
        first = line.popFirst().map { .starting($0) }
        return current.map { [.begin($0)] } ?? []
    }

    private mutating func began(_ id: ID) -> [Effect] {
        if case .starting(id) = first { first = .running(id) }
        return []
    }

    private mutating func finished(_ id: ID, _ outcome: Outcome) -> [Effect] {
        switch first {
        case .starting(id), .running(id): [.settle(id, outcome)] + next()
        case .ending(id): next()
        case .starting, .running, .ending, nil: []
        }
    }

    private mutating func cancelled(_ id: ID, _ outcome: Outcome) -> [Effect] {
        switch first {
        case .starting(id):
            return [.settle(id, outcome)] + next()
        case .running(id):
            first = .ending(id)
            return [.settle(id, outcome), .stop(id)]
        case .starting, .running, .ending, nil:
            return line.remove { $0 == id } == nil ? [] : [.settle(id, outcome)]
        }
    }

    private mutating func allCancelled(_ outcome: Outcome) -> [Effect] {
        let unsettled = waiting
        line.removeAll()
        let effects = current.map { cancelled($0, outcome) } ?? []
        return effects + unsettled.map { .settle($0, outcome) }
    }
}

extension OperationQueueMachine.Event: Equatable where Outcome: Equatable {}
extension OperationQueueMachine.Effect: Equatable where Outcome: Equatable {}
