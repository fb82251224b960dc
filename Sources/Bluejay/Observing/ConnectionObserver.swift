public import BlueCapKit

/// An object that receives the major events, on the callback queue of ``Bluejay``, which holds it weakly.
///
/// The guide's methods take a `Peripheral`, those of Bluejay since version 0.8 a ``PeripheralIdentifier``. Bluejay
/// calls both for each event, the guide's first: a class implements either, per event.
///
/// Each method has a default that does nothing, so a method with another name or type compiles and is never called. If
/// the conformance is declared in an extension that has the method, the compiler warns that it "nearly matches" a
/// requirement. A subclass can override only what its superclass implements.
public protocol ConnectionObserver: AnyObject {
    /// Called when Bluetooth becomes available or unavailable, and with the present state when the observer is
    /// registered, unless that is unknown.
    func bluetoothAvailable(_ available: Bool)
    /// Called when there is a connection, by `Bluejay.connect`, by Bluejay's own reconnection, or by restoration; and when
    /// the observer is registered while there is one.
    func connected(to peripheral: Peripheral)
    /// Called when the connection has ended, for any reason. If Bluejay reconnects, ``connected(to:)-(Peripheral)`` may
    /// follow.
    func disconnected(from peripheral: Peripheral)
    /// The same event as ``connected(to:)-(Peripheral)``, since version 0.8.
    func connected(to peripheral: PeripheralIdentifier)
    /// The same event as ``disconnected(from:)-(Peripheral)``, since version 0.8.
    func disconnected(from peripheral: PeripheralIdentifier)
}

extension ConnectionObserver {
    public func bluetoothAvailable(_ available: Bool) {}
    public func connected(to peripheral: Peripheral) {}
    public func disconnected(from peripheral: Peripheral) {}
    public func connected(to peripheral: PeripheralIdentifier) {}
    public func disconnected(from peripheral: PeripheralIdentifier) {}

    /// Reports a connection in both spellings.
    func connected(_ peripheral: Peripheral) {
        connected(to: peripheral)
        connected(to: PeripheralIdentifier(peripheral))
    }

    /// Reports the end of a connection in both spellings.
    func disconnected(_ peripheral: Peripheral) {
        disconnected(from: peripheral)
        disconnected(from: PeripheralIdentifier(peripheral))
    }
}
