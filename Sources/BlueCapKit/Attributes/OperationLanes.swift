import Foundation

/// The operations on the attributes of one peripheral: in order on each characteristic, side by side on several.
///
/// BlueZ has one operation in flight on a characteristic and answers a second one with `InProgress`. So each
/// characteristic has a lane: the first operation of it is in flight, the others wait. An operation whose time is up is
/// finished towards its user at once, and stays at the head of its lane until BlueZ has answered: what came next would
/// be refused before that. `InProgress` can still come, from another program: the operation is tried again, for about
/// two seconds altogether.
///
/// The lanes are *open* while the attributes are known. What is asked for before waits.
struct OperationLanes<Request> {
    struct Operation {
        let id: OperationID
        /// The attribute that it works on: the characteristic of the lane, or a descriptor of it.
        let target: AttributeID
        let request: Request
    }

    enum Effect {
        /// Calls BlueZ, and tells when it has answered.
        case send(Operation)
        case finish(Operation, OperationFailure?)
        /// Tells the lane when so many seconds have passed.
        case startRetry(AttributeID, TimeInterval)
        case cancelRetry(AttributeID)
    }

    private enum Head {
        case inFlight(Operation)
        /// The user has been told that its time is up; BlueZ has yet to answer.
        case abandoned(OperationID)
        /// Waits to be tried again, so many times after this one.
        case refused(Operation, isAbandoned: Bool)
    }

    private struct Lane {
        var head: Head?
        var refusals = 0
        /// Waits until it is known whether its characteristic is still there.
        var isHeld = false
        var waiting: [Operation] = []
        /// How many at the front of `waiting` are gone already.
        var first = 0
        var isIdle: Bool { head == nil && first == waiting.count && !isHeld }

        mutating func next() -> Operation? {
            guard first < waiting.count else { return nil }
            defer {
                first += 1
                // Moving the rest to the front costs the length of it, so it must not be done each time.
                if first == waiting.count || first >= 64 {
                    waiting.removeFirst(first)
                    first = 0
                }
            }
            return waiting[first]
        }

        /// For how long to wait after one more refusal; `nil` where it was refused often enough.
        mutating func nextPause() -> TimeInterval? {
            guard refusals < OperationLanes.retries.count else { return nil }
            defer { refusals += 1 }
            return OperationLanes.retries[refusals]
        }

        mutating func remove(_ id: OperationID) -> Operation? {
            waiting[first...].firstIndex { $0.id == id }.map { waiting.remove(at: $0) }
        }
    }

    /// After how many seconds an operation is tried again that BlueZ was too busy for.
    static var retries: [TimeInterval] { [0.05, 0.1, 0.2, 0.4, 0.6, 0.8] }

    private(set) var isOpen = false
    private var lanes: [AttributeID: Lane] = [:]
    /// The lanes of all that is not finished.
    private var places: [OperationID: AttributeID] = [:]

    /// Nothing waits and nothing is in flight.
    var isIdle: Bool { lanes.isEmpty }

    // MARK: Users

    /// Somebody asks for an operation on a characteristic.
    mutating func submit(_ operation: Operation, lane: AttributeID) -> [Effect] {
        places[operation.id] = lane
        guard isOpen, lanes[lane] == nil else {
            lanes[lane, default: Lane()].waiting.append(operation)
            return advance(lane)
        }
        lanes[lane] = Lane(head: .inFlight(operation))
        return [.send(operation)]
    }

    /// The operation's time is up.
    mutating func timedOut(_ id: OperationID) -> [Effect] {
        guard let key = places[id], var lane = lanes.removeValue(forKey: key) else { return [] }
        defer { if !lane.isIdle { lanes[key] = lane } }
        let abandoned: Operation
        switch lane.head {
        case .inFlight(let operation) where operation.id == id:
            lane.head = .abandoned(id)
            return [.finish(operation, .timedOut)]
        case .abandoned(id), .refused(_, isAbandoned: true):
            return []
        case .refused(let operation, isAbandoned: false) where operation.id == id:
            // Its turn ends when the pause is over.
            lane.head = .refused(operation, isAbandoned: true)
            abandoned = operation
        case .inFlight, .abandoned, .refused, nil:
            guard let operation = lane.remove(id) else { return [] }
            abandoned = operation
        }
        places[id] = nil
        return [.finish(abandoned, .timedOut)]
    }

    // MARK: BlueZ

    /// BlueZ has answered a call. Answers nothing for a call that belongs to a connection of before.
    mutating func replied(_ id: OperationID, _ failure: OperationFailure?) -> [Effect] {
        // The lane is taken out of its dictionary while it changes: each change in its place would cost more than the call.
        guard let key = places[id], var lane = lanes.removeValue(forKey: key) else { return [] }
        defer { if !lane.isIdle { lanes[key] = lane } }
        var effects: [Effect] = []
        switch lane.head {
        case .inFlight(let operation) where operation.id == id:
            if case .busy? = failure, let pause = lane.nextPause() {
                lane.head = .refused(operation, isAbandoned: false)
                return [.startRetry(key, pause)]
            }
            effects.append(.finish(operation, failure))
        case .abandoned(id): break
        case .inFlight, .abandoned, .refused, nil: return []
        }
        places[id] = nil
        lane.head = nil
        lane.refusals = 0
        if let next = start(&lane) { effects.append(next) }
        return effects
    }

    /// The pause of a lane is over.
    mutating func retry(_ key: AttributeID) -> [Effect] {
        guard case .refused(let operation, let isAbandoned)? = lanes[key]?.head else { return [] }
        guard isAbandoned || !isOpen || isHeld(key) else {
            lanes[key]?.head = .inFlight(operation)
            return [.send(operation)]
        }
        lanes[key]?.head = nil
        // Back to the front, where it keeps its turn.
        if !isAbandoned, let first = lanes[key]?.first { lanes[key]?.waiting.insert(operation, at: first) }
        return advance(key)
    }

    /// Sends the next operation of a lane, if it can go.
    private mutating func advance(_ key: AttributeID) -> [Effect] {
        guard var lane = lanes.removeValue(forKey: key) else { return [] }
        defer { if !lane.isIdle { lanes[key] = lane } }
        return start(&lane).map { [$0] } ?? []
    }

    private func start(_ lane: inout Lane) -> Effect? {
        guard isOpen, !lane.isHeld, lane.head == nil, let next = lane.next() else { return nil }
        lane.head = .inFlight(next)
        return .send(next)
    }

    // MARK: The link and its attributes

    /// The attributes are known: what waits can go, but for lanes that are held.
    mutating func open() -> [Effect] {
        isOpen = true
        return lanes.keys.sorted().flatMap { advance($0) }
    }

    /// The attributes are not known any more. What is in flight goes on.
    mutating func close() { isOpen = false }

    /// The link is lost: everything fails, and what BlueZ still answers is not waited for.
    mutating func fail(_ failure: OperationFailure) -> [Effect] {
        isOpen = false
        return lanes.keys.sorted().flatMap { empty($0, failure) }
    }

    /// It is in doubt whether the characteristic of a lane is still there: nothing more is sent.
    mutating func hold(_ key: AttributeID) { lanes[key, default: Lane()].isHeld = true }

    func isHeld(_ key: AttributeID) -> Bool { lanes[key]?.isHeld == true }

    /// The lanes that are held.
    var heldLanes: [AttributeID] { lanes.keys.filter { isHeld($0) }.sorted() }

    /// The lanes in which something waits or is in flight, or that are held.
    var busyLanes: [AttributeID] { lanes.keys.sorted() }

    /// How many operations on an attribute of a lane are not finished, of those whose request is accepted.
    func count(on target: AttributeID, lane key: AttributeID, where isCounted: (Request) -> Bool) -> Int {
        guard let lane = lanes[key] else { return 0 }
        let head: Operation? =
            switch lane.head {
            case .inFlight(let operation), .refused(let operation, isAbandoned: false): operation
            case .refused(_, isAbandoned: true), .abandoned, nil: nil
            }
        return (lane.waiting[lane.first...] + [head].compactMap { $0 })
            .count { $0.target == target && isCounted($0.request) }
    }

    /// The operation with this id, if it is the one in flight in its lane, and somebody waits for it.
    func inFlight(_ id: OperationID) -> Operation? {
        guard let key = places[id], case .inFlight(let operation)? = lanes[key]?.head, operation.id == id else {
            return nil
        }
        return operation
    }

    /// The characteristic of a lane is there.
    mutating func release(_ key: AttributeID) -> [Effect] {
        lanes[key]?.isHeld = false
        return advance(key)
    }

    /// The characteristic of a lane is not there any more.
    mutating func fail(_ key: AttributeID, _ failure: OperationFailure) -> [Effect] { empty(key, failure) }

    private mutating func empty(_ key: AttributeID, _ failure: OperationFailure) -> [Effect] {
        guard let lane = lanes.removeValue(forKey: key) else { return [] }
        var effects: [Effect] = []
        switch lane.head {
        case .inFlight(let operation):
            effects.append(.finish(operation, failure))
            places[operation.id] = nil
        case .abandoned(let id):
            places[id] = nil
        case .refused(let operation, let isAbandoned):
            effects.append(.cancelRetry(key))
            places[operation.id] = nil
            if !isAbandoned { effects.append(.finish(operation, failure)) }
        case nil:
            break
        }
        for operation in lane.waiting[lane.first...] {
            places[operation.id] = nil
            effects.append(.finish(operation, failure))
        }
        return effects
    }
}
