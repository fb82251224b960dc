public import BlueCapKit

/// The one who decides what follows a disconnection: whether Bluejay reconnects, and whatever else is to be begun then,
/// such as a scan.
///
/// Called on the callback queue of ``Bluejay``, after all callbacks of what the disconnection ended and after the
/// observers; where a background task was running, after that too.
public protocol DisconnectHandler: AnyObject {
    /// - Parameters:
    ///   - peripheral: The one that was connected.
    ///   - error: Why, where the application did not ask for it.
    ///   - autoReconnect: What ``Bluejay/shouldAutoReconnect`` is: whether Bluejay is going to reconnect if nothing is
    ///     changed.
    func didDisconnect(
        from peripheral: Peripheral, with error: (any Error)?, willReconnect autoReconnect: Bool
    ) -> AutoReconnectMode
}

/// What a ``DisconnectHandler`` wants.
public enum AutoReconnectMode: Hashable, Swift.Sendable {
    /// As Bluejay is about to do.
    case noChange
    /// ``Bluejay/shouldAutoReconnect`` is to be this.
    case change(shouldAutoReconnect: Bool)
}
