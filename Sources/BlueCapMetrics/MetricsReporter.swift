public import BlueCapKit
public import CoreMetrics
import BlueCapFutures

/// Reports the statistics of a manager or a peripheral to swift-metrics, for example for Prometheus.
///
/// ```swift
/// import BlueCapMetrics
///
/// let reporter = MetricsReporter(manager)
/// await reporter.run(every: .seconds(10))
/// ```
///
/// Numbers that only grow are counters, and a report adds the growth since the last one. Numbers of the present, such as
/// `connected`, are gauges. A latency is two counters: how often, and the sum of the seconds. The label of each is the
/// prefix, an underscore, and a name of the list in the guide to the central role, such as
/// `bluecap_central_connections`.
///
/// The reporter does not keep the manager or the peripheral alive. All functions may be called on any thread.
public final class MetricsReporter: Sendable {
    private let read: @Sendable () -> [Reading]?
    private let prefix: String
    private let dimensions: [(String, String)]
    private let factory: (any MetricsFactory)?
    /// What was reported of the numbers that only grow, by their names.
    private let reported = Locked<[String: Double]>([:])

    /// Creates a reporter for a central manager.
    /// - Parameters:
    ///   - manager: The manager; it is not kept alive.
    ///   - prefix: The beginning of all labels.
    ///   - dimensions: The names and values that all metrics have, such as the name of a manager.
    ///   - factory: Makes the metrics; the one of `MetricsSystem` if it is `nil`.
    public convenience init(
        _ manager: CentralManager, prefix: String = "bluecap_central", dimensions: [(String, String)] = [],
        factory: (any MetricsFactory)? = nil
    ) {
        self.init(prefix, dimensions, factory) { [weak manager] in manager.map { Reading.all(of: $0.statistics) } }
    }

    /// Creates a reporter for a peripheral.
    /// - Parameters:
    ///   - peripheral: The peripheral; it is not kept alive.
    ///   - prefix: The beginning of all labels.
    ///   - dimensions: The names and values that all metrics have. One should name the peripheral.
    ///   - factory: Makes the metrics; the one of `MetricsSystem` if it is `nil`.
    public convenience init(
        _ peripheral: Peripheral, prefix: String = "bluecap_device", dimensions: [(String, String)],
        factory: (any MetricsFactory)? = nil
    ) {
        self.init(prefix, dimensions, factory) { [weak peripheral] in
            peripheral.map { Reading.all(of: $0.statistics) }
        }
    }

    /// Creates a reporter for a peripheral manager.
    /// - Parameters:
    ///   - manager: The manager; it is not kept alive.
    ///   - prefix: The beginning of all labels.
    ///   - dimensions: The names and values that all metrics have.
    ///   - factory: Makes the metrics; the one of `MetricsSystem` if it is `nil`.
    public convenience init(
        _ manager: PeripheralManager, prefix: String = "bluecap_peripheral", dimensions: [(String, String)] = [],
        factory: (any MetricsFactory)? = nil
    ) {
        self.init(prefix, dimensions, factory) { [weak manager] in manager.map { Reading.all(of: $0.statistics) } }
    }

    private init(
        _ prefix: String, _ dimensions: [(String, String)], _ factory: (any MetricsFactory)?,
        read: @escaping @Sendable () -> [Reading]?
    ) {
        (self.prefix, self.dimensions, self.factory, self.read) = (prefix, dimensions, factory, read)
    }

    /// Reports the present numbers once.
    /// - Returns: Whether the manager or the peripheral still exists.
    @discardableResult
    public func report() -> Bool {
        guard let readings = read() else { return false }
        let growths = reported.withLock { reported in readings.map { Self.growth(of: $0, since: &reported) } }
        // The metrics are the application's code, and are not called under the lock.
        for (reading, growth) in zip(readings, growths) { pass(on: reading, growth) }
        return true
    }

    /// Reports at once and then at this interval, until the task is cancelled or the manager or the peripheral is released.
    public func run(every interval: Duration) async {
        while !Task.isCancelled, report() {
            do { try await Task.sleep(for: interval) } catch { return }
        }
    }

    /// Returns how much a number has grown since the last report.
    private static func growth(of reading: Reading, since reported: inout [String: Double]) -> Double {
        let number: Double
        switch reading.value {
        case .count(let count): number = Double(count)
        case .sum(let sum): number = sum
        case .present: return 0
        }
        let last = reported.updateValue(number, forKey: reading.name) ?? 0
        // The statistics of a peripheral may begin again.
        return number >= last ? number - last : number
    }

    private func pass(on reading: Reading, _ growth: Double) {
        let label = "\(prefix)_\(reading.name)"
        let factory = factory ?? MetricsSystem.factory
        switch reading.value {
        case .count: Counter(label: label, dimensions: dimensions, factory: factory).increment(by: Int(growth))
        case .sum:
            FloatingPointCounter(label: label, dimensions: dimensions, factory: factory).increment(by: growth)
        case .present(let value): Gauge(label: label, dimensions: dimensions, factory: factory).record(value)
        }
    }
}
