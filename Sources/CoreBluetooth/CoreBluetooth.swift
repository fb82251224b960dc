// A program that imports CoreBluetooth has Foundation, as on Apple's platforms, and Bluetooth's vocabulary, which is
// that of the module GATT: one file can import CoreBluetooth and BlueCapKit. BlueCapKit's own names are not exported,
// because programs have names such as Peripheral themselves.
@_exported public import Foundation
@_exported public import BlueCapGATT
import BlueCapFutures

/// Seconds since 2001-01-01 00:00 UTC, as `Date.timeIntervalSinceReferenceDate`. Foundation on Linux does not have the
/// name.
public typealias CFAbsoluteTime = Double

/// The number of an L2CAP channel: a protocol and service multiplexer.
public typealias CBL2CAPPSM = UInt16

/// The queue on which a manager calls its delegate: one call at a time and in order, also if the program's queue is
/// concurrent. Without a queue of the program it is the main queue.
///
/// The manager of BlueCapKit gets ``queue`` and completes its promises there, so that handlers call the delegate directly.
/// A handler that is added when its future is complete already waits for the queue: on another thread, and also in a
/// callback, which a refused operation would otherwise call the delegate inside.
struct DelegateQueue: ExecutionContext {
    private static let key = DispatchSpecificKey<ObjectIdentifier>()

    let queue: DispatchQueue
    /// Whether a task is running. Changed on the queue only.
    private let isRunning = Locked(false)
    let observers = Observers()

    init(_ queue: DispatchQueue?) {
        self.queue = DispatchQueue(label: "bluecap.corebluetooth", target: queue ?? .main)
        // Queues that target this one have the value too.
        self.queue.setSpecific(key: Self.key, value: ObjectIdentifier(self.queue))
    }

    func execute(_ task: @escaping @Sendable () -> Void) {
        let isOnQueue = DispatchQueue.getSpecific(key: Self.key) == ObjectIdentifier(queue)
        if isOnQueue, !isRunning.withLock({ $0 }) { run(task) } else { async(task) }
    }

    /// Executes a task after all that are due already.
    func async(_ task: @escaping @Sendable () -> Void) { queue.async { run(task) } }

    private func run(_ task: () -> Void) {
        isRunning.withLock { $0 = true }
        task()
        if !observers.isEmpty { observers.check() }
        isRunning.withLock { $0 = false }
    }

    /// A command has changed a property, on any thread.
    func propertyChanged() { if !observers.isEmpty { async {} } }
}

/// Reports the results of an object's operations in the sequence of the calls.
///
/// On Apple's platforms one operation follows the other. BlueCapKit executes operations on different characteristics at the
/// same time, and refuses an operation at once that cannot succeed; its result waits for those of earlier operations.
final class ReportSequence: Sendable {
    private struct State {
        /// The reports of operations that have a result, by the numbers of the operations.
        var reports: [Int: Retained<() -> Void>] = [:]
        var last = 0
        /// The number of the operation whose report is next.
        var next = 1

        /// Returns the next report, if the result of that operation is there.
        mutating func take() -> Retained<() -> Void>? {
            guard let report = reports.removeValue(forKey: next) else { return nil }
            next += 1
            return report
        }
    }

    private let state = Locked(State())

    /// Calls `report` on the queue when the future is complete and the results of all earlier operations were reported.
    func add<T: Sendable>(_ future: Future<T>, on callbacks: DelegateQueue, _ report: @escaping (Try<T>) -> Void) {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        let report = Retained(report)
        future.onComplete(context: callbacks) { result in
            let call = Retained { report.value(result) }
            self.state.withLock { $0.reports[number] = call }
            while let call = self.state.withLock({ $0.take() }) { call.value() }
        }
    }
}

/// A weak reference to an object of this module in closures that run on another thread.
// Unchecked: the objects have locks of their own. As Apple's classes they do not conform to `Sendable`, so that programs
// may subclass them as they do on iOS.
struct Handle<Object: AnyObject>: @unchecked Sendable {
    weak var object: Object?

    init(_ object: Object?) { self.object = object }
}

/// Objects of this module in closures that run on the queue of their manager.
// Unchecked: see `Handle`.
struct Retained<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }
}

/// Objects that are found by a key as long as they are referenced elsewhere.
struct WeakTable<Key: Hashable, Object: AnyObject> {
    private var handles: [Key: Handle<Object>] = [:]
    /// How many there may be before those of released objects are removed.
    private var limit = 64

    /// The object of a key; `nil` if there is none, or if it was released.
    subscript(key: Key) -> Object? { handles[key]?.object }

    /// Returns the object of a key, which is made if there is none.
    mutating func object(_ key: Key, make: () -> Object) -> Object {
        if let object = self[key] { return object }
        let object = make()
        handles[key] = Handle(object)
        if handles.count > limit {
            handles = handles.filter { $0.value.object != nil }
            limit = max(64, 2 * handles.count)
        }
        return object
    }
}
