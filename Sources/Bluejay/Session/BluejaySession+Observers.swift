import BlueCapKit
import Foundation

/// Follows the services of the connected peripheral.
struct ServiceWatch: Swift.Sendable {
    let peripheral: Peripheral
    let token = CancelToken()
    /// The services when they were read last; `nil` until they were.
    var services: [Service]?
}

/// The observers of single subjects.
extension BluejaySession {
    /// Calls the observers of a list, on the callback queue.
    private func tell<Observer>(
        _ list: WritableKeyPath<Core, ObserverList<Observer>>, _ event: @escaping (Observer) -> Void
    ) {
        let entries = core.withLock { $0[keyPath: list].entries }
        guard !entries.isEmpty else { return }
        call { self.tell(entries, list, event) }
    }

    // MARK: Log

    /// Gives a line to the observers of the log. It is made only if there is one.
    func log(_ text: @autoclosure () -> String) {
        guard core.withLock({ !$0.logObservers.isEmpty }) else { return }
        let text = text()
        tell(\.logObservers) { $0.debug(text) }
    }

    // MARK: Signal strength

    func readRSSI() throws {
        let caller = caller
        let peripheral = try core.withLock { core -> Peripheral in
            guard core.machine.isStarted else { throw BluejayError.stopped }
            if caller == .insideTask { throw BluejayError.calledInsideBackgroundTask }
            if core.machine.isTaskRunning { throw BluejayError.backgroundTaskRunning }
            guard core.machine.connection == .connected, let peripheral = core.peripheral else {
                throw BluejayError.notConnected
            }
            return peripheral
        }
        let identifier = PeripheralIdentifier(peripheral)
        peripheral.readRSSI().onComplete(context: ImmediateContext()) { [weak self] result in
            let (strength, error): (Int, (any Error)?) =
                switch result {
                case .success(let strength): (strength, nil)
                case .failure(let error): (127, error)
                }
            self?.tell(\.rssiObservers) {
                $0.didReadRSSI(from: identifier, RSSI: NSNumber(value: strength), error: error)
            }
        }
    }

    // MARK: Services

    /// Follows the services of the connected peripheral, if there is an observer.
    func watchServices() {
        let watch = core.withLock { core -> ServiceWatch? in
            guard core.machine.connection == .connected, let peripheral = core.peripheral,
                !core.serviceObservers.isEmpty, core.serviceWatch == nil
            else { return nil }
            core.serviceWatch = ServiceWatch(peripheral: peripheral)
            return core.serviceWatch
        }
        guard let watch else { return }
        readServices(of: watch)
        watch.peripheral.whenServicesChange().onSuccess(context: ImmediateContext(), cancelToken: watch.token) {
            [weak self] _ in self?.readServices(of: watch)
        }
    }

    func endServiceWatch() {
        let watch = core.withLock { core in
            defer { core.serviceWatch = nil }
            return core.serviceWatch
        }
        guard let watch else { return }
        watch.peripheral.whenServicesChange().cancel(watch.token)
    }

    /// Reads the services, and reports which of the earlier ones are gone.
    private func readServices(of watch: ServiceWatch) {
        let services: Future<Peripheral> = watch.peripheral.discoverAllServices()
        services.onSuccess(context: ImmediateContext()) { [weak self] peripheral in
            let present = peripheral.services
            guard let known = self?.replaceServices(of: watch, with: present) else { return }
            let gone = known.filter { service in !present.contains { $0 === service } }
            let (identifier, invalidated) = (
                PeripheralIdentifier(peripheral), gone.map { ServiceIdentifier(uuid: $0.uuid) }
            )
            self?.tell(\.serviceObservers) {
                $0.didModifyServices(from: identifier, invalidatedServices: invalidated)
            }
        }
    }

    /// Returns the services that were known before; `nil` if there were none, or the watch has ended.
    private func replaceServices(of watch: ServiceWatch, with services: [Service]) -> [Service]? {
        core.withLock { core in
            guard core.serviceWatch?.token == watch.token else { return nil }
            defer { core.serviceWatch?.services = services }
            return core.serviceWatch?.services
        }
    }
}
