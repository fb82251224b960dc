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
        /// It is there because an earlier run had it, and nobody has added it yet.
        let isRestored: Bool
        /// Its registration, once that was begun.
        var application: ServerApplication?
        /// Counts the registrations: what is told of an earlier one means nothing.
        var turn = 0
    }

    // MARK: Wishes; any thread

    var services: [MutableService] {
        core.withLock { core in
            core.state.services.numbers.compactMap { number in
                guard let served = core.served[number] else { return nil }
                return served.isRestored || core.state.services.isAdded(number) ? served.service : nil
            }
        }
    }

    /// - Parameter timeout: In seconds. A call while another one is under way shares the other one's.
    func add(_ service: MutableService, timeout: TimeInterval) -> Future<Void> {
        let promise = Promise<Void>()
        if let problem = options.problem ?? claim(service) {
            complete { promise.failure(problem) }
            return promise.future
        }
        let served = makeServed(service)
        var isAdded = false
        let isOpen = decideIfOpen { core in
            if let number = core.number(of: service) {
                isAdded = core.state.services.isAdded(number)
                if !isAdded { core.adding[number, default: []].append(promise) }
                return
            }
            let number = ServiceRegistry.Number(rawValue: core.makeNumber())
            let former = core.served.filter { $0.value.isRestored && $0.value.service.uuid == service.uuid }
                .keys.min { $0.rawValue < $1.rawValue }
            core.served[number] = served
            core.adding[number] = [promise]
            core.order(core.state.service { $0.replace(former) + $0.add(number, timeout: max(timeout, 0)) })
        }
        if !isOpen {
            service.release(self)
            complete { promise.failure(PeripheralManagerError.managerEnded) }
        } else if isAdded {
            complete { promise.success(()) }
        }
        return promise.future
    }

    /// Makes the service this manager's; otherwise says why that cannot be.
    private func claim(_ service: MutableService) -> PeripheralManagerError? {
        switch service.claim(self) {
        case .refused: return .serviceInUse
        case .repeated: return nil
        case .granted: break
        }
        let characteristics = service.characteristics
        guard Set(characteristics).count == characteristics.count else {
            service.release(self)
            return .invalidService("A characteristic is in the service \(service.uuid) twice: make one for each place.")
        }
        guard characteristics.allSatisfy({ $0.service === service }) else {
            service.release(self)
            return .serviceInUse
        }
        return nil
    }

    func makeServed(_ service: MutableService, isRestored: Bool = false) -> Served {
        let characteristics = service.characteristics
        let definition = ServerService(
            id: service.number.attribute, uuid: service.uuid, isPrimary: service.isPrimary,
            characteristics: characteristics.map(\.definition))
        return Served(
            service: service, characteristics: characteristics, definition: definition,
            delegate: ServiceDelegate(self, characteristics), kept: .init(service), isRestored: isRestored)
    }

    func remove(_ service: MutableService) {
        decide { core in
            guard let number = core.number(of: service) else { return }
            core.order(core.state.service { $0.remove(number) })
        }
    }

    func removeAllServices() { decide { $0.order($0.state.service { $0.removeAll() }) } }

    // MARK: Doing; on the loop

    func perform(_ effect: ServiceRegistry.Effect) {
        switch effect {
        case .register(let number): register(number)
        case .unregister(let number):
            let application = core.withLock { core in
                defer { core.served[number]?.application = nil }
                return core.served[number]?.application
            }
            application?.end()
        case .settle(let number, let failure): settle(number, failure)
        case .drop(let number): drop(number)
        case .startTimer, .cancelTimer: break
        }
    }

    private func register(_ number: ServiceRegistry.Number) {
        let found = core.withLock { core -> (ObjectKey, Served)? in
            guard let adapter = core.target, let served = core.served[number] else { return nil }
            core.served[number]?.turn += 1
            return (adapter, served)
        }
        guard let (adapter, served) = found else { return }
        let turn = served.turn + 1
        served.application?.end()
        let application = client.serve(on: adapter, delegate: served.delegate) { [weak self] state in
            self?.decide { core in
                guard core.served[number]?.turn == turn else { return }
                core.order(core.state.service { $0.delayed(number, by: .init(delayOf: state)) })
            }
        }
        let isAdded = core.withLock { core in
            core.served[number]?.application = application
            return served.isRestored || core.state.services.isAdded(number)
        }
        if isAdded { for characteristic in served.characteristics { characteristic.begin(self, application) } }
        application.update([served.definition]) { [weak self] result in
            self?.decide { core in
                guard core.served[number]?.turn == turn else { return }
                var failure: ServiceRegistry.Failure?
                if case .failure(let error) = result { failure = .init(error) }
                core.order(core.state.service { $0.registered(number, failure: failure) })
            }
        }
    }

    private func settle(_ number: ServiceRegistry.Number, _ failure: ServiceRegistry.Failure?) {
        let (promises, served) = core.withLock { ($0.adding.removeValue(forKey: number) ?? [], $0.served[number]) }
        if failure == nil, let served {
            for characteristic in served.characteristics { characteristic.begin(self, served.application) }
            served.service.becameAdded(self)
        }
        guard !promises.isEmpty else { return }
        complete {
            for promise in promises {
                if let failure { promise.failure(PeripheralManagerError(failure)) } else { promise.success(()) }
            }
        }
    }

    private func drop(_ number: ServiceRegistry.Number) {
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
    /// Under which number a service is wished now; `nil` where it is not, or is on its way out.
    func number(of service: MutableService) -> ServiceRegistry.Number? {
        served.first { $0.value.service === service && state.services.contains($0.key) }?.key
    }
}

extension ServiceRegistry.Failure {
    init(_ error: BlueZError) { self = error.cause == .noReply ? .unanswered : .refused(BusFailure(error)) }

    /// What keeps BlueZ from registering a service; `nil` if it has only to answer, or to come back.
    init?(delayOf state: RegistrationState) {
        switch state {
        case .waiting(.support): self = .notSupported
        case .retrying(let error): self.init(error)
        case .idle, .waiting(.adapter), .waiting(.power), .registering, .registered, .refused, .timedOut: return nil
        }
    }
}

extension PeripheralManagerError {
    init(_ failure: ServiceRegistry.Failure) {
        self =
            switch failure {
            case .notPoweredOn(let state): .notPoweredOn(state)
            case .removed: .serviceRemoved
            case .refused(let failure): .serviceRefused(failure)
            case .notSupported: .servicesNotSupported
            case .unanswered: .serviceTimeout
            case .ended: .managerEnded
            }
    }
}
