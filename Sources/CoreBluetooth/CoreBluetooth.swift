// A program that imports CoreBluetooth has Foundation, as on Apple's platforms, and Bluetooth's vocabulary, which is
// that of the module GATT: one file can import CoreBluetooth and BlueCapKit. BlueCapKit's own names are not exported,
// because programs have names such as Peripheral themselves.
@_exported public import Foundation
@_exported public import GATT
import Futures

/// Seconds since 2001-01-01 00:00 UTC, as `Date.timeIntervalSinceReferenceDate`. Foundation on Linux does not have the
/// name.
public typealias CFAbsoluteTime = Double

/// The number of an L2CAP channel: a protocol and service multiplexer.
public typealias CBL2CAPPSM = UInt16

/// The queue on which a manager calls its delegate: one call at a time and in order, also if the program's queue is
/// concurrent. Without a queue of the program it is the main queue.
///
/// The manager of BlueCapKit gets ``queue`` and completes its promises there, so that handlers call the delegate directly.
/// A handler that is added when its future is complete already, on the thread of the caller, waits for the queue.
struct DelegateQueue: ExecutionContext {
    private static let key = DispatchSpecificKey<ObjectIdentifier>()

    let queue: DispatchQueue

    init(_ queue: DispatchQueue?) {
        self.queue = DispatchQueue(label: "bluecap.corebluetooth", target: queue ?? .main)
        // Queues that target this one have the value too.
        self.queue.setSpecific(key: Self.key, value: ObjectIdentifier(self.queue))
    }

    func execute(_ task: @escaping @Sendable () -> Void) {
        if DispatchQueue.getSpecific(key: Self.key) == ObjectIdentifier(queue) {
            task()
        } else {
            queue.async(execute: task)
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
