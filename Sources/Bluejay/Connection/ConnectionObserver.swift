public import BlueCapKit

/// Somebody who wants to know of the major events; called on the callback queue of ``Bluejay``.
///
/// Bluejay holds its observers weakly. All three have a default that does nothing.
public protocol ConnectionObserver: AnyObject {
    /// Bluetooth can be used now, or not any more. Also called when the observer is registered, with how things stand,
    /// unless nobody knows yet.
    func bluetoothAvailable(_ available: Bool)
    /// There is a connection, by ``Bluejay/connect(_:timeout:warningOptions:completion:)``, by itself again, or by
    /// restoration. Also called when the observer is registered while there is one.
    func connected(to peripheral: Peripheral)
    /// The connection is gone, whoever ended it. Where Bluejay goes on to reconnect there may be a
    /// ``connected(to:)`` later.
    func disconnected(from peripheral: Peripheral)
}

extension ConnectionObserver {
    public func bluetoothAvailable(_ available: Bool) {}
    public func connected(to peripheral: Peripheral) {}
    public func disconnected(from peripheral: Peripheral) {}
}
