import BlueCapKit
import Dispatch

/// The observers of one kind, held weakly, in the order of their registration.
struct ObserverList<Observer> {
    /// An observer from its registration on.
    struct Entry {
        fileprivate let number: UInt64
        /// Identifies the observer without retaining it: its last reference must not be released under the lock.
        fileprivate let identity: ObjectIdentifier
        fileprivate weak var object: AnyObject?

        /// The observer, until it is deallocated.
        var observer: Observer? { object as? Observer }
    }

    private(set) var entries: [Entry] = []
    private var lastNumber: UInt64 = 0

    /// Adds an observer at the end; one that is registered already moves there.
    mutating func add(_ observer: Observer) {
        remove(observer)
        lastNumber += 1
        let object = observer as AnyObject
        entries.append(Entry(number: lastNumber, identity: ObjectIdentifier(object), object: object))
    }

    mutating func remove(_ observer: Observer) {
        let identity = ObjectIdentifier(observer as AnyObject)
        entries.removeAll { $0.identity == identity }
    }

    mutating func remove(_ entry: Entry) { entries.removeAll { $0.number == entry.number } }

    func contains(_ entry: Entry) -> Bool { entries.contains { $0.number == entry.number } }
}

/// The observers of a ``Bluejay``.
struct Observers {
    var connection = ObserverList<any ConnectionObserver>()
    var rssi = ObserverList<any RSSIObserver>()
    var service = ObserverList<any ServiceObserver>()
    var pairing = ObserverList<any PairingObserver>()
    var log = ObserverList<any LogObserver>()
}

/// Calls user code on the callback queue: closures, and the observers, which it owns.
final class Callbacks: Swift.Sendable {
    private let queue: DispatchQueue
    private let observers = Locked(Observers())

    init(_ queue: DispatchQueue) {
        // A serial queue on top of the user's, which may be concurrent and would call back in any order. The main queue is
        // used itself, so that code on it runs on the main thread.
        self.queue =
            queue === DispatchQueue.main ? queue : DispatchQueue(label: "bluejay.callbacks", target: queue)
    }

    func call(_ work: @escaping () -> Void) {
        // The application's closures are made on one thread and called on the callback queue alone, one at a time.
        nonisolated(unsafe) let work = work
        queue.async { work() }
    }

    /// Adds or removes observers.
    func change(_ change: (inout Observers) -> Void) { observers.withLock { change(&$0) } }

    /// Returns the observers of one kind.
    func entries<Observer>(_ list: KeyPath<Observers, ObserverList<Observer>>) -> [ObserverList<Observer>.Entry] {
        observers.withLock { $0[keyPath: list].entries }
    }

    /// Calls all observers of one kind.
    func notify<Observer>(
        _ list: WritableKeyPath<Observers, ObserverList<Observer>>, _ event: @escaping (Observer) -> Void
    ) {
        notify(entries(list), of: list, event)
    }

    /// Calls those of the observers that are still registered.
    func notify<Observer>(
        _ entries: [ObserverList<Observer>.Entry], of list: WritableKeyPath<Observers, ObserverList<Observer>>,
        _ event: @escaping (Observer) -> Void
    ) {
        guard !entries.isEmpty else { return }
        call {
            for entry in entries {
                // Each time, because an observer may remove the next one.
                guard self.observers.withLock({ $0[keyPath: list].contains(entry) }) else { continue }
                if let observer = entry.observer {
                    event(observer)
                } else {
                    self.observers.withLock { $0[keyPath: list].remove(entry) }
                }
            }
        }
    }

    /// Sends a line to the log observers. The text is made only if there is one.
    func log(_ text: @autoclosure () -> String) {
        let entries = entries(\.log)
        guard !entries.isEmpty else { return }
        let text = text()
        notify(entries, of: \.log) { $0.debug(text) }
    }
}

/// Reports the changes of a peripheral's pairing to the observers.
final class PairingWatch: Swift.Sendable {
    let peripheral: Peripheral
    private let callbacks: Callbacks
    private let token = CancelToken()

    init(_ peripheral: Peripheral, _ callbacks: Callbacks) {
        (self.peripheral, self.callbacks) = (peripheral, callbacks)
    }

    func begin() {
        peripheral.whenPairingChanges().onSuccess(context: ImmediateContext(), cancelToken: token) {
            [weak self] change in
            guard let self else { return }
            let identifier = PeripheralIdentifier(peripheral)
            callbacks.notify(\.pairing) { $0.didChangePairing(of: identifier, to: change) }
        }
    }

    func end() { peripheral.whenPairingChanges().cancel(token) }
}

/// Follows the services of the connected peripheral, and reports which are gone after a change.
final class ServiceWatch: Swift.Sendable {
    private let peripheral: Peripheral
    private let callbacks: Callbacks
    private let token = CancelToken()
    /// The services when they were read last; `nil` until then, and after the end.
    private let services = Locked<(known: [Service]?, isEnded: Bool)>((nil, false))

    init(_ peripheral: Peripheral, _ callbacks: Callbacks) {
        (self.peripheral, self.callbacks) = (peripheral, callbacks)
    }

    func begin() {
        read()
        peripheral.whenServicesChange().onSuccess(context: ImmediateContext(), cancelToken: token) { [weak self] _ in
            self?.read()
        }
    }

    func end() {
        services.withLock { $0 = (nil, true) }
        peripheral.whenServicesChange().cancel(token)
    }

    private func read() {
        let discovery: Future<Peripheral> = peripheral.discoverAllServices()
        discovery.onSuccess(context: ImmediateContext()) { [weak self] peripheral in
            guard let self else { return }
            let present = peripheral.services
            let known = services.withLock { services -> [Service]? in
                guard !services.isEnded else { return nil }
                defer { services.known = present }
                return services.known
            }
            guard let known else { return }
            let gone = known.filter { service in !present.contains { $0 === service } }
            let (identifier, invalidated) = (
                PeripheralIdentifier(peripheral), gone.map { ServiceIdentifier(uuid: $0.uuid) }
            )
            callbacks.notify(\.service) { $0.didModifyServices(from: identifier, invalidatedServices: invalidated) }
        }
    }
}
