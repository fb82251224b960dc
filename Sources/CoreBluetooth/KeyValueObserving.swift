public import Foundation
import BlueCapFutures

// Swift's key-value observation, which Foundation on Linux does not have, for the properties of managers and peripherals.

/// What an observation reports.
public struct NSKeyValueObservingOptions: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// The change has the new value.
    public static let new = Self(rawValue: 1)
    /// The change has the value before.
    public static let old = Self(rawValue: 2)
    /// The handler is called with the present value at once, before ``NSObservable/observe(_:options:changeHandler:)``
    /// returns.
    public static let initial = Self(rawValue: 4)
    /// Has no effect: a handler is called after the change only.
    public static let prior = Self(rawValue: 8)
}

/// A change of an observed property.
public struct NSKeyValueObservedChange<Value> {
    /// The value, with ``NSKeyValueObservingOptions/new``.
    public let newValue: Value?
    /// The value before, with ``NSKeyValueObservingOptions/old``; `nil` in the first call of
    /// ``NSKeyValueObservingOptions/initial``.
    public let oldValue: Value?
    /// Always false; see ``NSKeyValueObservingOptions/prior``.
    public var isPrior: Bool { false }
}

/// An observation, which ends when this object is released.
open class NSKeyValueObservation: NSObject {
    private let observers: Observers
    private let number: Int

    init(_ number: Int, of observers: Observers) {
        self.observers = observers
        self.number = number
    }

    deinit { observers.remove(number) }

    /// Ends the observation; a second call does nothing.
    open func invalidate() { observers.remove(number) }
}

/// Objects whose properties can be observed: ``CBManager`` and ``CBPeripheral``.
public protocol NSObservable: NSObject {}

extension NSObservable {
    /// Calls the handler when a property changes, as `NSObject` does on Apple's platforms.
    ///
    /// ```swift
    /// let central = CBCentralManager()
    /// let observation = central.observe(\.isScanning, options: [.new]) { central, change in
    ///     print(change.newValue ?? false)
    /// }
    /// ```
    ///
    /// The handler is called on the queue of the manager's delegate. A change of `state` is reported before the delegate is
    /// called. Values are compared after each event and each command: a property that changes and changes back in between
    /// is not reported. The observation ends when it is released.
    public func observe<Value: Equatable>(
        _ keyPath: KeyPath<Self, Value>, options: NSKeyValueObservingOptions = [],
        changeHandler: @escaping (Self, NSKeyValueObservedChange<Value>) -> Void
    ) -> NSKeyValueObservation {
        var last = self[keyPath: keyPath]
        let report = { (object: Self, old: Value?, new: Value) in
            changeHandler(
                object,
                NSKeyValueObservedChange(
                    newValue: options.contains(.new) ? new : nil, oldValue: options.contains(.old) ? old : nil))
        }
        if options.contains(.initial) { report(self, nil, last) }
        let observers = (self as? any DelegateCaller)?.callbacks.observers ?? Observers()
        return observers.add { [weak self] in
            guard let self else { return }
            let (old, new) = (last, self[keyPath: keyPath])
            guard old != new else { return }
            last = new
            report(self, old, new)
        }
    }
}

/// An object that calls a delegate on a queue.
protocol DelegateCaller {
    var callbacks: DelegateQueue { get }
}

extension CBManager: NSObservable {}
extension CBPeripheral: NSObservable, DelegateCaller {}
extension CBCentralManager: DelegateCaller {}
extension CBPeripheralManager: DelegateCaller {}

/// The observers of a manager and of its peripherals.
final class Observers: Sendable {
    private struct State {
        var checks: [(number: Int, check: Retained<() -> Void>)] = []
        var lastNumber = 0
    }

    private let state = Locked(State())

    var isEmpty: Bool { state.withLock { $0.checks.isEmpty } }

    /// - Parameter check: Calls the handler if the property has changed. Runs on the delegate's queue.
    func add(_ check: @escaping () -> Void) -> NSKeyValueObservation {
        let check = Retained(check)
        let number = state.withLock { state in
            state.lastNumber += 1
            state.checks.append((state.lastNumber, check))
            return state.lastNumber
        }
        return NSKeyValueObservation(number, of: self)
    }

    func remove(_ number: Int) {
        let old = state.withLock { state in
            defer { state.checks.removeAll { $0.number == number } }
            return state.checks
        }
        withExtendedLifetime(old) {}
    }

    /// Calls the handlers of the properties that have changed, in the sequence in which they were added.
    func check() {
        for (number, check) in state.withLock({ $0.checks })
        where state.withLock({ $0.checks.contains { $0.number == number } }) { check.value() }
    }
}
