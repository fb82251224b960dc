public import Foundation
public import Futures
public import GATT

/// Connecting, and staying connected.
///
/// The library tries, within `connectionTimeout`, as often as it takes: BlueZ's transient refusals are not shown. What
/// becomes of the try is told as a ``ConnectionEvent``, and the application answers `.timeout` and `.disconnect` with
/// ``reconnect(withDelay:)`` if it wants to go on:
///
/// ```swift
/// peripheral.connect(timeoutRetries: 5, disconnectRetries: 5, connectionTimeout: 10).onSuccess { peripheral, event in
///     switch event {
///     case .connect: print("connected to", peripheral.name)
///     case .timeout, .disconnect: peripheral.reconnect()
///     case .forceDisconnect: break
///     case .giveUp: peripheral.terminate()
///     }
/// }
/// ```
extension Peripheral {
    /// Connects, and tells what becomes of the connection until ``terminate()``, `.giveUp`, the next `connect` or the
    /// manager's end finishes the stream.
    ///
    /// A link that is there already, whoever opened it, is taken over. While the adapter is off the attempt waits for it.
    /// A second call takes over from the first, whose stream is finished.
    ///
    /// - Parameters:
    ///   - timeoutRetries: how many time-outs in a row are told as `.timeout`; the next one is `.giveUp`. A connection
    ///     begins the count anew.
    ///   - disconnectRetries: how many disconnections are told as `.disconnect`; the next one is `.giveUp`.
    ///   - connectionTimeout: seconds, more than zero, from the moment at which the adapter begins to try: waiting
    ///     behind other peripherals does not count. Waiting for the adapter's power has the same limit of its own.
    ///   - capacity: how many events the stream keeps for a handler that comes late, zero or more.
    /// - Returns: The events. A refusal of `bluetoothd` that no retry cures is a failure on it,
    ///   ``PeripheralError/connectionFailed(_:)``, and so is a timeout that is not a positive number, or a negative
    ///   capacity, ``PeripheralError/invalidArgument(_:)``.
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

    /// The same in the form of the latest revision: each connection is a success, and everything else a failure:
    /// ``PeripheralError/connectionTimeout``, ``PeripheralError/disconnected``, ``PeripheralError/forcedDisconnect``. Giving
    /// up is the failure that spent the retries, as the last element.
    @_disfavoredOverload
    @discardableResult
    public func connect(
        timeoutRetries: UInt = UInt.max, disconnectRetries: UInt = UInt.max,
        connectionTimeout: TimeInterval = TimeInterval.infinity, capacity: Int = Int.max
    ) -> FutureStream<Void> {
        if let refusal = PeripheralError.refusal(ofCapacity: capacity) { return .failed(refusal) }
        let promise = StreamPromise<Void>(capacity: capacity)
        connect(timeoutRetries, disconnectRetries, connectionTimeout, ConnectionStream(promise, of: self))
        return promise.stream
    }

    /// The same with the two arguments that the latest document declares, so that it can be named as a function value:
    /// `Peripheral.connect(connectionTimeout:capacity:)`.
    @_disfavoredOverload
    @discardableResult
    public func connect(
        connectionTimeout: TimeInterval = TimeInterval.infinity, capacity: Int = Int.max
    ) -> FutureStream<Void> {
        connect(
            timeoutRetries: UInt.max, disconnectRetries: UInt.max, connectionTimeout: connectionTimeout,
            capacity: capacity)
    }

    /// Tries again, with the arguments of the last `connect`; before any, with its default ones.
    ///
    /// What becomes of it is told on the stream of that `connect`. Where one try after the other comes to nothing, a wait
    /// is added that grows from 0.1 to 4 seconds, a quarter more or less by chance. Does nothing while the peripheral is
    /// connected or a try is under way.
    /// - Parameter delay: seconds to wait before, zero or more.
    public func reconnect(withDelay delay: Double = 0.0) {
        guard delay >= 0, delay < Self.endlessTimeout else {
            let error = PeripheralError.invalidArgument(
                "A delay before reconnecting is zero or more seconds, not \(delay).")
            let stream = session.core.withLock { core -> ConnectionStream? in
                let number = core.state.readState(of: key) { $0.connection.number } ?? 0
                return core.connections[ConnectionName(key: key, number: number)]
            }
            if let stream { session.complete { stream.fail(error) } }
            return
        }
        _ = session.decideIfOpen { core in
            core.hold(self)
            core.state.peripheral(key, into: &core.shell.orders) {
                $0.connect(.reconnectAsked(delay: delay), into: &$1)
            }
        }
    }

    /// Ends the connection, or the attempt at one: `.forceDisconnect` follows when BlueZ has confirmed it, two seconds
    /// later as a rule. Operations that are under way fail at once with ``PeripheralError/forcedDisconnect``.
    ///
    /// Without a connection the stream of the last `connect` gets the failure ``PeripheralError/disconnected``.
    public func disconnect() { session.decide(key) { $0.disconnectAsked(into: &$1) } }

    /// Does the same, removes the peripheral from the manager's `peripherals`, ends its subscriptions and the polling of
    /// its signal strength, and finishes the stream of `connect`.
    public func terminate() {
        session.decide(key) { $0.connect(.terminateAsked, into: &$1) }
        stopPollingRSSI()
    }

    private func connect(
        _ timeoutRetries: UInt, _ disconnectRetries: UInt, _ timeout: TimeInterval, _ stream: ConnectionStream
    ) {
        guard timeout > 0 else {
            return end(stream, .invalidArgument("A connection's timeout is more than zero seconds, not \(timeout)."))
        }
        let policy = ConnectionPolicy(
            timeoutRetries: timeoutRetries, disconnectRetries: disconnectRetries,
            timeout: timeout < Self.endlessTimeout ? timeout : nil)
        let isOpen = session.decideIfOpen { core in
            core.hold(self)
            var number: ConnectionMachine.ConnectionNumber = 0
            core.state.peripheral(key, into: &core.shell.orders) { state, orders in
                state.connect(.connectAsked(policy), into: &orders)
                number = state.connection.number
            }
            core.connections[ConnectionName(key: key, number: number)] = stream
        }
        if !isOpen { end(stream, .disconnected) }
    }

    /// In seconds; from here on there is no time limit.
    private static let endlessTimeout: TimeInterval = 1e9

    private func end(_ stream: ConnectionStream, _ error: PeripheralError) {
        session.complete {
            stream.fail(error)
            stream.finish()
        }
    }

    /// How far the connection is.
    public var state: CBPeripheralState {
        session.readState(of: key) { $0.connection.peripheralState } ?? .disconnected
    }

    /// Whether the present link was opened by another manager or program. It is left up when this manager goes;
    /// ``disconnect()`` ends it for everybody.
    public var isLinkShared: Bool {
        session.readState(of: key) { $0.connection.state == .connected && !$0.connection.isOurs } ?? false
    }

    /// Why the last link ended; `nil` where none did so far.
    public var disconnectReason: DisconnectReason? {
        session.readState(of: key) { state in
            switch state.lastLoss {
            case .disconnected: .linkLost
            case .forced: .application
            case .adapterLost: .adapterLost
            case nil: nil
            }
        }
    }

    /// What BlueZ said of the end of the device's last link, which may have been another program's; `nil` while the device is
    /// connected, before it was, and if BlueZ did not say it: versions before 5.83 never do, nor does a `bluetoothd` that has
    /// stopped.
    ///
    /// It may come a moment after ``disconnectReason``: if the application ends the link, when the link is down.
    public var disconnectDetail: DisconnectDetail? {
        session.readState(of: key) { $0.linkEnd.map(DisconnectDetail.init) }
    }

    /// What `bluetoothd` answered to the attempts of the present or last try that failed, oldest first, 16 at most.
    public var failedAttempts: [BusFailure] {
        session.readState(of: key) { $0.connection.failures.map(\.failure) } ?? []
    }
}

extension ConnectionMachine {
    var peripheralState: CBPeripheralState {
        switch state {
        case .disconnected, .closed: .disconnected
        case .waiting, .seeking, .connecting: .connecting
        case .connected: .connected
        case .cancelling(_, let ending), .disconnecting(let ending):
            if case .connect = ending.next { .connecting } else { .disconnecting }
        }
    }
}
