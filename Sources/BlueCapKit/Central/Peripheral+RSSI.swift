import BlueZ
public import Futures
import Reactor

/// The strength of the signal.
///
/// BlueZ reports the signal strength of advertisements. It does not report the strength of a link over D-Bus: that
/// needs the kernel's management socket and its privileges. While a peripheral is connected, these methods therefore
/// return the strength of its newest advertisement, if BlueZ has one. BlueZ removes that value when discovery stops,
/// and most peripherals do not advertise while they are connected. Without a value the methods fail with
/// ``PeripheralError/rssiUnavailable``.
extension Peripheral {
    /// Returns the newest signal strength in dBm, at once.
    ///
    /// The future fails with ``PeripheralError/disconnected`` if there is no connection, and with
    /// ``PeripheralError/rssiUnavailable`` if BlueZ has no value.
    public func readRSSI() -> Future<Int> {
        session.settled(session.rssi(of: key))
    }

    /// Reads the signal strength in dBm now and then every `period` seconds, and returns a stream of the readings.
    ///
    /// The stream is finished by ``stopPollingRSSI()``, by the next call of this method, by ``terminate()`` and by the
    /// end of the manager. A reading that fails is a failure in the stream; the stream continues with the next period.
    /// - Parameters:
    ///   - period: Seconds between two readings, more than zero.
    ///   - capacity: How many readings the stream keeps for a handler that is added later, zero or more.
    public func startPollingRSSI(period: Double = 10.0, capacity: Int = Int.max) -> FutureStream<Int> {
        guard period > 0, period < 1e9 else {
            return .failed(
                PeripheralError.invalidArgument("A period of polling is more than zero seconds, not \(period)."))
        }
        if let refusal = PeripheralError.refusal(ofCapacity: capacity) { return .failed(refusal) }
        let poll = RSSIPoll(promise: StreamPromise(capacity: capacity), period: period)
        var old: RSSIPoll?
        let isOpen = session.decideIfOpen { core in
            let use = core.state.use(of: key)
            (old, use.rssiPoll) = (use.rssiPoll, poll)
        }
        guard isOpen else { return .failed(PeripheralError.disconnected) }
        if let old { session.end(old) }
        session.loop.post { [session, key] in session.read(for: poll, of: key) }
        return poll.promise.stream
    }

    /// Stops the polling that ``startPollingRSSI(period:capacity:)`` started.
    public func stopPollingRSSI() {
        if let poll = session.use(of: key, { $0.rssiPoll.take() }) { session.end(poll) }
    }
}

/// One polling of a peripheral's signal strength.
struct RSSIPoll: Sendable {
    let promise: StreamPromise<Int>
    /// Seconds between two readings.
    let period: Double
    /// The timer of the next reading.
    var timer: TimerID?
}

extension CentralSession {
    fileprivate func rssi(of key: PeripheralKey) -> Try<Int> {
        core.withLock { core in
            guard core.state.peripherals.use(of: key)?.state.connection.state == .connected else {
                return .failure(PeripheralError.disconnected)
            }
            return core.state.peripherals.read(key) { $0.read(in: client.daemon) { $0.rssi } }.map { .success($0) }
                ?? .failure(PeripheralError.rssiUnavailable)
        }
    }

    /// Reads the strength for a polling, now and then in each period, until the polling is stopped. On the loop.
    fileprivate func read(for poll: RSSIPoll, of key: PeripheralKey) {
        guard isCurrent(poll, key, timer: nil) else { return }
        let result = rssi(of: key)
        complete { poll.promise.complete(result) }
        let timer = loop.schedule(after: poll.period) { [weak self] in self?.read(for: poll, of: key) }
        // A handler may have stopped the polling.
        if !isCurrent(poll, key, timer: timer) { loop.cancel(timer) }
    }

    private func isCurrent(_ poll: RSSIPoll, _ key: PeripheralKey, timer: TimerID?) -> Bool {
        use(of: key) { use in
            guard use.rssiPoll?.promise === poll.promise else { return false }
            use.rssiPoll?.timer = timer
            return true
        } ?? false
    }

    /// Stops a polling that was removed.
    func end(_ poll: RSSIPoll) {
        if let timer = poll.timer { loop.cancel(timer) }
        complete { poll.promise.finish() }
    }
}
