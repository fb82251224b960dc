import BlueZ
import Foundation
import Futures
import GATT

/// Services, from `add` to the removal.
extension PeripheralManagerSession {
    /// A service as it was when it was added.
    struct Served {
        let service: MutableService
        let characteristics: [MutableCharacteristic]
        let definition: ServerService
        let delegate: ServiceDelegate
        /// What of it outlives the process.
        let kept: PeripheralRestorationState.Service
        /// Whether it was restored, and the application has not added it yet.
        let isRestored: Bool
        /// Its registration, once that was begun.
        var application: ServerApplication?
    }

    // MARK: Requests; any thread

    var services: [MutableService] {
        core.withLock { core in
            core.state.services.compactMap { number in
                guard let served = core.served[number] else { return nil }
                return served.isRestored || core.state.isAdded(number) ? served.service : nil
            }
        }
    }

    /// - Parameter timeout: In seconds. A call while another one is under way shares the other one's.
    func add(_ service: MutableService, timeout: TimeInterval) -> Future<Void> {
        let promise = Promise<Void>()
        if let problem = problem ?? claim(service) {
            complete { promise.failure(problem) }
            return promise.future
        }
        let served = makeServed(service)
        var isAdded = false
        let isOpen = decideIfOpen { core in
            if let number = core.number(of: service) {
                isAdded = core.state.isAdded(number)
                if !isAdded { core.adding[number, default: []].append(promise) }
                return
            }
            let number = core.makeNumber()
            let former = core.served.filter { $0.value.isRestored && $0.value.service.uuid == service.uuid }
                .keys.min { $0.rawValue < $1.rawValue }
            core.served[number] = served
            core.adding[number] = [promise]
            core.state.remove(former, into: &core.shell.orders)
            core.state.add(number, .service, timeout: max(timeout, 0), into: &core.shell.orders)
        }
        if !isOpen {
            service.release(self)
            complete { promise.failure(PeripheralManagerError.managerEnded) }
        } else if isAdded {
            complete { promise.success(()) }
        }
        return promise.future
    }

    /// Claims the service for this manager; returns the reason if that is not possible.
    private func claim(_ service: MutableService) -> PeripheralManagerError? {
        switch service.claim(self) {
        case .refused: return .serviceInUse
        case .repeated: return nil
        case .granted: break
        }
        let problem = service.problem
        if problem != nil { service.release(self) }
        return problem
    }

    func makeServed(_ service: MutableService, isRestored: Bool = false) -> Served {
        let characteristics = service.characteristics
        let definition = ServerService(
            id: service.id, uuid: service.uuid, isPrimary: service.isPrimary,
            characteristics: characteristics.map(\.definition))
        return Served(
            service: service, characteristics: characteristics, definition: definition,
            delegate: ServiceDelegate(self, characteristics), kept: .init(service), isRestored: isRestored)
    }

    func remove(_ service: MutableService) {
        decide { core in
            guard let number = core.number(of: service) else { return }
            core.state.remove(number, into: &core.shell.orders)
        }
    }

    func removeAllServices() { decide { $0.state.removeAllServices(into: &$0.shell.orders) } }

    // MARK: Orders; on the loop

    func serve(_ served: Served, _ number: Number, on adapter: ObjectKey) {
        let daemon = client.withTree { $0[adapter: adapter]?.capabilities }
        if let daemon, let unenforced = served.definition.firstUnenforcedFlag(by: daemon) {
            let error = PeripheralManagerError.securityNotEnforced(
                by: daemon, unenforced.flag, of: unenforced.attribute)
            return decide { $0.state.refused(number, error, into: &$0.shell.orders) }
        }
        served.application?.end()
        let application = client.serve(served.definition, on: adapter, delegate: served.delegate) { [weak self] state in
            self?.registrationChanged(number, state)
        }
        let isAdded = core.withLock { core in
            core.served[number]?.application = application
            return served.isRestored || core.state.isAdded(number)
        }
        if isAdded { for characteristic in served.characteristics { characteristic.begin(self, application) } }
    }

    func becameAdded(_ served: Served) {
        for characteristic in served.characteristics { characteristic.begin(self, served.application) }
        served.service.becameAdded(self)
    }

    func drop(_ number: Number) {
        let (served, isWantedAgain) = core.withLock { core in
            let served = core.served.removeValue(forKey: number)
            return (served, core.served.values.contains { $0.service === served?.service })
        }
        guard let served else { return }
        for characteristic in served.characteristics { characteristic.end(self) }
        if isWantedAgain { served.service.becameRemoved() } else { served.service.release(self) }
    }
}

extension PeripheralManagerSession.Core {
    /// Under which number a service is requested now; `nil` if it is not, or is being removed.
    fileprivate func number(of service: MutableService) -> PeripheralManagerState.Number? {
        served.first { $0.value.service === service && state.stage(of: $0.key) != nil }?.key
    }
}

/// Passes requests on to the characteristics and descriptors of one service. On the loop.
final class ServiceDelegate: ServerDelegate {
    private enum Target {
        case characteristic(MutableCharacteristic)
        case descriptor(MutableDescriptor)
    }

    private weak let session: PeripheralManagerSession?
    private let targets: [ServerAttributeID: Target]

    init(_ session: PeripheralManagerSession, _ characteristics: [MutableCharacteristic]) {
        self.session = session
        var targets: [ServerAttributeID: Target] = [:]
        for characteristic in characteristics {
            targets[characteristic.id] = .characteristic(characteristic)
            for descriptor in characteristic.descriptors { targets[descriptor.id] = .descriptor(descriptor) }
        }
        self.targets = targets
    }

    func requested(_ request: ServerRequest, _ answer: ServerAnswer) {
        guard let session, let target = targets[request.attribute] else { return }
        session.log?.note(request, uuid(of: target), in: session)
        session.count(request, answer)
        switch target {
        case .characteristic(let characteristic):
            characteristic.requested(request, from: session.central(request.peer), answer, session)
        case .descriptor(let descriptor):
            if descriptor.permissions.contains(.authorizationRequired) {
                return _ = answer.refuse(.insufficientAuthorization)
            }
            answer.succeed(request.value == nil ? descriptor.value ?? Data() : Data())
            if let value = request.value { descriptor.written(value) { session.complete($0) } }
        }
    }

    private func uuid(of target: Target) -> CBUUID {
        switch target {
        case .characteristic(let characteristic): characteristic.uuid
        case .descriptor(let descriptor): descriptor.uuid
        }
    }

    func writeAuthorizationRequested(_ request: ServerRequest, _ answer: ServerAnswer) {
        guard case .characteristic(let characteristic)? = targets[request.attribute] else {
            return _ = answer.refuse(.insufficientAuthorization)
        }
        characteristic.writeAuthorizationRequested(answer)
    }

    func subscribersChanged(of characteristic: ServerAttributeID, to subscribers: [ServerSubscriber]) {
        guard let session, case .characteristic(let characteristic)? = targets[characteristic] else { return }
        let subscribers = subscribers.map {
            MutableCharacteristic.Subscriber(central: session.central($0.peer), source: $0)
        }
        characteristic.subscribersChanged(to: subscribers, session)
    }
}
