import BlueCapKit
import Dispatch

/// Calls user code on the callback queue: closures, and the observers, which it holds weakly.
final class Callbacks: Swift.Sendable {
    /// An observer of one kind, from its registration on.
    struct Registration {
        fileprivate let number: UInt64
        /// The protocol.
        fileprivate let kind: ObjectIdentifier
        /// Identifies the observer without retaining it: its last reference must not be released under the lock.
        fileprivate let identity: ObjectIdentifier
        fileprivate(set) weak var observer: AnyObject?
    }

    private let queue: DispatchQueue
    /// The observers in the order of their registration, and the number of the last one.
    private let observers = Locked<(registered: [Registration], last: UInt64)>(([], 0))

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

    // MARK: Observers

    /// Adds an observer at the end; one that is registered already moves there.
    func add(_ observer: AnyObject, as kind: Any.Type) {
        remove(observer, as: kind)
        observers.withLock {
            $0.last += 1
            $0.registered.append(
                Registration(
                    number: $0.last, kind: ObjectIdentifier(kind), identity: ObjectIdentifier(observer),
                    observer: observer))
        }
    }

    func remove(_ observer: AnyObject, as kind: Any.Type) {
        let (kind, identity) = (ObjectIdentifier(kind), ObjectIdentifier(observer))
        observers.withLock { $0.registered.removeAll { $0.kind == kind && $0.identity == identity } }
    }

    /// Returns the observers of one kind, also those that have been deallocated since the last event.
    func observers(_ kind: Any.Type) -> [Registration] {
        let kind = ObjectIdentifier(kind)
        return observers.withLock { $0.registered.filter { $0.kind == kind } }
    }

    /// Calls the observers of one kind, or those of `registrations` that are still registered.
    func notify<Observer>(
        _ kind: Observer.Type, _ registrations: [Registration]? = nil, _ event: @escaping (Observer) -> Void
    ) {
        let registrations = registrations ?? observers(kind)
        guard !registrations.isEmpty else { return }
        call {
            for registration in registrations {
                // Each time, because an observer may remove the next one.
                let isRegistered = self.observers.withLock { observers in
                    observers.registered.contains { $0.number == registration.number }
                }
                guard isRegistered else { continue }
                if let observer = registration.observer as? Observer {
                    event(observer)
                } else {
                    self.observers.withLock { $0.registered.removeAll { $0.number == registration.number } }
                }
            }
        }
    }

    /// Sends a line to the log observers. The text is made only if there is one.
    func log(_ text: @autoclosure () -> String) {
        let registrations = observers((any LogObserver).self)
        guard !registrations.isEmpty else { return }
        let text = text()
        notify((any LogObserver).self, registrations) { $0.debug(text) }
    }
}
