import BlueCapKit

extension Bluejay {
    /// Connects.
    ///
    /// There is one connection at a time: the request fails with ``BluejayError/multipleConnectNotSupported`` where there
    /// is one already, or an attempt at one. Where the one before is still being ended it waits for that. A scan that is
    /// running is stopped.
    ///
    /// - Parameters:
    ///   - peripheralIdentifier: Of a discovery, or of a peripheral that BlueZ knows.
    ///   - timeout: ``BluejayError/connectionTimedOut`` when it has passed. It begins with the attempt.
    ///   - warningOptions: Have no effect on Linux; see ``WarningOptions``.
    ///   - completion: Called once.
    public func connect(
        _ peripheralIdentifier: PeripheralIdentifier, timeout: Timeout = .none, warningOptions: WarningOptions? = nil,
        completion: @escaping (ConnectionResult) -> Void
    ) {
        session.connect(peripheralIdentifier, timeout: timeout, completion: completion)
    }

    /// Disconnects, or ends the attempt to connect, also while Bluetooth is off. When that has succeeded
    /// ``shouldAutoReconnect`` is `false`.
    ///
    /// - Parameters:
    ///   - immediate: Whether everything in the queue fails at once with ``BluejayError/explicitDisconnect``, also a
    ///     disconnection that waits for its turn. Without it the disconnection waits for its turn, and what takes the
    ///     connection and is asked for after it is refused with ``BluejayError/disconnectQueued``.
    ///   - completion: Called once, with ``BluejayError/notConnected`` where there is no connection and no attempt at one.
    public func disconnect(immediate: Bool = false, completion: ((DisconnectionResult) -> Void)? = nil) {
        session.disconnect(isImmediate: immediate, completion: completion)
    }
}
