public import CoreMetrics
import Foundation

/// Metrics of swift-metrics for Prometheus.
///
/// ```swift
/// let metrics = PrometheusMetrics()
/// MetricsSystem.bootstrap(metrics)
/// ```
///
/// Counters become counters, gauges and meters gauges, and timers histograms in seconds with fixed buckets. Recorders that
/// aggregate become summaries without quantiles. Characters that Prometheus does not allow in names become underscores.
/// Metrics with the same label and dimensions are one. A metric beyond ``Limits``, and one whose name another kind of metric
/// has, is not written; each creation of one is counted in `bluecap_metrics_refused_total`.
/// All functions may be called on any thread.
// `@unchecked`: `state` is accessed only while `lock` is held.
public final class PrometheusMetrics: MetricsFactory, @unchecked Sendable {
    /// How many metrics are kept.
    public struct Limits: Hashable, Sendable {
        /// The number of names.
        public var names = 500
        /// The number of combinations of dimensions of a name.
        public var series = 500

        public init() {}
    }

    /// The upper bounds of the buckets of timers in seconds.
    static let buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

    fileprivate enum Kind: String {
        case counter, gauge, summary, histogram
    }

    private struct Family {
        let kind: Kind
        var series: [[String]: Series] = [:]
    }

    private struct State {
        var families: [String: Family] = [:]
        /// The names that samples have, with the family of each.
        var names: [String: String] = [:]
        var refused = 0
    }

    private let lock = NSLock()
    private var state = State()
    private let limits: Limits

    public init(limits: Limits = Limits()) {
        self.limits = limits
    }

    public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        series(label, dimensions, .counter)
    }

    public func makeFloatingPointCounter(
        label: String, dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler {
        series(label, dimensions, .counter)
    }

    public func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        series(label, dimensions, .gauge)
    }

    public func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        series(label, dimensions, aggregate ? .summary : .gauge)
    }

    public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        series(label.hasSuffix("seconds") ? label : label + "_seconds", dimensions, .histogram)
    }

    public func destroyCounter(_ handler: any CounterHandler) { remove(handler) }
    public func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) { remove(handler) }
    public func destroyMeter(_ handler: any MeterHandler) { remove(handler) }
    public func destroyRecorder(_ handler: any RecorderHandler) { remove(handler) }
    public func destroyTimer(_ handler: any TimerHandler) { remove(handler) }

    /// Adds all metrics to a text.
    func write(to text: inout PrometheusText) {
        let (families, refused) = lock.withLock { (state.families, state.refused) }
        for (name, family) in families.sorted(by: { $0.key < $1.key }) where !family.series.isEmpty {
            text.begin(name, family.kind.rawValue)
            for series in family.series.values.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
                series.write(name, to: &text)
            }
        }
        text.add("bluecap_metrics_refused_total", "counter", Double(refused))
    }

    private func series(_ label: String, _ dimensions: [(String, String)], _ kind: Kind) -> Series {
        let name = PrometheusText.metricName(label)
        var labels: [(String, String)] = []
        for (label, value) in dimensions {
            let label = PrometheusText.labelName(label)
            labels.removeAll { $0.0 == label }
            labels.append((label, value))
        }
        labels.sort { $0.0 < $1.0 }
        let key = labels.flatMap { [$0.0, $0.1] }
        return lock.withLock {
            if let known = state.families[name]?.series[key], known.kind == kind { return known }
            let series = Series(kind, labels, key)
            guard admit(name, kind) else {
                state.refused += 1
                return series  // works, and is not shown
            }
            state.families[name]?.series[key] = series
            return series
        }
    }

    /// Whether one more series of this name is kept; adds the family if it is new.
    private func admit(_ name: String, _ kind: Kind) -> Bool {
        if let family = state.families[name] { return family.kind == kind && family.series.count < limits.series }
        let names: [String]
        switch kind {
        case .counter, .gauge: names = [name]
        case .summary: names = [name, name + "_sum", name + "_count"]
        case .histogram: names = [name, name + "_sum", name + "_count", name + "_bucket"]
        }
        guard state.families.count < limits.names, !names.contains(where: { state.names[$0] != nil }),
            !names.contains("bluecap_metrics_refused_total")
        else { return false }
        for sample in names { state.names[sample] = name }
        state.families[name] = Family(kind: kind)
        return true
    }

    private func remove(_ handler: AnyObject) {
        guard let series = handler as? Series else { return }
        lock.withLock {
            for (name, family) in state.families where family.series[series.key] === series {
                state.families[name]?.series[series.key] = nil
            }
        }
    }
}

/// One metric with its dimensions.
// `@unchecked`: `numbers` is accessed only while `lock` is held.
private final class Series: CounterHandler, FloatingPointCounterHandler, MeterHandler, RecorderHandler, TimerHandler,
    @unchecked Sendable
{
    private struct Numbers {
        /// The number of a counter or a gauge, or the sum of the others.
        var value = 0.0
        var count = 0
        /// How many numbers each bucket has; the last has those beyond all bounds.
        var buckets: [Int]
    }

    let kind: PrometheusMetrics.Kind
    let labels: [(String, String)]
    /// The labels as a key.
    let key: [String]
    private let lock = NSLock()
    private var numbers: Numbers

    init(_ kind: PrometheusMetrics.Kind, _ labels: [(String, String)], _ key: [String]) {
        (self.kind, self.labels, self.key) = (kind, labels, key)
        numbers = Numbers(
            buckets: kind == .histogram ? Array(repeating: 0, count: PrometheusMetrics.buckets.count + 1) : [])
    }

    func increment(by amount: Int64) { increment(by: Double(amount)) }

    func increment(by amount: Double) {
        guard kind != .counter || amount >= 0 else { return }  // a counter only grows
        lock.withLock { numbers.value += amount }
    }

    func decrement(by amount: Double) { lock.withLock { numbers.value -= amount } }

    func reset() { lock.withLock { numbers.value = 0 } }

    func set(_ value: Int64) { set(Double(value)) }

    func set(_ value: Double) { lock.withLock { numbers.value = value } }

    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        guard kind == .summary else { return set(value) }
        lock.withLock {
            numbers.value += value
            numbers.count += 1
        }
    }

    func recordNanoseconds(_ duration: Int64) {
        let seconds = Double(duration) / 1e9
        let bucket = PrometheusMetrics.buckets.firstIndex { seconds <= $0 } ?? PrometheusMetrics.buckets.count
        lock.withLock {
            numbers.value += seconds
            numbers.count += 1
            numbers.buckets[bucket] += 1
        }
    }

    func write(_ name: String, to text: inout PrometheusText) {
        let numbers = lock.withLock { self.numbers }
        guard kind == .summary || kind == .histogram else { return text.sample(name, labels, numbers.value) }
        if kind == .histogram {
            var count = 0
            for (bound, more) in zip(PrometheusMetrics.buckets + [.infinity], numbers.buckets) {
                count += more
                text.sample(name + "_bucket", labels + [("le", PrometheusText.number(bound))], Double(count))
            }
        }
        text.sample(name + "_sum", labels, numbers.value)
        text.sample(name + "_count", labels, Double(numbers.count))
    }
}
