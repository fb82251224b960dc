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
    public func readRSSI() -> Future<Int> { session.readRSSI(key) }

    /// Reads the strength now, and again each `period` seconds, until ``stopPollingRSSI()``, the next call of this,
    /// ``terminate()``, or the manager's end finishes the stream.
    ///
    /// What cannot be read is a failure on the stream, which goes on: the next period may be better.
    /// - Parameters:
    ///   - period: seconds between two readings, more than zero.
    ///   - capacity: how many readings the stream keeps for a handler that comes late, zero or more.
    public func startPollingRSSI(period: Double = 10.0, capacity: Int = Int.max) -> FutureStream<Int> {
        session.startPollingRSSI(self, period: period, capacity: capacity)
    }

    /// Ends what ``startPollingRSSI(period:capacity:)`` began.
    public func stopPollingRSSI() { session.stopPollingRSSI(key) }
}
