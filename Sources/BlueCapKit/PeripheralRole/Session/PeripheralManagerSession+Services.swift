import BlueCapBlueZ
import Foundation
import BlueCapFutures
import BlueCapGATT

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
                return served.isRestored || core.state.isSettled(number) ? served.service : nil
            }
        }
    }

    func isAdded(_ service: MutableService) -> Bool {
        core.withLock { core in core.number(of: service).map { core.state.isSettled($0) } ?? false }
    }

    /// - Parameter timeout: In seconds. A call while another one is under way shares the other one's.
    func add(_ service: MutableService, timeout: TimeInterval) -> Future<Void> {
        if let problem { return failed(problem) }
        let (served, invalid) = (makeServed(service), service.problem)
        let promise = Promise<Void>()
        var outcome: Try<Void>? = .failure(PeripheralManagerError.managerEnded)
        _ = decideIfOpen { core in
            outcome = nil
            if let number = core.number(of: service) {
                guard !core.state.isSettled(number) else { return outcome = .success(()) }
                return core.adding[number, default: []].append(promise)
            }
            if let refusal = service.claim(self, unless: invalid) { return outcome = .failure(refusal) }
            let number = core.makeNumber()
            let former = core.served.filter { $0.value.isRestored && $0.value.service.uuid == service.uuid }
                .keys.min { $0.rawValue < $1.rawValue }
            core.served[number] = served
            core.adding[number] = [promise]
            core.state.remove(former, into: &core.shell.orders)
            core.state.add(number, .service, timeout: max(timeout, 0), into: &core.shell.orders)
        }
        Withdrawal.current?.register { [weak self] in self?.withdraw(promise.future, of: service) ?? false }
        return outcome.map { settled($0) } ?? promise.future
    }

    /// Takes back an `add`, unless another call waits for the service too. Returns false if it has ended.
    private func withdraw(_ added: Future<Void>, of service: MutableService) -> Bool {
        var withdrawn: Promise<Void>?
        decide { core in
            guard let number = core.number(of: service), !core.state.isSettled(number),
                let index = core.adding[number]?.firstIndex(where: { $0.future === added })
            else { return }
            withdrawn = core.adding[number]?.remove(at: index)
            if core.adding[number]?.isEmpty == true { core.state.remove(number, into: &core.shell.orders) }
        }
        if let withdrawn { complete(withdrawn.future, .failure(CancellationError())) }
        return withdrawn != nil
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
        let application = ServerApplication(served.definition, on: adapter, client: client, delegate: served.delegate) {
            [weak self] state in
            self?.registrationChanged(number, state)
        }
        let isAdded = core.withLock { core in
            core.served[number]?.application = application
            return served.isRestored || core.state.isSettled(number)
        }
        if isAdded { for characteristic in served.characteristics { characteristic.begin(self, application) } }
    }

    func drop(_ number: Number) {
        let served = core.withLock { core -> Served? in
            guard let served = core.served.removeValue(forKey: number) else { return nil }
            let isWantedAgain = core.served.values.contains { $0.service === served.service }
            if !isWantedAgain { served.service.release() }
            return served
        }
        for characteristic in served?.characteristics ?? [] { characteristic.end(self) }
    }
}

extension PeripheralManagerSession.Core {
    /// Under which number a service is requested now; `nil` if it is not, or is being removed.
    fileprivate func number(of service: MutableService) -> PeripheralManagerState.Number? {
        served.first { $0.value.service === service && state.stage(of: $0.key) != nil }?.key
    }
}

/// A characteristic or a descriptor that is served. On the loop.
protocol ServedAttribute: AnyObject, Sendable {
    var uuid: CBUUID { get }
    func requested(_ request: ServerRequest, _ answer: ServerAnswer, _ session: PeripheralManagerSession)
    /// A central begins a long write.
    func writeAuthorizationRequested(_ answer: ServerAnswer)
}

/// Passes requests on to the characteristics and descriptors of one service. On the loop.
final class ServiceDelegate: ServerDelegate {
    private weak let session: PeripheralManagerSession?
    private let attributes: [ServerAttributeID: any ServedAttribute]

    init(_ session: PeripheralManagerSession, _ characteristics: [MutableCharacteristic]) {
        self.session = session
        var attributes: [ServerAttributeID: any ServedAttribute] = [:]
        for characteristic in characteristics {
            attributes[characteristic.id] = characteristic
            for descriptor in characteristic.descriptors { attributes[descriptor.id] = descriptor }
        }
        self.attributes = attributes
    }

    func requested(_ request: ServerRequest, _ answer: ServerAnswer) {
        guard let session, let attribute = attributes[request.attribute] else { return }
        session.log?.note(request, attribute.uuid, in: session)
        session.count(request, answer)
        attribute.requested(request, answer, session)
    }

    func writeAuthorizationRequested(_ request: ServerRequest, _ answer: ServerAnswer) {
        attributes[request.attribute]?.writeAuthorizationRequested(answer)
    }

    func subscribersChanged(of characteristic: ServerAttributeID, to subscribers: [ServerSubscriber]) {
        guard let session, let characteristic = attributes[characteristic] as? MutableCharacteristic else { return }
        let subscribers = subscribers.map {
            MutableCharacteristic.Subscriber(central: session.central($0.peer), source: $0)
        }
        characteristic.subscribersChanged(to: subscribers, session)
    }
}
