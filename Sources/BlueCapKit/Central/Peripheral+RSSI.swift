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
        session.settled(Self.rssi(of: key, in: session))
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
        guard !session.core.withLock({ $0.shell.isClosed }) else { return .failed(PeripheralError.disconnected) }
        let promise = StreamPromise<Int>(capacity: capacity)
        let poll: @Sendable () -> Void = { [weak session, key] in
            guard let session else { return }
            let result = Self.rssi(of: key, in: session)
            session.complete { promise.complete(result) }
        }
        finish(session.polls.start(key, period: period, promise, poll))
        // The manager may have ended since.
        if session.core.withLock({ $0.shell.isClosed }) { stopPollingRSSI() }
        return promise.stream
    }

    /// Stops the polling that ``startPollingRSSI(period:capacity:)`` started.
    public func stopPollingRSSI() { finish(session.polls.stop(key)) }

    private func finish(_ promise: StreamPromise<Int>?) {
        if let promise { session.complete { promise.finish() } }
    }

    private static func rssi(of key: PeripheralKey, in session: CentralSession) -> Try<Int> {
        session.core.withLock { core in
            guard core.state.readState(of: key, { $0.connection.state == .connected }) == true else {
                return .failure(PeripheralError.disconnected)
            }
            return core.state.read(key) { $0.read(in: session.client.daemon) { $0.rssi } }.map { .success($0) }
                ?? .failure(PeripheralError.rssiUnavailable)
        }
    }
}

/// Reads signal strengths of connected peripherals at intervals, one stream for each peripheral.
final class RSSIPolls: Sendable {
    private struct Poll {
        let number: UInt64
        let promise: StreamPromise<Int>
        var timer: TimerID?
    }

    private struct State {
        var polls: [PeripheralKey: Poll] = [:]
        var lastNumber: UInt64 = 0
    }

    private let loop: any EventLoop
    private let state = Locked(State())

    init(_ loop: any EventLoop) { self.loop = loop }

    /// Calls `poll` on the loop, at once and then every `period` seconds, until the polling is stopped. Returns the
    /// promise of an earlier polling of this peripheral, which has ended.
    func start(
        _ key: PeripheralKey, period: Double, _ promise: StreamPromise<Int>, _ poll: @escaping @Sendable () -> Void
    ) -> StreamPromise<Int>? {
        let (number, old) = state.withLock { state in
            state.lastNumber += 1
            let poll = Poll(number: state.lastNumber, promise: promise)
            return (state.lastNumber, state.polls.updateValue(poll, forKey: key))
        }
        loop.post { [weak self] in self?.poll(key, number, period, poll) }
        return old.map(end)
    }

    func stop(_ key: PeripheralKey) -> StreamPromise<Int>? {
        state.withLock { $0.polls.removeValue(forKey: key) }.map(end)
    }

    func stopAll() -> [StreamPromise<Int>] {
        let polls = state.withLock { state in
            defer { state.polls = [:] }
            return state.polls
        }
        return polls.sorted { $0.key < $1.key }.map { end($0.value) }
    }

    private func end(_ poll: Poll) -> StreamPromise<Int> {
        if let timer = poll.timer { loop.cancel(timer) }
        return poll.promise
    }

    private func poll(
        _ key: PeripheralKey, _ number: UInt64, _ period: Double, _ poll: @escaping @Sendable () -> Void
    ) {
        guard state.withLock({ $0.polls[key]?.number == number }) else { return }
        poll()
        let timer = loop.schedule(after: period) { [weak self] in self?.poll(key, number, period, poll) }
        let isCurrent = state.withLock { state in
            guard state.polls[key]?.number == number else { return false }
            state.polls[key]?.timer = timer
            return true
        }
        if !isCurrent { loop.cancel(timer) }
    }
}
