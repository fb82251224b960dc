import BlueZ
public import Futures

/// The strength of the signal.
///
/// BlueZ tells the strength of what it hears advertised, and over D-Bus nothing of the strength of a link (that would take
/// the kernel's management socket and its privileges). So while a peripheral is connected these answer with the strength
/// of its newest advertisement, if BlueZ has one: it forgets them when discovery stops, and most peripherals do not
/// advertise while they are connected. Otherwise the answer is ``PeripheralError/rssiUnavailable``.
extension Peripheral {
    /// The newest strength in dBm, at once; ``PeripheralError/disconnected`` without a connection,
    /// ``PeripheralError/rssiUnavailable`` where BlueZ has none.
    public func readRSSI() -> Future<Int> {
        let future = Future<Int>()
        let result = rssiOfConnection
        session.complete { future.complete(result) }
        return future
    }

    /// Reads the strength now, and again each `period` seconds, until ``stopPollingRSSI()``, the next call of this,
    /// ``terminate()``, or the manager's end finishes the stream.
    ///
    /// What cannot be read is a failure on the stream, which goes on: the next period may be better.
    /// - Parameters:
    ///   - period: seconds between two readings, more than zero.
    ///   - capacity: how many readings the stream keeps for a handler that comes late, zero or more.
    public func startPollingRSSI(period: Double = 10.0, capacity: Int = Int.max) -> FutureStream<Int> {
        guard period > 0, period < 1e9 else {
            return .failed(
                PeripheralError.invalidArgument("A period of polling is more than zero seconds, not \(period)."))
        }
        if let refusal = PeripheralError.refusal(ofCapacity: capacity) { return .failed(refusal) }
        guard !session.core.withLock({ $0.shell.isClosed }) else { return .failed(PeripheralError.disconnected) }
        let promise = StreamPromise<Int>(capacity: capacity)
        let poll: @Sendable () -> Void = { [weak session, key] in
            guard let session else { return }
            let result = Self.rssi(of: key, in: session)
            session.complete { promise.complete(result) }
        }
        finish(session.polls.start(key, period: period, promise, poll))
        return promise.stream
    }

    /// Ends what ``startPollingRSSI(period:capacity:)`` began.
    public func stopPollingRSSI() { finish(session.polls.stop(key)) }

    private func finish(_ promise: StreamPromise<Int>?) {
        if let promise { session.complete { promise.finish() } }
    }

    private var rssiOfConnection: Try<Int> { Self.rssi(of: key, in: session) }

    private static func rssi(of key: PeripheralKey, in session: CentralSession) -> Try<Int> {
        session.core.withLock { core in
            guard core.state.readState(of: key, { $0.connection.state == .connected }) == true else {
                return .failure(PeripheralError.disconnected)
            }
            return core.read(key, in: session.client) { $0.rssi }.map { .success($0) }
                ?? .failure(PeripheralError.rssiUnavailable)
        }
    }
}
