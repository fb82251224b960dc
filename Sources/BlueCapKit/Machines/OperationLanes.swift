import BlueCapBlueZ
import Foundation
import BlueCapFutures

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
        /// Whether it is repeated after a pairing, which happens once.
        var wasSecured = false
    }

    private enum Phase {
        /// BlueZ is executing it.
        case called
        /// BlueZ was too busy for it, and it is repeated after a pause.
        case refused
        /// It is repeated after a pairing.
        case securing
    }

    private struct Lane {
        var head: Operation?
        var phase = Phase.called
        /// Whether the head is settled already: its time limit was exceeded, or its pairing was rejected.
        var isSettled = false
        /// Whether nothing waits for the head any more, which BlueZ is executing: it is not repeated.
        var isWithdrawn = false
        /// The progress of the head if it is a transfer.
        var transfer: TransferMachine?
        var refusals = 0
        /// Waits until it is known whether its characteristic still exists.
        var isHeld = false
        var waiting = Ring<Operation>()
        var isIdle: Bool { head == nil && waiting.isEmpty && !isHeld }

        /// The operation that BlueZ is executing, settled or not.
        var called: Operation? { phase == .called ? head : nil }
        var isSecuring: Bool { phase == .securing && head != nil && !isSettled }

        mutating func setHead(_ operation: Operation?, _ phase: Phase = .called) {
            (head, self.phase, isSettled, isWithdrawn, transfer) = (operation, phase, false, false, nil)
        }
    }

    /// The seconds after which an operation is repeated that BlueZ was too busy for.
    static let retries: [TimeInterval] = [0.05, 0.1, 0.2, 0.4, 0.6, 0.8]

    private(set) var isOpen = false
    /// Whether the manager pairs for an operation that lacks security.
    var pairsForOperations = false
    /// Whether a pairing has failed on this link: another attempt would fail too.
    var hasFailedToPair = false
    /// Whether an operation that lacks security waits for a pairing, and does not fail, unless the device is paired.
    var pairsOnDemand: Bool { pairsForOperations && !hasFailedToPair }
    private var lanes = KeyedTable<AttributeID, Lane>()
    /// The lanes of all operations that are not settled.
    private var places = KeyedTable<OperationID, AttributeID>()

    /// Whether nothing waits and nothing is in flight.
    var isIdle: Bool { lanes.isEmpty }

    /// Whether an operation waits for a pairing.
    var isSecuring: Bool { lanes.count { $0.isSecuring } > 0 }

    /// Whether BlueZ is executing an operation.
    var isBusy: Bool { lanes.count { $0.called != nil && !$0.isSettled } > 0 }

    /// The number of lanes with operations, each of which has at most one in flight.
    var count: Int { lanes.count }

    /// The operations that BlueZ has not replied to, settled or not, and their lanes.
    var unanswered: [(operation: Operation, lane: AttributeID)] {
        lanes.compactMap { key, lane in lane.called.map { ($0, key) } }
    }

    // MARK: Submitting

    mutating func submit(_ operation: Operation, lane: AttributeID) -> Operation? {
        places[operation.id] = lane
        if isOpen, lanes.insert(Lane(head: operation), lane) { return operation }
        change(lane) { $0.waiting.append(operation) }
        return advance(lane)
    }

    /// Changes a lane, which is made if there is none.
    private mutating func change(_ key: AttributeID, _ body: (inout Lane) -> Void) {
        lanes.insert(Lane(), key)
        lanes.update(key, body)
    }

    /// Takes a lane out of the table while it changes: changing it in place several times would cost more. `put` follows.
    private mutating func take(_ key: AttributeID) -> Lane? {
        lanes.update(key) { lane in
            var taken = Lane()
            swap(&taken, &lane)
            return taken
        }
    }

    private mutating func put(_ lane: Lane, _ key: AttributeID) { lanes[key] = lane.isIdle ? nil : lane }

    /// Settles an operation that has exceeded its time limit, or is withdrawn. The first one of a lane leaves it when BlueZ has
    /// replied, or when its pause is over. BlueZ cannot take an operation back, so the one that it is executing is withdrawn only
    /// if it is a transfer, of which nothing more is written.
    /// - Returns: Whether there is such an operation that was not settled.
    mutating func end(_ id: OperationID, _ failure: OperationFailure, into orders: inout Orders) -> Bool {
        guard let key = places[id], var lane = take(key) else { return false }
        defer { put(lane, key) }
        let operation: Operation
        if let head = lane.head, head.id == id {
            guard !lane.isSettled else { return false }
            if failure == .withdrawn, lane.phase == .called, lane.transfer == nil {
                lane.isWithdrawn = true
                return true
            }
            operation = head
            (lane.isSettled, lane.transfer) = (true, nil)
        } else {
            guard let waiting = lane.waiting.remove(where: { $0.id == id }) else { return false }
            operation = waiting
            places[id] = nil
        }
        fail(operation, failure, &orders)
        return true
    }

    // MARK: Replies of BlueZ

    /// Settles the operation that BlueZ has replied to, or repeats it later. A reply to a call of an earlier connection is
    /// ignored.
    mutating func replied(
        _ id: OperationID, _ result: Result<Order.Outcome, OperationFailure>, into orders: inout Orders
    ) -> Operation? {
        guard let key = places[id], var lane = take(key) else { return nil }
        defer { put(lane, key) }
        guard let operation = lane.called, operation.id == id else { return nil }
        switch result {
        case _ where lane.isSettled: break
        case .success(let outcome): orders.append(.settle(id, outcome))
        case .failure(.busy) where lane.refusals < Self.retries.count && !lane.isWithdrawn:
            lane.phase = .refused
            orders.append(.startTimer(.retry(key), Self.retries[lane.refusals]))
            lane.refusals += 1
            return nil
        case .failure(.needsSecurity)
        where canSecure(operation, isPaired: orders.status.isPaired) && !lane.isWithdrawn:
            lane.phase = .securing
            return nil
        case .failure(let failure): fail(operation, failure, &orders)
        }
        places[id] = nil
        lane.setHead(nil)
        lane.refusals = 0
        return start(&lane)
    }

    private func fail(_ operation: Operation, _ failure: OperationFailure, _ orders: inout Orders) {
        orders.append(
            .settle(
                operation.id, .failed(PeripheralFailure(failure, operation.request, isPaired: orders.status.isPaired))))
    }

    /// The pause of a lane is over.
    mutating func retry(_ key: AttributeID) -> Operation? {
        guard let lane = lanes[key], lane.phase == .refused else { return nil }
        return sendAgain(key)
    }

    /// Begins a transfer, which is the head of its lane.
    mutating func begin(_ transfer: TransferMachine, _ id: OperationID) {
        if let key = places[id] { lanes[key]?.transfer = transfer }
    }

    /// Sends an event to a transfer. Returns its next step; `nil` if there is none.
    mutating func transfer(
        _ id: OperationID, _ event: TransferMachine.Event
    ) -> (operation: Operation, action: TransferMachine.Action, report: TransferReport)? {
        guard let key = places[id], let operation = lanes[key]?.called, operation.id == id,
            let action = lanes[key]?.transfer?.event(event), let report = lanes[key]?.transfer?.report
        else { return nil }
        return (operation, action, report)
    }

    /// Sends the head of a lane again when that is possible: it keeps its turn. A settled one leaves the lane.
    private mutating func sendAgain(_ key: AttributeID, wasSecured: Bool = false) -> Operation? {
        if let lane = lanes[key], var head = lane.head {
            lanes[key]?.setHead(nil)
            head.wasSecured = head.wasSecured || wasSecured
            if lane.isSettled { places[head.id] = nil } else { lanes[key]?.waiting.prepend(head) }
        }
        return advance(key)
    }

    // MARK: Security

    /// A transfer is not repeated: the peripheral may have received a part of it.
    private func canSecure(_ operation: Operation, isPaired: Bool) -> Bool {
        guard pairsOnDemand, !isPaired, !operation.wasSecured else { return false }
        if case .transfer = operation.request { return false }
        return true
    }

    /// Lets an operation that is about to be sent wait for a pairing, if that is possible.
    mutating func secure(_ operation: Operation, isPaired: Bool) -> Bool {
        guard canSecure(operation, isPaired: isPaired), let key = places[operation.id] else { return false }
        lanes[key]?.phase = .securing
        return true
    }

    /// A pairing was rejected that BlueZ has begun for one of the operations in flight: those that the peripheral has to
    /// respond to fail. BlueZ may still reply to them. Returns their attributes.
    mutating func refuse(_ error: PairingError, into orders: inout Orders) -> [AttributeID] {
        hasFailedToPair = true
        return lanes.keys.ordered().compactMap { key in
            guard let lane = lanes[key], !lane.isSettled, let operation = lane.called, operation.request.hasResponse
            else { return nil }
            lanes[key]?.isSettled = true
            orders.append(.settle(operation.id, .failed(.characteristic(.pairingFailed(error)))))
            return operation.target
        }
    }

    /// The pairing has ended: operations that waited for it are repeated, or have failed.
    mutating func secured(_ error: PairingError?, into orders: inout Orders) -> [Operation] {
        lanes.keys.ordered().compactMap { key in
            guard let lane = lanes[key], lane.phase == .securing, let operation = lane.head else { return nil }
            if let error, !lane.isSettled {
                orders.append(.settle(operation.id, .failed(.characteristic(.pairingFailed(error)))))
                lanes[key]?.isSettled = true
            }
            return sendAgain(key, wasSecured: true)
        }
    }

    /// Sends the next operation of a lane, if that is possible.
    private mutating func advance(_ key: AttributeID) -> Operation? {
        guard var lane = take(key) else { return nil }
        defer { put(lane, key) }
        return start(&lane)
    }

    private func start(_ lane: inout Lane) -> Operation? {
        guard isOpen, !lane.isHeld, lane.head == nil, let next = lane.waiting.popFirst() else { return nil }
        lane.setHead(next)
        return next
    }

    // MARK: The link and its attributes

    /// Marks the attributes as known: the first operation of each lane is sent. The operations of a lane whose characteristic
    /// does not exist fail.
    mutating func open(where exists: (AttributeID) -> Bool, into orders: inout Orders) -> [Operation] {
        isOpen = true
        for key in lanes.keys.ordered() where !exists(key) { fail(key, .invalidated, &orders) }
        return lanes.keys.ordered().compactMap { key in
            lanes[key]?.isHeld = false
            return advance(key)
        }
    }

    /// Marks the attributes as no longer known. Operations in flight continue.
    mutating func close() { isOpen = false }

    /// Sends no more operations of a lane, because its characteristic may no longer exist.
    mutating func hold(_ key: AttributeID) { change(key) { $0.isHeld = true } }

    func isHeld(_ key: AttributeID) -> Bool { lanes.read(key) { $0.isHeld } == true }

    /// Fails all operations after the link is lost, and ignores late replies of BlueZ.
    /// - Parameter keepsSecuring: Whether operations that wait for a pairing continue to wait: the pairing makes a new
    ///   link.
    mutating func fail(_ failure: OperationFailure, keepsSecuring: Bool = false, into orders: inout Orders) {
        isOpen = false
        for key in lanes.keys.ordered() { fail(key, failure, keepsSecuring: keepsSecuring, &orders) }
    }

    private mutating func fail(
        _ key: AttributeID, _ failure: OperationFailure, keepsSecuring: Bool = false, _ orders: inout Orders
    ) {
        guard var lane = lanes.remove(key) else { return }
        var failed: [Operation] = []
        if let head = lane.head, !keepsSecuring || !lane.isSecuring {
            if lane.phase == .refused { orders.append(.cancelTimer(.retry(key))) }
            places[head.id] = nil
            if !lane.isSettled { failed.append(head) }
            lane.setHead(nil)
        }
        for operation in failed + lane.waiting.elements {
            places[operation.id] = nil
            fail(operation, failure, &orders)
        }
        if let head = lane.head { lanes[key] = Lane(head: head, phase: .securing) }
    }

    // MARK: Queries

    /// Returns the number of operations on a characteristic that are not settled and whose request is accepted.
    func count(on target: AttributeID, where isCounted: (AttributeState.Request) -> Bool) -> Int {
        guard let lane = lanes[target] else { return 0 }
        let head = lane.isSettled ? nil : lane.head
        return (lane.waiting.elements + [head].compactMap { $0 }).count { $0.target == target && isCounted($0.request) }
    }

    /// Returns the operation with this id, if it is in flight and not settled.
    func inFlight(_ id: OperationID) -> Operation? {
        guard let key = places[id] else { return nil }
        return lanes.read(key) { lane in
            guard let operation = lane.called, operation.id == id, !lane.isSettled else { return nil }
            return operation
        }
    }

    /// Returns the operation with this id, if BlueZ has not replied to it, and its lane.
    func called(_ id: OperationID) -> (operation: Operation, lane: AttributeID)? {
        guard let key = places[id] else { return nil }
        return lanes.read(key) { lane in
            guard let operation = lane.called, operation.id == id else { return nil }
            return (operation, key)
        }
    }

    /// Whether BlueZ is executing a part of this transfer.
    func isTransferring(_ id: OperationID) -> Bool { places[id].flatMap { lanes.read($0) { $0.transfer } } != nil }
}
