import BlueZ
import Foundation

/// The operations on the attributes of one peripheral: in order on each characteristic, concurrent on several.
///
/// BlueZ accepts one operation at a time on a characteristic and refuses a second one with `InProgress`. So each
/// characteristic has a lane: its first operation is in flight, the others wait. An operation that exceeds its time is
/// settled at once, and stays at the head of its lane until BlueZ has replied: the next one would be refused before that.
/// `InProgress` can still occur, because of another program: the operation is repeated, for about two seconds in total.
///
/// The lanes are *open* while the attributes are known. Operations that are submitted before wait.
///
/// Functions return the operations to send now: the caller knows where their attributes are.
struct OperationLanes {
    struct Operation {
        let id: OperationID
        /// The attribute of the operation: the characteristic of the lane, or one of its descriptors.
        let target: AttributeID
        let request: AttributeState.Request
        /// In seconds.
        var timeout = TimeInterval.infinity
        var hasTimeout: Bool { timeout.isFinite }
        /// Whether it is repeated after a pairing, which happens once.
        var wasSecured = false
    }

    private enum Head {
        case inFlight(Operation)
        /// Settled because its time limit was exceeded, or its pairing was rejected; BlueZ has not replied yet.
        case abandoned(Operation)
        /// Waits to be repeated.
        case refused(Operation, isAbandoned: Bool)
        /// Waits for a pairing, after which it is repeated.
        case securing(Operation, isAbandoned: Bool)
    }

    private struct Lane {
        var head: Head?
        var refusals = 0
        /// Waits until it is known whether its characteristic still exists.
        var isHeld = false
        var waiting: [Operation] = []
        /// The number of elements at the front of `waiting` that were removed already.
        var first = 0
        var isIdle: Bool { head == nil && first == waiting.count && !isHeld }

        /// The operation that BlueZ is executing, settled or not.
        var called: Operation? {
            switch head {
            case .inFlight(let operation), .abandoned(let operation): operation
            case .refused, .securing, nil: nil
            }
        }

        mutating func next() -> Operation? {
            guard first < waiting.count else { return nil }
            defer {
                first += 1
                // Moving the rest to the front costs time in proportion to its length, so it is not done each time.
                if first == waiting.count || first >= 64 {
                    waiting.removeFirst(first)
                    first = 0
                }
            }
            return waiting[first]
        }

        /// Returns how long to wait after another refusal; `nil` if the operation was refused often enough.
        mutating func nextPause() -> TimeInterval? {
            guard refusals < OperationLanes.retries.count else { return nil }
            defer { refusals += 1 }
            return OperationLanes.retries[refusals]
        }

        mutating func remove(_ id: OperationID) -> Operation? {
            waiting[first...].firstIndex { $0.id == id }.map { waiting.remove(at: $0) }
        }
    }

    /// The seconds after which an operation is repeated that BlueZ was too busy for.
    static let retries: [TimeInterval] = [0.05, 0.1, 0.2, 0.4, 0.6, 0.8]

    private(set) var isOpen = false
    /// Whether the device is paired.
    var isPaired = false
    /// Whether an operation that lacks security waits for a pairing, and does not fail.
    var pairsOnDemand = false
    private var lanes: [AttributeID: Lane] = [:]
    /// The lanes of all operations that are not settled.
    private var places: [OperationID: AttributeID] = [:]

    /// Whether nothing waits and nothing is in flight.
    var isIdle: Bool { lanes.isEmpty }

    /// Whether an operation waits for a pairing.
    var isSecuring: Bool {
        lanes.values.contains { if case .securing(_, isAbandoned: false)? = $0.head { true } else { false } }
    }

    /// Whether BlueZ is executing an operation.
    var isBusy: Bool { lanes.values.contains { if case .inFlight? = $0.head { true } else { false } } }

    /// The number of lanes with operations, each of which has at most one in flight.
    var count: Int { lanes.count }

    /// The operations that BlueZ has not replied to, settled or not, and their lanes.
    var unanswered: [(operation: Operation, lane: AttributeID)] {
        lanes.compactMap { key, lane in lane.called.map { ($0, key) } }
    }

    // MARK: Submitting

    /// Adds an operation to a lane.
    mutating func submit(_ operation: Operation, lane: AttributeID) -> Operation? {
        places[operation.id] = lane
        guard isOpen, lanes[lane] == nil else {
            lanes[lane, default: Lane()].waiting.append(operation)
            return advance(lane)
        }
        lanes[lane] = Lane(head: .inFlight(operation))
        return operation
    }

    /// Settles an operation that has exceeded its time limit.
    mutating func timedOut(_ id: OperationID, into orders: inout Orders) {
        guard let key = places[id], var lane = lanes.removeValue(forKey: key) else { return }
        defer { if !lane.isIdle { lanes[key] = lane } }
        let abandoned: Operation
        switch lane.head {
        case .inFlight(let operation) where operation.id == id:
            lane.head = .abandoned(operation)
            abandoned = operation
        case .abandoned(let operation) where operation.id == id: return
        case .refused(_, isAbandoned: true): return
        case .securing(let operation, isAbandoned: false) where operation.id == id:
            lane.head = .securing(operation, isAbandoned: true)
            places[id] = nil
            abandoned = operation
        case .refused(let operation, isAbandoned: false) where operation.id == id:
            // It leaves the front of the lane when the pause is over.
            lane.head = .refused(operation, isAbandoned: true)
            places[id] = nil
            abandoned = operation
        case .inFlight, .abandoned, .refused, .securing, nil:
            guard let operation = lane.remove(id) else { return }
            places[id] = nil
            abandoned = operation
        }
        // Its timer has fired, so there is none to cancel.
        orders.append(.settle(id, .failed(PeripheralFailure(.timedOut, abandoned.request))))
    }

    // MARK: Replies of BlueZ

    /// Settles the operation that BlueZ has replied to, or repeats it later. A reply to a call of an earlier connection is
    /// ignored.
    mutating func replied(
        _ id: OperationID, _ result: Result<Order.Outcome, OperationFailure>, into orders: inout Orders
    ) -> Operation? {
        // The lane is removed from its dictionary while it changes: changing it in place several times would cost more.
        guard let key = places[id], var lane = lanes.removeValue(forKey: key) else { return nil }
        defer { if !lane.isIdle { lanes[key] = lane } }
        switch (lane.head, result) {
        case (.inFlight(let operation)?, .success(let outcome)) where operation.id == id:
            settle(operation, outcome, &orders)
        case (.inFlight(let operation)?, .failure(let failure)) where operation.id == id:
            if case .busy = failure, let pause = lane.nextPause() {
                lane.head = .refused(operation, isAbandoned: false)
                orders.append(.startTimer(.retry(key), pause))
                return nil
            }
            if case .needsSecurity = failure, canSecure(operation) {
                lane.head = .securing(operation, isAbandoned: false)
                return nil
            }
            fail(operation, failure, &orders)
        case (.abandoned(let operation)?, _) where operation.id == id:
            break
        case (.inFlight?, _), (.abandoned?, _), (.refused?, _), (.securing?, _), (nil, _):
            return nil
        }
        places[id] = nil
        lane.head = nil
        lane.refusals = 0
        return start(&lane)
    }

    private func fail(_ operation: Operation, _ failure: OperationFailure, _ orders: inout Orders) {
        settle(operation, .failed(PeripheralFailure(failure, operation.request, isPaired: isPaired)), &orders)
    }

    private func settle(_ operation: Operation, _ outcome: Order.Outcome, _ orders: inout Orders) {
        if operation.hasTimeout { orders.append(.cancelTimer(.operation(operation.id))) }
        orders.append(.settle(operation.id, outcome))
    }

    /// The pause of a lane is over.
    mutating func retry(_ key: AttributeID) -> Operation? {
        guard case .refused(let operation, let isAbandoned)? = lanes[key]?.head else { return nil }
        guard isAbandoned || !isOpen || isHeld(key) else {
            lanes[key]?.head = .inFlight(operation)
            return operation
        }
        lanes[key]?.head = nil
        // Returns to the front of the lane, so that it keeps its position.
        if !isAbandoned { putBack(operation, key) }
        return advance(key)
    }

    private mutating func putBack(_ operation: Operation, _ key: AttributeID) {
        if let first = lanes[key]?.first { lanes[key]?.waiting.insert(operation, at: first) }
    }

    // MARK: Security

    /// A transfer is not repeated: the peripheral may have received a part of it.
    private func canSecure(_ operation: Operation) -> Bool {
        guard pairsOnDemand, !operation.wasSecured else { return false }
        if case .transfer = operation.request { return false }
        return true
    }

    /// Lets an operation that is about to be sent wait for a pairing, if that is possible.
    mutating func secure(_ operation: Operation) -> Bool {
        guard canSecure(operation), let key = places[operation.id] else { return false }
        lanes[key]?.head = .securing(operation, isAbandoned: false)
        return true
    }

    /// A pairing was rejected that BlueZ has begun for one of the operations in flight: those that the peripheral has to
    /// respond to fail. BlueZ may still reply to them. Returns their attributes.
    mutating func refuse(_ error: PairingError, into orders: inout Orders) -> [AttributeID] {
        var targets: [AttributeID] = []
        for key in lanes.keys.sorted() {
            guard case .inFlight(let operation)? = lanes[key]?.head, operation.request.hasResponse else { continue }
            lanes[key]?.head = .abandoned(operation)
            settle(operation, .failed(.characteristic(.pairingFailed(error))), &orders)
            targets.append(operation.target)
        }
        return targets
    }

    /// The pairing has ended: operations that waited for it are repeated, or have failed.
    mutating func secured(_ error: PairingError?, into orders: inout Orders) -> [Operation] {
        var sent: [Operation] = []
        for key in lanes.keys.sorted() {
            guard case .securing(var operation, let isAbandoned)? = lanes[key]?.head else { continue }
            lanes[key]?.head = nil
            if let error, !isAbandoned {
                places[operation.id] = nil
                settle(operation, .failed(.characteristic(.pairingFailed(error))), &orders)
            } else if !isAbandoned {
                operation.wasSecured = true
                putBack(operation, key)
            }
            if let next = advance(key) { sent.append(next) }
        }
        return sent
    }

    /// Sends the next operation of a lane, if that is possible.
    private mutating func advance(_ key: AttributeID) -> Operation? {
        guard var lane = lanes.removeValue(forKey: key) else { return nil }
        defer { if !lane.isIdle { lanes[key] = lane } }
        return start(&lane)
    }

    private func start(_ lane: inout Lane) -> Operation? {
        guard isOpen, !lane.isHeld, lane.head == nil, let next = lane.next() else { return nil }
        lane.head = .inFlight(next)
        return next
    }

    // MARK: The link and its attributes

    /// Marks the attributes as known: the first operation of each lane is sent, except in lanes that are held.
    mutating func open() -> [Operation] {
        isOpen = true
        return lanes.keys.sorted().compactMap { advance($0) }
    }

    /// Marks the attributes as no longer known. Operations in flight continue.
    mutating func close() { isOpen = false }

    /// Fails all operations after the link is lost, and ignores late replies of BlueZ.
    /// - Parameter keepsSecuring: Whether operations that wait for a pairing continue to wait: the pairing makes a new
    ///   link.
    mutating func fail(_ failure: OperationFailure, keepsSecuring: Bool = false, into orders: inout Orders) {
        isOpen = false
        for key in lanes.keys.sorted() {
            let head = lanes[key]?.head
            guard keepsSecuring, case .securing(let operation, isAbandoned: false)? = head else {
                fail(key, failure, into: &orders)
                continue
            }
            lanes[key]?.head = nil
            let place = places.removeValue(forKey: operation.id)
            fail(key, failure, into: &orders)
            lanes[key] = Lane(head: head)
            places[operation.id] = place
        }
    }

    /// Sends no more operations of a lane, because its characteristic may no longer exist.
    mutating func hold(_ key: AttributeID) { lanes[key, default: Lane()].isHeld = true }

    func isHeld(_ key: AttributeID) -> Bool { lanes[key]?.isHeld == true }

    /// The lanes that are held.
    var heldLanes: [AttributeID] { lanes.keys.filter { isHeld($0) }.sorted() }

    /// The lanes in which an operation waits or is in flight, or that are held.
    var busyLanes: [AttributeID] { lanes.keys.sorted() }

    /// Returns the number of operations on an attribute of a lane that are not settled and whose request is accepted.
    func count(
        on target: AttributeID, lane key: AttributeID, where isCounted: (AttributeState.Request) -> Bool
    ) -> Int {
        guard let lane = lanes[key] else { return 0 }
        let head: Operation? =
            switch lane.head {
            case .inFlight(let operation), .refused(let operation, isAbandoned: false),
                .securing(let operation, isAbandoned: false):
                operation
            case .refused(_, isAbandoned: true), .securing(_, isAbandoned: true), .abandoned, nil: nil
            }
        return (lane.waiting[lane.first...] + [head].compactMap { $0 })
            .count { $0.target == target && isCounted($0.request) }
    }

    /// Returns the operation with this id, if it is in flight and not settled.
    func inFlight(_ id: OperationID) -> Operation? {
        guard let key = places[id], case .inFlight(let operation)? = lanes[key]?.head, operation.id == id else {
            return nil
        }
        return operation
    }

    /// Returns the operation with this id, if BlueZ has not replied to it, and its lane.
    func called(_ id: OperationID) -> (operation: Operation, lane: AttributeID)? {
        guard let key = places[id], let operation = lanes[key]?.called, operation.id == id else { return nil }
        return (operation, key)
    }

    /// Sends the operations of a lane again, because its characteristic exists.
    mutating func release(_ key: AttributeID) -> Operation? {
        lanes[key]?.isHeld = false
        return advance(key)
    }

    /// Fails the operations of a lane, because its characteristic no longer exists.
    mutating func fail(_ key: AttributeID, _ failure: OperationFailure, into orders: inout Orders) {
        guard let lane = lanes.removeValue(forKey: key) else { return }
        func fail(_ operation: Operation) {
            places[operation.id] = nil
            self.fail(operation, failure, &orders)
        }
        switch lane.head {
        case .inFlight(let operation):
            fail(operation)
        case .abandoned(let operation):
            places[operation.id] = nil
        case .refused(let operation, let isAbandoned):
            orders.append(.cancelTimer(.retry(key)))
            places[operation.id] = nil
            if !isAbandoned { fail(operation) }
        case .securing(let operation, let isAbandoned):
            if !isAbandoned { fail(operation) }
        case nil:
            break
        }
        for operation in lane.waiting[lane.first...] { fail(operation) }
    }
}
