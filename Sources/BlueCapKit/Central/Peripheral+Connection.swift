public import Foundation
public import BlueCapFutures
public import BlueCapGATT

/// Connects peripherals, and reconnects them.
///
/// Within `connectionTimeout` the library makes as many attempts as needed; transient refusals of BlueZ are not
/// reported. ``stayConnected(timeout:)`` is the form for a program that stays connected, as a loop in an `async` function.
///
/// The variants of `connect` with a stream of ``ConnectionEvent``s leave the next attempt to the application: to continue
/// after `.timeout` or `.disconnect`, it calls ``reconnect(withDelay:)``.
extension Peripheral {
    /// Connects as ``connect(timeout:)`` does, and returns a stream of connection events, after which the application can
    /// connect again.
    ///
    /// The stream is finished by ``terminate()``, by `.giveUp`, by the next `connect` and by the end of the manager.
    ///
    /// - Parameters:
    ///   - timeoutRetries: How many consecutive time-outs are reported as `.timeout`; the next one is reported as
    ///     `.giveUp`. A connection resets the count.
    ///   - disconnectRetries: How many disconnections are reported as `.disconnect`; the next one is reported as
    ///     `.giveUp`.
    ///   - connectionTimeout: The time limit in seconds, as in ``connect(timeout:)``. Waiting for the adapter to be powered
    ///     has a separate limit of the same length.
    ///   - capacity: How many events the stream keeps for a handler that is added later, zero or more.
    /// - Returns: The stream of events. It receives the failure ``PeripheralError/connectionFailed(_:)`` if
    ///   `bluetoothd` refuses and no retry can succeed, and the failure ``PeripheralError/invalidArgument(_:)`` if the
    ///   time limit is not a positive number or the capacity is negative.
    @discardableResult
    public func connect(
        timeoutRetries: UInt = UInt.max, disconnectRetries: UInt = UInt.max,
        connectionTimeout: TimeInterval = TimeInterval.infinity, capacity: Int = Int.max
    ) -> FutureStream<(peripheral: Peripheral, connectionEvent: ConnectionEvent)> {
        if let refusal = PeripheralError.refusal(ofCapacity: capacity) { return .failed(refusal) }
        let promise = StreamPromise<(peripheral: Peripheral, connectionEvent: ConnectionEvent)>(capacity: capacity)
        connect(timeoutRetries, disconnectRetries, connectionTimeout, ConnectionStream(promise, of: self))
        return promise.stream
    }

    /// Attempts to connect again, with the arguments of the last `connect`, or with its default arguments if there was
    /// none.
    ///
    /// The stream of that `connect` reports the result. After consecutive failed attempts a delay is added, which grows
    /// from 0.1 to 4 seconds and varies randomly by up to a quarter. Does nothing while the peripheral is connected or
    /// an attempt is active.
    /// - Parameter delay: Seconds to wait before the attempt, zero or more.
    public func reconnect(withDelay delay: Double = 0.0) {
        guard delay >= 0, delay < Self.endlessTimeout else {
            let error = PeripheralError.invalidArgument(
                "A delay before reconnecting is zero or more seconds, not \(delay).")
            session.decide(key) { $1.append(.report($0.connection.number, .failed(error))) }
            return
        }
        session.decide(key) { $0.connect(.reconnectAsked(delay: delay), into: &$1) }
    }

    /// Ends the connection or the connection attempt.
    ///
    /// `.forceDisconnect` is reported when BlueZ has confirmed the end, usually two seconds later. Active operations
    /// fail at once with ``PeripheralError/forcedDisconnect``. Streams of notifications receive what the peripheral sends until
    /// then. If there is no connection, the stream of the last `connect` receives the failure
    /// ``PeripheralError/disconnected``.
    public func disconnect() { session.decide(key) { $0.disconnectAsked(into: &$1) } }

    /// Ends the connection as ``disconnect()`` does, and finishes the stream of `connect`.
    ///
    /// It also removes the peripheral from the manager's `peripherals`, and ends its subscriptions and the polling of
    /// its signal strength.
    public func terminate() {
        session.decide(key) { $0.connect(.terminateAsked, into: &$1) }
        stopPollingRSSI()
    }

    /// Connects the peripheral and keeps it connected, until the last loop over the returned stream ends.
    ///
    /// ```swift
    /// for try await change in peripheral.stayConnected() where change == .connected {
    ///     let location: UInt8? = try? await peripheral.read(bodySensorLocation)
    ///     print("connected", location ?? 0)
    /// }
    /// ```
    ///
    /// After a lost link, or an attempt that has exceeded its time limit, the manager connects again, without a limit of
    /// attempts and with the delays of ``reconnect(withDelay:)``. While the adapter is off, the attempt waits for it. All this
    /// also happens while the loop is busy, so the link may already be lost when the loop receives `.connected`.
    /// Subscriptions are resumed on each link.
    ///
    /// When the last loop or handler has ended or was cancelled, the attempt or the link is ended as by ``disconnect()``; a
    /// link that another program opened stays. The stream ends without an error with ``disconnect()``, ``terminate()``,
    /// `unpair()`, `repair()`, and the next call of this function or of `connect` with a stream, which takes the connection over.
    ///
    /// - Parameter timeout: The time limit of each attempt, as in `connect`; more than zero, or `nil` for none.
    /// - Returns: The stream. It fails and ends with ``PeripheralError/connectionFailed(_:)`` if no retry can succeed, with
    ///   ``PeripheralError/pairing(_:)`` if the keys of the bond are lost, with ``PeripheralError/disconnected`` if the
    ///   manager has ended, and with ``PeripheralError/invalidArgument(_:)``.
    public func stayConnected(timeout: Duration? = .seconds(10)) -> FutureStream<ConnectionChange> {
        let stream = FutureStream<ConnectionChange>(capacity: 16)
        let number = Locked<ConnectionMachine.ConnectionNumber?>(nil)
        stream.lastReaderEnded = { [weak stream, weak session, key] in
            stream?.finish()
            guard let number = number.withLock({ $0 }) else { return }
            session?.decide(key) { $0.readersEnded(number, into: &$1) }
        }
        let begun = connect(.max, .max, timeout.seconds, ConnectionStream(stream, of: self), reconnects: true)
        number.withLock { $0 = begun }
        // It may have failed already.
        if stream.isFinished { stream.lastReaderEnded?() }
        return stream
    }

    /// Returns the number of the connection; `nil` if there is none.
    @discardableResult
    func connect(
        _ timeoutRetries: UInt, _ disconnectRetries: UInt, _ timeout: TimeInterval, _ stream: ConnectionStream,
        reconnects: Bool = false
    ) -> ConnectionMachine.ConnectionNumber? {
        if let refusal = PeripheralError.refusal(ofConnectionTimeout: timeout) {
            end(stream, refusal)
            return nil
        }
        let policy = ConnectionPolicy(
            timeoutRetries: timeoutRetries, disconnectRetries: disconnectRetries,
            timeout: timeout < Self.endlessTimeout ? timeout : nil, reconnects: reconnects)
        var number: ConnectionMachine.ConnectionNumber?
        let isOpen = session.decideIfOpen { core in
            core.decide(key) { $0.connect(.connectAsked(policy), into: &$1) }
            let use = core.state.use(of: key)
            number = use.state.connection.number
            use.connections[use.state.connection.number] = stream
        }
        if !isOpen { end(stream, .disconnected) }
        return number
    }

    /// In seconds; a value of this size or more means no time limit.
    private static let endlessTimeout: TimeInterval = 1e9

    private func end(_ stream: ConnectionStream, _ error: PeripheralError) {
        session.complete {
            stream.report(.failed(error))
            stream.finish()
        }
    }

    /// The state of the connection.
    public var state: CBPeripheralState {
        session.use(of: key) { $0.state.connection.peripheralState } ?? .disconnected
    }

    /// Whether another manager or program opened the current link.
    ///
    /// This manager leaves such a link connected when it ends. ``disconnect()`` ends the link for all programs.
    public var isLinkShared: Bool {
        session.use(of: key) { $0.state.connection.state == .connected && !$0.state.connection.isOurs } ?? false
    }

    /// Why the last link ended; `nil` if no link has ended yet.
    public var disconnectReason: DisconnectReason? {
        session.use(of: key) { $0.state.lastLoss }
    }

    /// BlueZ's reason for the end of the device's last link, which may have been a link of another program.
    ///
    /// It is `nil` while the device is connected, before its first connection, and if BlueZ reported no reason:
    /// versions before 5.83 never do, nor does a `bluetoothd` that has stopped. It may be set a moment after
    /// ``disconnectReason``: if the application ends the link, it is set when the link is down.
    public var disconnectDetail: DisconnectDetail? {
        session.use(of: key) { $0.state.linkEnd.map(DisconnectDetail.init) }
    }

    /// The errors of `bluetoothd` for the failed attempts of the current or last connection, oldest first, at most 16.
    public var failedAttempts: [BusError] {
        session.use(of: key) { $0.state.connection.failures.map { BusError($0) } } ?? []
    }
}

extension ConnectionMachine {
    var peripheralState: CBPeripheralState {
        switch state {
        case .disconnected, .closed: .disconnected
        case .waiting, .connecting, .ending(_, .connect): .connecting
        case .connected: .connected
        case .ending: .disconnecting
        }
    }
}
