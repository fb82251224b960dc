import BlueCapBlueZ
import BlueCapFutures
import Foundation
import BlueCapGATT
import BlueCapReactor

/// The attributes of one peripheral: which exist, which the user has discovered, and which operations are under way.
///
/// The state is kept from link to link: a `Characteristic` of the last connection works on the next one, if it exists
/// there.
struct AttributeState {
    /// An operation on a characteristic or a descriptor.
    enum Request: Equatable, Sendable {
        case read(offset: Int)
        case write(Data, CBCharacteristicWriteType, offset: Int)
        /// A transfer: as many writes without response as the data need.
        case transfer(Data, TransferFence)

        /// Whether it is one operation that the peripheral responds to.
        var hasResponse: Bool {
            switch self {
            case .read, .write(_, .withResponse, _): true
            case .write, .transfer: false
            }
        }
    }

    private(set) var table = AttributeTable()
    private var discovery = ServiceDiscoveryMachine()
    private var requests = DiscoveryRequests()
    private var lanes = OperationLanes()
    private var wasReadOnThisLink = false
    /// Whether the table differs from what the application knows; reported when the table is valid again.
    private var isChangeUnreported = false
    /// Services that the device's `UUIDs` contain and BlueZ does not export; the discovery no longer waits for them.
    private var unexported: Set<CBUUID> = []
    /// Services that had no characteristics when the table was last valid; the discovery no longer waits for some.
    private var emptyServices: Set<AttributeID> = []
    /// Attributes that were missing in a reading since the table was last valid; the next reading may contain them.
    private var missing: Set<AttributeID> = []
    /// The calls of links that have ended without a reply of BlueZ so far, and their characteristics.
    private var lostCalls: [OperationID: AttributeID] = [:]
    /// The characteristics with a call that BlueZ has forgotten: it refuses others until it removes the device.
    private var spoiled: Set<AttributeID> = []
    /// Whether no operation of this link gets a response any more.
    private(set) var isLinkDead = false
    /// How many searches by name are under way, with the operation that each begins at its end.
    var searches = 0
    /// Why the last link ended. What is requested before the next link fails with it too, unless the application has ended
    /// the link.
    private(set) var linkFailure = OperationFailure.linkLost

    // MARK: Queries

    /// Whether the table is known to be valid.
    var isReady: Bool { discovery.isReady }
    var hasLink: Bool { discovery.hasLink }
    /// Why there is no link for an operation that is requested now.
    private var lossFailure: OperationFailure { linkFailure == .linkEnded ? .linkLost : linkFailure }

    /// Whether an operation waits for a pairing.
    var isSecuring: Bool { lanes.isSecuring }
    /// Whether an operation needs a pairing, or has shown that the link is of no use.
    var needsAttention: Bool { isSecuring || isLinkDead }
    /// Whether BlueZ is executing an operation.
    var isBusy: Bool { lanes.isBusy }

    /// Returns BlueZ's name of an attribute; `nil` while it has no object on a link. Of a virtual battery the name is that of
    /// its level, which can only be subscribed to.
    func key(of id: AttributeID, on device: ObjectKey?) -> AttributeKey? {
        guard hasLink, let device, let record = table[id], record.isPresent else { return nil }
        return AttributeKey(device, record.handle)
    }

    /// Returns the number of operations on a characteristic that are not settled and whose request `isCounted` accepts.
    func pendingCount(on id: AttributeID, where isCounted: (Request) -> Bool) -> Int {
        lanes.count(on: id, where: isCounted)
    }

    // MARK: The link

    mutating func linkUp(isResolved: Bool, into orders: inout Orders) {
        guard !discovery.hasLink else { return resolved(isResolved, into: &orders) }
        wasReadOnThisLink = false
        isChangeUnreported = false
        isLinkDead = false
        linkFailure = .linkLost
        table.forgetDiscovered()
        discover(.linkUp(isResolved: isResolved), &orders)
        requests.linkUp()
    }

    /// `ServicesResolved` of the device.
    mutating func resolved(_ isResolved: Bool, into orders: inout Orders) { discover(.resolved(isResolved), &orders) }

    /// The link has ended, or must not be used any more: all operations fail.
    /// - Parameter keepsSecuring: Whether operations that wait for a pairing continue to wait.
    mutating func linkDown(
        _ failure: OperationFailure, keepsSecuring: Bool = false, into orders: inout Orders
    ) {
        guard discovery.hasLink else { return }
        linkFailure = failure
        for (operation, lane) in lanes.unanswered { lostCalls[operation.id] = lane }
        let change = discovery.event(.linkLost, into: &orders)
        apply(change, linkFailure: failure, &orders)
        lanes.fail(failure, keepsSecuring: keepsSecuring, into: &orders)
    }

    /// There will be no further link.
    mutating func closed(into orders: inout Orders) {
        linkDown(.linkEnded, into: &orders)
        // Without a link, those that wait for a pairing.
        lanes.fail(.linkEnded, into: &orders)
        failNextLink(into: &orders)
        cancelLookUps(into: &orders)
    }

    /// Whether requests wait only for the next link.
    var awaitsNextLink: Bool { !requests.ids(of: .nextLink).isEmpty }

    /// Fails the requests that wait only for the next link, because the application no longer wants it, or because BlueZ has
    /// refused the call that had to precede it.
    mutating func failNextLink(
        _ failure: PeripheralFailure = .peripheral(.forcedDisconnect), into orders: inout Orders
    ) {
        for id in requests.ids(of: .nextLink) { requests.settle(id, .failed(failure), &orders) }
    }

    /// Ends look-ups that outlive links: those for this name, or all. Returns whether there were any.
    @discardableResult
    mutating func cancelLookUps(of name: AttributeName? = nil, into orders: inout Orders) -> Bool {
        let ids = requests.ids(of: .lasting, for: name)
        for id in ids { requests.settle(id, .failed(.cancelled), &orders) }
        return !ids.isEmpty
    }

    // MARK: Security

    /// Whether a pairing has failed on this link, so that a value that is known to be protected is not tried.
    var hasFailedToPair: Bool {
        get { lanes.hasFailedToPair }
        set { lanes.hasFailedToPair = newValue }
    }

    /// Whether a subscription that lacks security waits for a pairing, unless the device is paired.
    var pairsOnDemand: Bool { lanes.pairsOnDemand }

    mutating func policyChanged(pairsForOperations: Bool) {
        (lanes.pairsForOperations, lanes.hasFailedToPair) = (pairsForOperations, false)
    }

    /// A pairing has ended: the operations that waited for it are repeated, now or on the next link, or have failed.
    mutating func secured(_ error: PairingError?, into orders: inout Orders) {
        for operation in lanes.secured(error, into: &orders) { send(operation, &orders) }
    }

    /// There will be no link for the operations that a pairing has left waiting.
    mutating func linkUnwanted(into orders: inout Orders) {
        if !discovery.hasLink { lanes.fail(lossFailure, into: &orders) }
    }

    // MARK: Calls that BlueZ forgets

    // From 5.67 on BlueZ forgets an operation that waits for a pairing when the link ends, and counts its characteristic as
    // busy until it removes the device (Documentation/BlueZNotes.md).

    /// Whether BlueZ has not replied to calls of the last link.
    var hasLostCalls: Bool { !lostCalls.isEmpty || !spoiled.isEmpty }
    /// Whether it will not reply to them.
    var isSpoiled: Bool { !spoiled.isEmpty }

    /// BlueZ has replied to all calls of the last link that it will reply to.
    mutating func repliesCame() {
        spoiled.formUnion(lostCalls.values)
        lostCalls = [:]
    }

    /// BlueZ has removed the device.
    mutating func deviceRemoved() {
        linkFailure = .linkLost
        lostCalls = [:]
        spoiled = []
    }

    /// A pairing was rejected that BlueZ has begun for an operation in flight, or for a subscription.
    mutating func refuse(_ error: PairingError, into orders: inout Orders) {
        isLinkDead = discovery.hasLink
        let targets = lanes.refuse(error, into: &orders)
        if targets.count == 1, !orders.status.isPaired { table.change(targets[0]) { $0.isProtected = true } }
    }

    /// Returns the seconds for which BlueZ's reply to an operation is awaited.
    ///
    /// The peripheral has 30 for each request of the protocol (Core Specification, Vol 3, Part F, 3.3.3), after which BlueZ
    /// ends the link; five more are for BlueZ. But that limit does not hold for a request that BlueZ repeats because of
    /// its security: if the pairing fails, there may be neither a reply nor an end (5.67 and later). There is one request at a
    /// time, so those of other operations come first; and a long value needs several, one for each packet.
    ///
    /// A value that was never read is assumed to fit into one packet: a protected value is refused at its first request, and
    /// this limit ends that wait. Only a long value over a link with more than a second for each packet takes longer; its
    /// first read needs a time limit of the application, which is respected.
    private func replyLimit(of id: OperationID) -> TimeInterval {
        guard let (operation, _) = lanes.called(id) else { return 35 }
        let limit = 30 * Double(requestCount(of: operation) + lanes.count - 1) + 5
        return operation.timeout.isFinite ? max(limit, operation.timeout) : limit
    }

    /// The number of requests of the protocol that an operation needs: one, and one more for each further part of a value
    /// that does not fit into a packet (`bt_gatt_client_read_long_value`, `bt_gatt_client_write_long_value`).
    private func requestCount(of operation: OperationLanes.Operation) -> Int {
        let mtu = max(table[operation.target]?.mtu ?? table.mtu ?? 23, 23)
        switch operation.request {
        case .read(let offset):
            let known = table[operation.target]?.value?.count ?? 0
            return 1 + max(0, known - offset) / (mtu - 1)
        case .write(let data, .withResponse, let offset):
            guard offset > 0 || data.count > mtu - 3 else { return 1 }
            // Each part is prepared, and then all are executed.
            return (data.count + mtu - 6) / (mtu - 5) + 1
        case .write, .transfer:
            return 1
        }
    }

    /// BlueZ has not replied to an operation in time. Returns whether the link of a peripheral that is not paired is dead.
    private mutating func unanswered(_ id: OperationID, isPaired: Bool) -> Bool {
        guard !isPaired, discovery.hasLink, let (operation, lane) = lanes.called(id),
            operation.request.hasResponse || lanes.isTransferring(id)
        else { return false }
        spoiled.insert(lane)
        isLinkDead = true
        return true
    }

    // MARK: Reports of BlueZ

    mutating func fencePassed(link: UInt32, into orders: inout Orders) {
        if link == discovery.link { discover(.fencePassed, &orders) }
    }

    mutating func tableRead(_ exported: ExportedAttributes, link: UInt32, into orders: inout Orders) {
        guard link == discovery.link, discovery.hasLink else { return }
        let (invalidated, isChanged) = table.read(exported.declarations)
        missing.formUnion(invalidated)
        // The first reading of the table is not a change.
        if wasReadOnThisLink, isChanged { isChangeUnreported = true }
        let isWhole = table.isWhole(
            naming: exported.services.filter { !unexported.contains($0) }, empty: emptyServices)
        let change = discovery.event(.read(isWhole ? .whole : table.isEmpty ? .nothing : .some), into: &orders)
        if discovery.isReady {
            let gone = missing.filter { table[$0]?.isPresent != true }.ordered()
            if !gone.isEmpty { orders.append(.release(gone)) }
            missing = []
            emptyServices = table.emptyServices
            unexported = Set(exported.services).subtracting(table.allServices.compactMap { table[$0]?.uuid })
        }
        apply(change, &orders)
        if discovery.isReady {
            if isChangeUnreported { orders.append(.servicesChanged) }
            (wasReadOnThisLink, isChangeUnreported) = (true, false)
        }
        for (handle, value, mtu) in exported.values {
            mtuChanged(at: handle, mtu)
            // BlueZ exports an empty value before there is one.
            if let value, !value.isEmpty { keepValue(value, at: handle) }
        }
    }

    /// BlueZ has exported an attribute, or changed its declaration.
    mutating func objectAppeared(into orders: inout Orders) { discover(.changed, &orders) }

    mutating func objectDisappeared(_ handle: AttributeHandle, value: Data? = nil, into orders: inout Orders) {
        if let value { keepValue(value, at: handle) }
        if !spoiled.isEmpty, let id = table.id(at: handle) { spoiled.remove(lane(of: id)) }
        guard discovery.hasLink else { return }
        if let id = table.removed(at: handle) { lanes.hold(lane(of: id)) }
        discover(.changed, &orders)
    }

    /// The level of a battery that BlueZ reads itself; `nil` if there is none any more.
    mutating func batteryChanged(_ level: UInt8?, into orders: inout Orders) {
        guard let id = table.id(at: .batteryLevel) else {
            // If the peripheral exports a battery service itself, that service has more information.
            let isShown = table.allServices.contains { table[$0]?.uuid == .battery }
            if level != nil, !isShown { objectAppeared(into: &orders) }
            return
        }
        guard let level else {
            objectDisappeared(.batteryLevel, into: &orders)
            return objectDisappeared(.batteryService, into: &orders)
        }
        table.change(id) { $0.value = Data([level]) }
    }

    /// BlueZ removes the device. Keeps the newest values of its attributes.
    mutating func keepValues(_ value: (AttributeHandle) -> Data?) {
        for handle in table.handles { if let value = value(handle) { keepValue(value, at: handle) } }
    }

    private mutating func keepValue(_ value: Data, at handle: AttributeHandle) {
        if let id = table.id(at: handle) { table.change(id) { $0.value = value } }
    }

    mutating func mtuChanged(at handle: AttributeHandle, _ mtu: Int?) {
        if let id = table.id(at: handle) { table.change(id) { $0.mtu = mtu } }
    }

    mutating func replied(
        _ id: OperationID, _ result: Result<Data?, BlueZError>, at now: @autoclosure () -> Instant,
        into orders: inout Orders
    ) {
        var isUnanswered = false
        if case .failure(let error) = result, error.cause == .noReply {
            isUnanswered = unanswered(id, isPaired: orders.status.isPaired)
        } else if !lostCalls.isEmpty {
            lostCalls[id] = nil
        }
        let failure = result.failure.map { isUnanswered ? .unanswered($0) : OperationFailure($0) }
        if lanes.isTransferring(id) { return transfer(id, .replied(failure, now()), &orders) }
        if var failure {
            if case .busy = failure, let lane = lanes.called(id)?.lane, spoiled.contains(lane) {
                failure = .refused(.operationForgotten(isPaired: orders.status.isPaired))
            }
            if failure.isAboutSecurity, !orders.status.isPaired, let operation = lanes.inFlight(id) {
                table.change(operation.target) { $0.isProtected = true }
            }
            return send(lanes.replied(id, .failure(failure), into: &orders), &orders)
        }
        let data = try? result.get()
        if let data, let operation = lanes.inFlight(id), operation.request == .read(offset: 0) {
            table.change(operation.target) { $0.value = data }
        }
        send(lanes.replied(id, .success(data.map { .value($0) } ?? .done), into: &orders), &orders)
    }

    // MARK: Requests of the application

    /// The attribute with this name, if a search would find it at once and no search is under way, so that the operations keep
    /// the order of the calls. Mutating, so that this is read in place: a copy would retain and release dozens of references.
    mutating func known(_ name: AttributeName) -> AttributeID? {
        guard searches == 0, discovery.hasLink, discovery.isReady else { return nil }
        return try? table.find(name).get()
    }

    /// Starts a request that needs the services: it is settled when they are known, or when it is known that they
    /// cannot be.
    /// - Parameter outlivesLinks: Whether it waits for the next link, now or after a loss, and does not fail.
    mutating func request(
        _ request: DiscoveryRequests.Request, _ id: OperationID, outlivesLinks: Bool = false, into orders: inout Orders
    ) {
        requests.add(request, id, outlivesLinks ? .lasting : .link)
        apply(discovery.event(.wanted, into: &orders), to: id, &orders)
    }

    /// Shows all services on the next link.
    mutating func discoverServicesOnNextLink(_ id: OperationID) {
        requests.add(.services(nil), id, .nextLink)
    }

    /// Starts an operation on a characteristic or a descriptor when it is first in its lane.
    mutating func submit(
        _ request: Request, on target: AttributeID, _ id: OperationID, timeout: TimeInterval,
        into orders: inout Orders
    ) {
        let record = table[target]
        if let refusal = refusal(of: request, on: record) {
            return orders.append(.settle(id, .failed(.characteristic(refusal))))
        }
        guard discovery.hasLink else {
            return orders.append(.settle(id, .failed(PeripheralFailure(lossFailure, request))))
        }
        let isPresent = record?.isPresent == true
        guard isPresent || !discovery.isReady || lanes.isHeld(lane(of: target)) else {
            return orders.append(.settle(id, .failed(PeripheralFailure(.invalidated, request))))
        }
        if let record, isPresent, record.handle.isVirtual {
            // BlueZ keeps the value current; there is nothing to read.
            guard case .read(let offset) = request else { return orders.append(.settle(id, .done)) }
            return orders.append(.settle(id, .value(Data((record.value ?? Data()).dropFirst(offset)))))
        }
        let operation = OperationLanes.Operation(id: id, target: target, request: request, timeout: timeout)
        send(lanes.submit(operation, lane: lane(of: target)), &orders)
    }

    /// Returns the error of a request that can be refused without a call to BlueZ.
    private func refusal(of request: Request, on record: AttributeTable.Record?) -> CharacteristicError? {
        guard let record else { return .unconfigured }
        // BlueZ does not export the permissions of a descriptor (`descriptor_properties`, 5.55 to HEAD).
        let properties =
            record.declaration.kind == .characteristic ? record.declaration.properties : [.read, .write]
        switch request {
        case .read:
            return properties.contains(.read) ? nil : .readNotSupported
        case .write(let data, let type, let offset):
            guard properties.contains(type == .withResponse ? .write : .writeWithoutResponse) else {
                return .writeNotSupported
            }
            let count = offset + data.count
            let maximum = AttributeTable.maximumWriteLength(for: type, mtu: record.mtu)
            return count > maximum ? .valueTooLong(count: count, maximum: maximum) : nil
        case .transfer(_, let fence):
            guard properties.contains(.writeWithoutResponse) else { return .writeNotSupported }
            switch fence {
            case .automatic, .none: return nil
            case .writing: return properties.contains(.write) ? nil : .writeNotSupported
            case .reading(let id): return canBeRead(id) ? nil : .readNotSupported
            }
        }
    }

    // MARK: Timers

    mutating func fired(_ timer: ServiceDiscoveryMachine.Timer, into orders: inout Orders) {
        discover(.fired(timer), &orders)
    }

    /// The pause before a lane repeats its operation is over.
    mutating func retryDue(_ lane: AttributeID, into orders: inout Orders) { send(lanes.retry(lane), &orders) }

    /// The pause of a transfer is over.
    mutating func transferDue(_ id: OperationID, into orders: inout Orders) {
        if lanes.isTransferring(id) { return transfer(id, .paused, &orders) }
        // The transfer has exceeded its time, and its characteristic is free now.
        send(lanes.replied(id, .success(.done), into: &orders), &orders)
    }

    /// Ends an operation whose time limit is exceeded, or that is withdrawn, as ``OperationLanes/end(_:_:into:)`` does.
    mutating func end(_ id: OperationID, _ failure: OperationFailure, into orders: inout Orders) -> Bool {
        guard let timeout = requests.timeoutError(of: id) else { return lanes.end(id, failure, into: &orders) }
        requests.settle(id, .failed(failure == .withdrawn ? .cancelled : timeout), &orders)
        return true
    }

    // MARK: The discovery

    private mutating func discover(_ event: ServiceDiscoveryMachine.Event, _ orders: inout Orders) {
        apply(discovery.event(event, into: &orders), &orders)
    }

    /// - Parameter id: The request that the result is for; all that wait if `nil`.
    private mutating func apply(
        _ change: ServiceDiscoveryMachine.Change?, to id: OperationID? = nil, linkFailure: OperationFailure? = nil,
        _ orders: inout Orders
    ) {
        guard let change else { return }
        switch change {
        case .found, .foundNothing:
            let sent = lanes.open(where: { [table] in table[$0]?.isPresent == true }, into: &orders)
            for operation in sent { send(operation, &orders) }
        case .isVoid: return lanes.close()
        case .linkLost: break
        }
        for id in id.map({ [$0] }) ?? requests.ids() {
            switch change {
            case .found: requests.settle(id, requests.outcome(of: id, in: &table), &orders)
            case .foundNothing: requests.settle(id, .failed(.peripheral(.noServices)), &orders)
            case .linkLost where !requests.failsWithLink(id): break
            case .linkLost, .isVoid:
                requests.settle(id, .failed(.peripheral((linkFailure ?? lossFailure).linkError)), &orders)
            }
        }
    }

    // MARK: Calls

    private mutating func send(_ operation: OperationLanes.Operation?, _ orders: inout Orders) {
        guard let operation else { return }
        guard let record = table[operation.target], record.isPresent else {
            return send(lanes.replied(operation.id, .failure(.invalidated), into: &orders), &orders)
        }
        // A refused attempt can leave the link unusable (BlueZ 5.67 and later), so it is not made again.
        if record.isProtected {
            if lanes.secure(operation, isPaired: orders.status.isPaired) { return }
            if hasFailedToPair, !orders.status.isPaired {
                return send(
                    lanes.replied(operation.id, .failure(.needsSecurity(.pairingHasFailed)), into: &orders), &orders)
            }
        }
        switch operation.request {
        case .read(let offset):
            read(operation.target, offset: offset, for: operation.id, &orders)
        case .write(let data, let type, let offset):
            write(data, type, offset: offset, to: operation.target, for: operation.id, &orders)
        case .transfer(let data, let fence):
            let length = AttributeTable.maximumWriteLength(for: .withoutResponse, mtu: record.mtu)
            let fence = fence == .automatic ? automaticFence(for: operation.target) : fence
            lanes.begin(TransferMachine(count: data.count, length: length, fence: fence), operation.id)
            transfer(operation.id, .begun, &orders)
        }
    }

    private func read(_ target: AttributeID, offset: Int, for id: OperationID, _ orders: inout Orders) {
        guard let handle = table[target]?.handle else { return }
        orders.append(.read(id, handle, offset: offset, limit: replyLimit(of: id)))
    }

    private func write(
        _ data: Data, _ type: CBCharacteristicWriteType, offset: Int, to target: AttributeID, for id: OperationID,
        _ orders: inout Orders
    ) {
        guard let handle = table[target]?.handle else { return }
        orders.append(.write(id, handle, data, type, offset: offset, limit: replyLimit(of: id)))
    }

    private mutating func transfer(_ id: OperationID, _ event: TransferMachine.Event, _ orders: inout Orders) {
        guard let (operation, action, report) = lanes.transfer(id, event),
            case .transfer(let data, _) = operation.request
        else { return }
        // One that has begun continues without the object of its characteristic until BlueZ refuses a call.
        switch action {
        case .write(let part, let isRequest):
            let bytes = Data(data.dropFirst(part.lowerBound).prefix(part.count))
            write(
                bytes, isRequest ? .withResponse : .withoutResponse, offset: 0, to: operation.target, for: id, &orders)
        case .read(let fence): read(fence, offset: 0, for: id, &orders)
        case .pause(let seconds): orders.append(.startTimer(.transfer(id), seconds))
        case .finish(let failure):
            let result = failure.map { Result.failure($0) } ?? .success(Order.Outcome.transferred(report))
            send(lanes.replied(id, result, into: &orders), &orders)
        }
    }

    private func canBeRead(_ id: AttributeID) -> Bool {
        guard let record = table[id], record.isPresent, !record.handle.isVirtual else { return false }
        return record.declaration.properties.contains(.read)
    }

    /// A read does not change the order of the writes, so a read is preferred. BlueZ up to 5.66 uses several channels
    /// by default (EATT), and a part that is written with response could overtake the others.
    private func automaticFence(for target: AttributeID) -> TransferFence {
        let siblings = table[target]?.parent.flatMap { table[$0]?.children } ?? []
        if let readable = ([target] + siblings).first(where: canBeRead) { return .reading(readable) }
        return table[target]?.declaration.properties.contains(.write) == true ? .writing : .none
    }

    /// Returns the lane of an attribute: a descriptor uses that of its characteristic.
    private func lane(of target: AttributeID) -> AttributeID {
        guard let record = table[target], record.declaration.kind == .descriptor else { return target }
        return record.parent ?? target
    }
}
