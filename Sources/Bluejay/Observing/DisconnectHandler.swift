public import BlueCapKit

/// The object that decides what follows a disconnection: whether Bluejay reconnects, and what else begins then, such as a
/// scan.
///
/// It is called on the callback queue of ``Bluejay``, after all callbacks of what the disconnection ended and after the
/// observers; if a background task was running, after that too.
///
/// ```swift
/// final class Monitor: DisconnectHandler {
///     func didDisconnect(
///         from peripheral: PeripheralIdentifier, with error: Error?, willReconnect autoReconnect: Bool
///     ) -> AutoReconnectMode {
///         .change(shouldAutoReconnect: false)
///     }
/// }
/// ```
///
/// ## Two spellings
/// The parameter is a `Peripheral`, as in the guide, or a ``PeripheralIdentifier``, as in Bluejay since version 0.8; the
/// compiler infers ``DisconnectedPeripheral`` from it. A class without such a method, with another type, or with both
/// methods does not compile. As a type the protocol is written `any DisconnectHandler`.
public protocol DisconnectHandler: AnyObject {
    /// The form in which the handler receives the peripheral: `Peripheral` or ``PeripheralIdentifier``.
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
    /// Reports a disconnection to a handler of either spelling: the call on `any DisconnectHandler`, such as a handler makes
    /// that forwards to another one.
    ///
    /// - Parameters:
    ///   - peripheral: The peripheral that was connected. The handler receives it in the form of its own method.
    ///   - error: The reason; `nil` if the application asked for it.
    ///   - autoReconnect: Whether Bluejay reconnects if nothing is changed.
    ///   - unused: Omitted by the caller. With this parameter the method is no default of the requirement: a class without a
    ///     method of its own does not compile.
    /// - Returns: What the handler has returned.
    public func didDisconnect(
        from peripheral: Peripheral, with error: (any Error)?, willReconnect autoReconnect: Bool, _ unused: Void = ()
    ) -> AutoReconnectMode {
        didDisconnect(
            from: DisconnectedPeripheral.reporting(peripheral), with: error, willReconnect: autoReconnect)
    }
}

/// A form in which Bluejay reports a peripheral to a ``DisconnectHandler``.
///
/// There are two: `Peripheral`, as in the guide, and ``PeripheralIdentifier``, as in Bluejay since version 0.8. The
/// parameter type of the handler's method selects one.
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
