import BlueCapBlueZ
public import BlueCapFutures
import BlueCapReactor

/// The strength of the signal.
///
/// BlueZ reports the signal strength of advertisements. It does not report the strength of a link over D-Bus: that
/// needs the kernel's management socket and its privileges. While a peripheral is connected, these methods therefore
/// return the strength of its newest advertisement, if BlueZ has one. BlueZ removes that value when discovery stops,
/// and most peripherals do not advertise while they are connected. Without a value the methods fail with
/// ``PeripheralError/rssiUnavailable``.
extension Peripheral {
    /// Variant of ``readRSSI()->Int`` that returns a future.
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
        let poll = RSSIPoll(of: self, capacity: capacity, period: period)
        var old: RSSIPoll?
        let isOpen = session.decideIfOpen { core in
            let use = core.state.use(of: key)
            (old, use.rssiPoll) = (use.rssiPoll, poll)
        }
        guard isOpen else { return .failed(PeripheralError.disconnected) }
        old?.end()
        session.loop.post { poll.read() }
        return poll.promise.stream
    }

    /// Stops the polling that ``startPollingRSSI(period:capacity:)`` started.
    public func stopPollingRSSI() { session.use(of: key) { $0.rssiPoll.take() }?.end() }
}

/// One polling of a peripheral's signal strength.
final class RSSIPoll: Sendable {
    let promise: StreamPromise<Int>
    private let session: CentralSession
    private let key: PeripheralKey
    private let period: Double
    /// The timer of the next reading.
    private let timer = Locked<TimerID?>(nil)

    init(of peripheral: Peripheral, capacity: Int, period: Double) {
        (session, key, self.period) = (peripheral.session, peripheral.key, period)
        promise = StreamPromise(capacity: capacity)
    }

    /// Reads the strength now and then in each period, until the end. On the loop.
    func read() {
        guard !promise.stream.isFinished else { return }
        let next = session.loop.schedule(after: period) { [weak self] in self?.read() }
        timer.withLock { $0 = next }
        let result = session.rssi(of: key)
        session.complete { [promise] in promise.complete(result) }
    }

    func end() {
        if let timer = timer.withLock({ $0 }) { session.loop.cancel(timer) }
        session.complete { [promise] in promise.finish() }
    }
}

extension CentralSession {
    fileprivate func rssi(of key: PeripheralKey) -> Try<Int> {
        guard use(of: key, { $0.state.connection.state == .connected }) == true else {
            return .failure(PeripheralError.disconnected)
        }
        return read(key) { $0.rssi }.map { .success($0) } ?? .failure(PeripheralError.rssiUnavailable)
    }
}
