public import BlueCapKit

/// The object that decides what follows a disconnection: whether Bluejay reconnects, and what else begins then, such as a
/// scan.
///
/// It is called on the callback queue of ``Bluejay``, after all callbacks of what the disconnection ended, after the
/// observers, and after a background task that was running.
///
/// The parameter is a `Peripheral`, as in the guide, or a ``PeripheralIdentifier``, as in Bluejay since version 0.8;
/// the compiler infers ``DisconnectedPeripheral`` from it. A class without such a method, or with both, does not
/// compile. As a type the protocol is written `any DisconnectHandler`.
public protocol DisconnectHandler: AnyObject {
    /// The type of the method's parameter.
    associatedtype DisconnectedPeripheral: ReportedPeripheral

    /// Called when the connection has ended.
    ///
    /// - Parameters:
    ///   - peripheral: The peripheral that was connected.
    ///   - error: The reason; `nil` if the application asked for it.
    ///   - autoReconnect: What ``Bluejay/shouldAutoReconnect`` is: whether Bluejay reconnects if nothing is changed.
    func didDisconnect(
        from peripheral: DisconnectedPeripheral, with error: (any Error)?, willReconnect autoReconnect: Bool
    ) -> AutoReconnectMode
}

/// The decision of a ``DisconnectHandler``.
public enum AutoReconnectMode: Hashable, Swift.Sendable {
    /// Keeps ``Bluejay/shouldAutoReconnect``.
    case noChange
    /// Sets ``Bluejay/shouldAutoReconnect``.
    case change(shouldAutoReconnect: Bool)
}

extension DisconnectHandler {
    /// Calls a handler of either spelling: the call on `any DisconnectHandler`, such as a handler makes that forwards
    /// to another one.
    ///
    /// - `unused`: Omitted by the caller. With it the method is no default of the requirement.
    public func didDisconnect(
        from peripheral: Peripheral, with error: (any Error)?, willReconnect autoReconnect: Bool, _ unused: Void = ()
    ) -> AutoReconnectMode {
        didDisconnect(
            from: DisconnectedPeripheral.reporting(peripheral), with: error, willReconnect: autoReconnect)
    }
}

/// A form in which a ``DisconnectHandler`` receives a peripheral: `Peripheral` or ``PeripheralIdentifier``.
public protocol ReportedPeripheral: Swift.Sendable {
    /// Returns the form of a peripheral.
    static func reporting(_ peripheral: Peripheral) -> Self
}

extension Peripheral: ReportedPeripheral {
    public static func reporting(_ peripheral: Peripheral) -> Peripheral { peripheral }
}

extension PeripheralIdentifier: ReportedPeripheral {
    public static func reporting(_ peripheral: Peripheral) -> PeripheralIdentifier { PeripheralIdentifier(peripheral) }
}
