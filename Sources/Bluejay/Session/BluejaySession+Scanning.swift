import BlueCapKit
import Foundation

/// A scan, and what it has found so far.
///
/// Its variables are touched on the callback queue alone.
final class Scan {
    let duration: TimeInterval
    let allowsDuplicates: Bool
    /// By how many dB a peripheral's strength has to change for another discovery.
    let throttle: Int
    let services: [CBUUID]?
    let discovery: (ScanDiscovery, [ScanDiscovery]) -> ScanAction
    let expired: ((ScanDiscovery, [ScanDiscovery]) -> ScanAction)?
    let stopped: ([ScanDiscovery], (any Error)?) -> Void
    let token = CancelToken()
    /// Ends the scan after its duration. Set before the scan begins, and not changed afterwards.
    var timer: ManagerTimer?
    private var discoveries: [ScanDiscovery] = []
    private var blacklist: Set<PeripheralIdentifier> = []
    /// `stopped` was called, and nothing comes after it.
    private var isOver = false

    init(
        duration: TimeInterval, allowsDuplicates: Bool, throttle: Int, services: [CBUUID]?,
        discovery: @escaping (ScanDiscovery, [ScanDiscovery]) -> ScanAction,
        expired: ((ScanDiscovery, [ScanDiscovery]) -> ScanAction)?,
        stopped: @escaping ([ScanDiscovery], (any Error)?) -> Void
    ) {
        (self.duration, self.allowsDuplicates, self.throttle) = (duration, allowsDuplicates, throttle)
        self.services = services
        (self.discovery, self.expired, self.stopped) = (discovery, expired, stopped)
    }

    func heard(_ heard: ScanDiscovery) -> ScanAction {
        let identifier = heard.peripheralIdentifier
        guard !isOver, !blacklist.contains(identifier) else { return .continue }
        if let place = discoveries.firstIndex(where: { $0.peripheralIdentifier == identifier }) {
            guard abs(discoveries[place].rssi - heard.rssi) >= throttle else { return .continue }
            discoveries[place] = heard
        } else {
            discoveries.append(heard)
        }
        return answer(discovery(heard, discoveries), about: identifier)
    }

    func fellSilent(_ identifier: PeripheralIdentifier) -> ScanAction {
        guard !isOver, let expired,
            let place = discoveries.firstIndex(where: { $0.peripheralIdentifier == identifier })
        else { return .continue }
        let lost = discoveries.remove(at: place)
        guard !blacklist.contains(identifier) else { return .continue }
        return answer(expired(lost, discoveries), about: identifier)
    }

    private func answer(_ action: ScanAction, about identifier: PeripheralIdentifier) -> ScanAction {
        if case .blacklist = action { blacklist.insert(identifier) }
        return action
    }

    func hasStopped(_ error: (any Error)?) {
        isOver = true
        stopped(discoveries, error)
    }
}

extension BluejaySession {
    func scan(_ scan: Scan) {
        request(
            .scan,
            Request { session, id in
                session.begin(scan, id)
            } stop: { session, id in
                session.end(scan)
                session.finished(id, .success(Data()))
            } settle: { session, outcome in
                session.call {
                    switch outcome {
                    case .success: scan.hasStopped(nil)
                    case .failure(let error): scan.hasStopped(error)
                    }
                }
            })
    }

    private func begin(_ scan: Scan, _ id: RequestID) {
        guard let manager = core.withLock({ $0.manager }) else {
            return finished(id, .failure(BluejayError.stopped))
        }
        let handed = Handed(scan)
        if scan.allowsDuplicates, scan.expired != nil {
            manager.whenPeripheralsExpire().onSuccess(context: ImmediateContext(), cancelToken: scan.token) {
                [weak self] peripheral in
                let identifier = PeripheralIdentifier(peripheral)
                self?.tell(id) { handed.value.fellSilent(identifier) }
            }
        }
        // A duration of Bluejay is never an error, whatever was found, unlike a time-out of the manager.
        if scan.duration > 0, scan.duration.isFinite {
            scan.timer = manager.timer(after: scan.duration) { [weak self] in
                self?.decide { $0.machine.ended(id, .success(Data())) }
            }
        }
        let options = [CBCentralManagerScanOptionAllowDuplicatesKey: scan.allowsDuplicates]
        let stream = manager.startScanning(forServiceUUIDs: scan.services, options: options)
        stream.onComplete(context: ImmediateContext(), cancelToken: scan.token) { [weak self] element in
            switch element {
            case .success(let peripheral): self?.discovered(peripheral, id, handed)
            case .failure(let error): self?.ended(handed.value, id, error)
            }
        }
    }

    private func discovered(_ peripheral: Peripheral, _ id: RequestID, _ scan: Handed<Scan>) {
        let discovery = Handed(ScanDiscovery(peripheral))
        let dropped = core.withLock { $0.discovered.insert(peripheral) }
        tell(id) { scan.value.heard(discovery.value) }
        withExtendedLifetime(dropped) {}
    }

    func stopScanning() { decide { $0.machine.scanEnded() } }

    /// It has ended by itself.
    private func ended(_ scan: Scan, _ id: RequestID, _ error: any Error) {
        scan.timer?.cancel()
        core.withLock { $0.manager }?.whenPeripheralsExpire().cancel(scan.token)
        finished(id, .failure(error))
    }

    private func end(_ scan: Scan) {
        scan.timer?.cancel()
        guard let manager = core.withLock({ $0.manager }) else { return }
        manager.whenPeripheralsExpire().cancel(scan.token)
        manager.stopScanning()
    }

    /// Has the application asked, on the callback queue, what to do; unless the scan has ended meanwhile.
    private func tell(_ id: RequestID, _ ask: @escaping () -> ScanAction) {
        call {
            guard self.core.withLock({ $0.requests[id] != nil }) else { return }
            switch ask() {
            case .continue, .blacklist:
                break
            case .stop:
                self.decide { $0.machine.ended(id, .success(Data())) }
            case .connect(let discovery, let completion):
                self.decide { $0.machine.ended(id, .success(Data())) }
                self.connect(
                    discovery.peripheralIdentifier, timeout: discovery.connectionTimeout, completion: completion)
            }
        }
    }
}
