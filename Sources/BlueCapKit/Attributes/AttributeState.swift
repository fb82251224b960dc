import BlueZ
import Foundation
import GATT
import Reactor

/// What is decided about the attributes of one peripheral: which there are, which the user has asked for, and what is
/// being done with them.
///
/// It lives from link to link: what a user holds of the last connection works on the next one, where it is there again.
struct AttributeState {
    /// What is done with a characteristic or a descriptor.
    enum Request: Equatable, Sendable {
        case read(offset: Int)
        case write(Data, CBCharacteristicWriteType, offset: Int)
        /// Writes without response, as many as it takes. Never sent as such.
        case transfer(Data, TransferFence)
    }

    enum Effect: Equatable, Sendable {
        /// Has BlueZ answer something about the device, and tells when it has.
        case fence(ObjectKey, link: UInt32)
        /// Reads what BlueZ has exported of the device, and tells.
        case readTable(ObjectKey, link: UInt32)
        indirect case call(OperationID, ObjectKey, handle: UInt16, Request)
        /// These are not there any more; the session lets go of their handles.
        case letGo([AttributeID])
        /// The table is not what it was when it was last known on this connection.
        case servicesChanged
    }

    typealias Effects = [PeripheralState.Effect]

    private(set) var table = AttributeTable()
    private var discovery = ServiceDiscoveryMachine()
    var lanes = OperationLanes<Request>()
    private var wishes = AttributeWishes()
    /// What was asked for and not been settled: those with a time-out.
    private var timed: Set<OperationID> = []
    /// What those reads have brought that somebody wants to have, until it is fetched; empty before the reply.
    private var fetched: [OperationID: Data] = [:]
    /// The transfers that are under way, and what has become of those that have ended, until it is fetched.
    var transfers: [OperationID: Transfer] = [:]
    var reports: [OperationID: TransferReport] = [:]
    private var device: ObjectKey?
    /// Tells the links apart, so that news of an earlier one is known as such.
    private var link: UInt32 = 0
    private var wasReadOnThisLink = false
    /// The table is not what users know of it; they are told when it holds again.
    private var isChangeUntold = false
    /// Services that the device names, and BlueZ was seen not to export; nobody waits for them again.
    private var unexported: Set<CBUUID> = []
    /// Attributes that were missing in a reading since the table held last; they may be there in the next one.
    private var missing: Set<AttributeID> = []

    /// Why the link went that was lost last.
    private(set) var linkFailure = OperationFailure.linkLost

    /// Whether the table is known to hold.
    var isReady: Bool { discovery.isReady }
    var hasLink: Bool { discovery.hasLink }

    /// What a subscription to a characteristic goes by; `nil` while it is not on a link.
    func subscriptionKey(of id: AttributeID) -> AttributeKey? {
        guard let device, let record = table[id], record.isPresent, record.handle == .batteryLevel else {
            return key(of: id)
        }
        return .battery(of: device)
    }

    /// What BlueZ calls an attribute; `nil` while it has no object on a link.
    func key(of id: AttributeID) -> AttributeKey? {
        guard let device, let record = table[id], record.isPresent, let handle = record.handle.attHandle else {
            return nil
        }
        return AttributeKey(device: device, handle: handle)
    }

    // MARK: The link

    mutating func linkUp(_ device: ObjectKey, isResolved: Bool) -> Effects {
        guard !discovery.hasLink else { return resolved(isResolved) }
        self.device = device
        link &+= 1
        wasReadOnThisLink = false
        isChangeUntold = false
        table.forgetDiscovered()
        var effects = perform(discovery.event(.linkUp(isResolved: isResolved)))
        for id in wishes.takeWaitingForLink() { effects += perform(discovery.event(.wanted(id))) }
        return effects
    }

    /// `ServicesResolved` of the device.
    mutating func resolved(_ isResolved: Bool) -> Effects { perform(discovery.event(.resolved(isResolved))) }

    /// The link is gone, or nothing may be done on it any more. Whatever anybody waits for fails.
    mutating func linkDown(_ failure: OperationFailure) -> Effects {
        guard discovery.hasLink else { return [] }
        linkFailure = failure
        device = nil
        return perform(discovery.event(.linkLost), linkFailure: failure) + perform(lanes.fail(failure))
    }

    /// There will be no link any more.
    mutating func closed() -> Effects {
        linkDown(.linkEnded) + nextLinkUnwanted() + abandonLookUps()
    }

    /// What waits for the next link alone waits for nothing.
    mutating func nextLinkUnwanted() -> Effects {
        wishes.takeWaitingForNextLink().flatMap { finish($0, .linkLost, .linkEnded) }
    }

    /// BlueZ has refused what should have come before the next link, for which this one waits.
    mutating func refuseNextLink(_ id: OperationID, _ error: BusFailure) -> Effects {
        guard wishes.contains(id) else { return [] }
        return endTimer(id) + [.settle(id, wishes.deny(id, .bus(error)))]
    }

    /// Ends look-ups that outlive links: those for this name, or all.
    mutating func abandonLookUps(of name: AttributeName? = nil) -> Effects {
        wishes.takeLasting(name).flatMap { id in
            perform(discovery.event(.abandoned(id))) + endTimer(id) + [.settle(id, .cancelled)]
        }
    }

    // MARK: What BlueZ tells

    mutating func fencePassed(link: UInt32) -> Effects {
        guard link == self.link else { return [] }
        return perform(discovery.event(.fencePassed))
    }

    /// What BlueZ has exported, in the order of handles; and the services that the device was found to have.
    mutating func tableRead(_ declarations: [AttributeDeclaration], naming named: [CBUUID], link: UInt32) -> Effects {
        guard link == self.link, discovery.hasLink else { return [] }
        let difference = table.read(declarations)
        let isWhole = table.isWhole(naming: named.filter { !unexported.contains($0) })
        var effects: Effects = []
        missing.formUnion(difference.invalidated)
        effects += perform(discovery.event(.read(isWhole ? .whole : table.isEmpty ? .nothing : .some)))
        // Whoever got the services before is told that they are others now. The first reading is no news.
        if wasReadOnThisLink, !difference.isEmpty { isChangeUntold = true }
        if discovery.isReady {
            let gone = missing.filter { table[$0]?.isPresent != true }.sorted()
            if !gone.isEmpty { effects.insert(.attributes(.letGo(gone)), at: 0) }
            missing = []
            unexported = Set(named).subtracting(table.allServices.compactMap { table[$0]?.uuid })
            if isChangeUntold { effects.append(.attributes(.servicesChanged)) }
            (wasReadOnThisLink, isChangeUntold) = (true, false)
        }
        return effects
    }

    /// BlueZ has exported an attribute, or declared one anew.
    mutating func objectCame() -> Effects { perform(discovery.event(.cameOrWent)) }

    mutating func objectWent(_ handle: AttributeHandle) -> Effects {
        guard discovery.hasLink else { return [] }
        if let id = table.removed(at: handle) { lanes.hold(lane(of: id)) }
        return perform(discovery.event(.cameOrWent))
    }

    /// The level of the battery that BlueZ follows for itself; `nil` where there is none any more.
    mutating func batteryChanged(_ level: UInt8?) -> Effects {
        guard let id = table.id(at: .batteryLevel) else {
            // A service of the peripheral's own tells more.
            let isShown = table.allServices.contains { table[$0]?.uuid == .battery }
            return level == nil || isShown ? [] : objectCame()
        }
        guard let level else {
            _ = objectWent(.batteryLevel)
            return objectWent(.batteryService)
        }
        table.update(id) { $0.value = Data([level]) }
        return []
    }

    /// BlueZ has a new value of an attribute, read or notified, whoever asked for it.
    mutating func valueChanged(at handle: AttributeHandle, _ value: Data) {
        guard let id = table.id(at: handle) else { return }
        table.update(id) { $0.value = value }
    }

    /// A value of a characteristic that we are subscribed to.
    mutating func notified(_ id: AttributeID, _ value: Data) { table.update(id) { $0.value = value } }

    mutating func mtuChanged(at handle: AttributeHandle, _ mtu: Int?) {
        guard let id = table.id(at: handle) else { return }
        table.update(id) { $0.mtu = mtu }
    }

    mutating func replied(_ id: OperationID, _ result: Result<Data?, BlueZError>, at now: Instant) -> Effects {
        if transfers[id] != nil { return transferReplied(id, result, at: now) }
        switch result {
        case .failure(let error):
            return perform(lanes.replied(id, OperationFailure(error)))
        case .success(let data):
            if let data, let operation = lanes.inFlight(id) {
                if operation.request == .read(offset: 0) { table.update(operation.target) { $0.value = data } }
                if fetched[id] != nil { fetched[id] = data }
            }
            return perform(lanes.replied(id, nil))
        }
    }

    /// What a read has brought that was submitted as one to be fetched.
    mutating func takeValue(_ id: OperationID) -> Data? { fetched.removeValue(forKey: id) }

    /// What ``lookUp(_:_:timeout:)`` has found.
    mutating func takeFound(_ id: OperationID) -> AttributeID? { wishes.takeFound(id) }

    // MARK: What users ask for

    /// - Parameter uuids: The services to be shown; `nil` for all.
    mutating func discoverServices(_ uuids: Set<CBUUID>?, _ id: OperationID, timeout: TimeInterval) -> Effects {
        want(.services(uuids), id, timeout)
    }

    mutating func discoverCharacteristics(
        _ uuids: Set<CBUUID>?, of service: AttributeID, _ id: OperationID, timeout: TimeInterval
    ) -> Effects {
        want(.characteristics(uuids, of: service), id, timeout)
    }

    /// All services are to be shown on the next link.
    mutating func discoverServicesOnNextLink(_ id: OperationID, timeout: TimeInterval) -> Effects {
        wishes.add(.services(nil), id, isForNextLink: true)
        return startTimer(id, timeout)
    }

    /// Finds an attribute by its name, once the services are known; what is found counts as asked for.
    /// - Parameter outlivesLinks: Whether it waits for the next link, now or after a loss, and does not fail.
    mutating func lookUp(
        _ name: AttributeName, _ id: OperationID, timeout: TimeInterval, outlivesLinks: Bool = false
    ) -> Effects {
        want(.attribute(name), id, timeout, outlivesLinks: outlivesLinks)
    }

    private mutating func want(
        _ wish: AttributeWishes.Wish, _ id: OperationID, _ timeout: TimeInterval, outlivesLinks: Bool = false
    ) -> Effects {
        wishes.add(wish, id, outlivesLinks: outlivesLinks)
        let timer = startTimer(id, timeout)
        return timer + perform(discovery.event(.wanted(id)))
    }

    /// Something is to be done with a characteristic or a descriptor.
    /// - Parameter isFetched: Whether somebody takes what a read has brought; in any case of its outcome.
    mutating func submit(
        _ request: Request, on target: AttributeID, _ id: OperationID, timeout: TimeInterval, isFetched: Bool = false
    ) -> Effects {
        if isFetched { fetched[id] = Data() }
        if let refusal = refusal(of: request, on: target) { return [.settle(id, .characteristic(refusal))] }
        guard discovery.hasLink else {
            return [.settle(id, PeripheralFailure(.linkLost, request))]
        }
        guard table[target]?.isPresent == true || !discovery.isReady || lanes.isHeld(lane(of: target)) else {
            return [.settle(id, PeripheralFailure(.invalidated, request))]
        }
        if let record = table[target], record.handle.isVirtual, record.isPresent {
            // BlueZ keeps the value current; there is nothing to be asked.
            if case .read(let offset) = request, isFetched {
                fetched[id] = Data((record.value ?? Data()).dropFirst(offset))
            }
            return [.settle(id, nil)]
        }
        let timer = startTimer(id, timeout)
        return timer + perform(lanes.submit(.init(id: id, target: target, request: request), lane: lane(of: target)))
    }

    /// Why BlueZ need not be asked.
    private func refusal(of request: Request, on target: AttributeID) -> CharacteristicError? {
        guard let record = table[target] else { return .unconfigured }
        // BlueZ does not say what can be done with a descriptor (`descriptor_properties`, 5.55 to HEAD).
        let properties =
            record.declaration.kind == .characteristic ? record.declaration.properties : [.read, .write]
        switch request {
        case .read:
            return properties.contains(.read) ? nil : .readNotSupported
        case .write(let data, let type, let offset):
            guard properties.contains(type == .withResponse ? .write : .writeWithoutResponse) else {
                return .writeNotSupported
            }
            let (count, maximum) = (offset + data.count, record.maximumWriteLength(for: type))
            return count > maximum ? .valueTooLong(count: count, maximum: maximum) : nil
        case .transfer(_, let fence):
            guard properties.contains(.writeWithoutResponse) else { return .writeNotSupported }
            return refusal(of: fence, for: target)
        }
    }

    private mutating func startTimer(_ id: OperationID, _ timeout: TimeInterval) -> Effects {
        guard timeout.isFinite else { return [] }
        timed.insert(id)
        return [.startTimer(.operation(id), max(0, timeout))]
    }

    mutating func fired(_ timer: PeripheralState.Timer) -> Effects {
        switch timer {
        case .discovery(let timer): return perform(discovery.event(.fired(timer)))
        case .retry(let lane): return perform(lanes.retry(lane))
        case .operation(let id):
            timed.remove(id)
            guard let failure = wishes.timedOut(id) else { return perform(lanes.timedOut(id)) }
            return perform(discovery.event(.abandoned(id))) + [.settle(id, failure)]
        case .transfer(let id): return transferPaused(id)
        case .connection, .subscription, .run: return []
        }
    }

    // MARK: Doing what the machines say

    private mutating func perform(
        _ effects: [ServiceDiscoveryMachine.Effect], linkFailure: OperationFailure = .linkLost
    ) -> Effects {
        var result: Effects = []
        for effect in effects {
            switch effect {
            case .fence:
                if let device { result.append(.attributes(.fence(device, link: link))) }
            case .read:
                if let device { result.append(.attributes(.readTable(device, link: link))) }
            case .startTimer(let timer, let seconds): result.append(.startTimer(.discovery(timer), seconds))
            case .cancelTimer(let timer): result.append(.cancelTimer(.discovery(timer)))
            case .tableHolds: result += tableHolds()
            case .tableIsVoid: lanes.close()
            case .finish(let id, let outcome): result += finish(id, outcome, linkFailure)
            }
        }
        return result
    }

    /// What waited for the table can go, or has nowhere to go.
    private mutating func tableHolds() -> Effects {
        var effects: [OperationLanes<Request>.Effect] = []
        for lane in lanes.busyLanes where table[lane]?.isPresent != true {
            effects += lanes.fail(lane, .invalidated)
        }
        for lane in lanes.heldLanes { effects += lanes.release(lane) }
        return perform(effects + lanes.open())
    }

    private mutating func finish(
        _ id: OperationID, _ outcome: ServiceDiscoveryMachine.Outcome, _ linkFailure: OperationFailure
    ) -> Effects {
        guard wishes.contains(id) else { return [] }
        if outcome == .linkLost, wishes.waitsForNextLink(id) { return [] }
        let failure: PeripheralFailure? =
            switch outcome {
            case .found: wishes.grant(id, from: &table)
            case .foundNothing: wishes.deny(id, .noServices)
            case .linkLost: wishes.deny(id, linkFailure == .linkEnded ? .forcedDisconnect : .disconnected)
            }
        return endTimer(id) + [.settle(id, failure)]
    }

    mutating func perform(_ effects: [OperationLanes<Request>.Effect]) -> Effects {
        var result: Effects = []
        for effect in effects {
            switch effect {
            case .send(let operation):
                result += send(operation)
            case .finish(let operation, let failure):
                transfers[operation.id] = nil
                result += endTimer(operation.id)
                result.append(.settle(operation.id, failure.map { PeripheralFailure($0, operation.request) }))
            case .startRetry(let lane, let seconds): result.append(.startTimer(.retry(lane), seconds))
            case .cancelRetry(let lane): result.append(.cancelTimer(.retry(lane)))
            }
        }
        return result
    }

    private mutating func send(_ operation: OperationLanes<Request>.Operation) -> Effects {
        guard let device, let record = table[operation.target], record.isPresent, let handle = record.handle.attHandle
        else { return perform(lanes.replied(operation.id, .invalidated)) }
        if case .transfer(let data, let fence) = operation.request {
            return beginTransfer(operation, of: data, fence)
        }
        return [.attributes(.call(operation.id, device, handle: handle, operation.request))]
    }

    /// Has BlueZ do something for an operation that takes several calls.
    func call(_ id: OperationID, _ target: AttributeID, _ request: Request) -> Effects {
        guard let device, let handle = table[target]?.handle.attHandle else { return [] }
        return [.attributes(.call(id, device, handle: handle, request))]
    }

    private mutating func endTimer(_ id: OperationID) -> Effects {
        timed.remove(id) == nil ? [] : [.cancelTimer(.operation(id))]
    }

    /// Whose turn an operation waits for: a descriptor's that of its characteristic.
    private func lane(of target: AttributeID) -> AttributeID {
        guard let record = table[target], record.declaration.kind == .descriptor else { return target }
        return record.parent ?? target
    }
}
