public import BlueCapKit

/// An object that receives the major events; it is called on the callback queue of ``Bluejay``.
///
/// Bluejay holds its observers weakly. Each method has a default that does nothing.
///
/// ## Two spellings
/// The guide's methods take a `Peripheral`, those of Bluejay since version 0.8 a ``PeripheralIdentifier``. Bluejay calls
/// both for each event, the guide's first: a class implements either, per event. One that implements both is called twice.
///
/// ## What the compiler does not see
/// Since each method has a default, a method with another name or another type is no error: it is a method of the class's
/// own and is never called. If the conformance is declared in an extension that has the method, as in
/// `extension Label: ConnectionObserver { … }`, the compiler warns that the method "nearly matches" a requirement. A subclass
/// overrides what its superclass implements; a method of the subclass that the superclass does not implement is not
/// called.
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
    /// The same event as ``connected(to:)-(Peripheral)``, as Bluejay spells it since version 0.8.
    func connected(to peripheral: PeripheralIdentifier)
    /// The same event as ``disconnected(from:)-(Peripheral)``, as Bluejay spells it since version 0.8.
    func disconnected(from peripheral: PeripheralIdentifier)
}

extension ConnectionObserver {
    public func bluetoothAvailable(_ available: Bool) {}
    public func connected(to peripheral: Peripheral) {}
    public func disconnected(from peripheral: Peripheral) {}
    public func connected(to peripheral: PeripheralIdentifier) {}
    public func disconnected(from peripheral: PeripheralIdentifier) {}
}

extension ConnectionObserver {
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
