import CoreMetrics
import GatewayBroker
import GatewayCore
import GatewayStore
import Synchronization

/// What the program records through swift-metrics. The page has more metrics, from the status board.
final class GatewayMetrics: Sendable {
    private let results: [CommandReply.Code?: Counter]
    private let gaps: [GapPayload.Reason: Counter]
    private let commandTime: Timer
    private let missed, sent, repeated, connections, dropped: Counter
    private let bytes, oldest, inFlight: Gauge
    /// What was counted at the last report.
    private let reported = Mutex((courier: CourierStatistics(), connections: 0, dropped: 0))

    /// Creates all metrics, so that each is exported before its first event.
    init(_ factory: any MetricsFactory) {
        func counter(_ name: String, _ dimensions: [(String, String)] = []) -> Counter {
            Counter(label: "bluecap_gateway_\(name)", dimensions: dimensions, factory: factory)
        }
        func gauge(_ name: String) -> Gauge { Gauge(label: "bluecap_gateway_\(name)", factory: factory) }
        results = Dictionary(
            uniqueKeysWithValues: ([nil] + CommandReply.Code.allCases).map { code in
                (code, counter("commands_total", [("result", code?.rawValue ?? "succeeded")]))
            })
        gaps = Dictionary(
            uniqueKeysWithValues: GapPayload.Reason.allCases.map {
                ($0, counter("gaps_total", [("reason", $0.rawValue)]))
            })
        commandTime = Timer(label: "bluecap_gateway_command", factory: factory)
        missed = counter("values_missed_total")
        sent = counter("values_sent_total")
        repeated = counter("values_repeated_total")
        connections = counter("broker_connections_total")
        dropped = counter("broker_messages_dropped_total")
        (bytes, oldest, inFlight) = (gauge("queue_bytes"), gauge("queue_oldest_seconds"), gauge("values_in_flight"))
    }

    /// A reply was made.
    func replied(_ reply: CommandReply, after time: Duration) {
        results[reply.error?.code]?.increment()
        commandTime.recordNanoseconds(Int64(time / .nanoseconds(1)))
    }

    func gap(_ reason: GapPayload.Reason) { gaps[reason]?.increment() }

    func valuesMissed(_ count: Int) { missed.increment(by: count) }

    /// Records what was counted elsewhere.
    func report(_ courier: CourierStatistics, _ broker: MosquittoStatistics) {
        reported.withLock { last in
            sent.increment(by: courier.sent - last.courier.sent)
            repeated.increment(by: courier.repeated - last.courier.repeated)
            connections.increment(by: broker.connections - last.connections)
            dropped.increment(by: broker.dropped - last.dropped)
            last = (courier, broker.connections, broker.dropped)
        }
        bytes.record(courier.outbox.bytes)
        oldest.record((courier.outbox.oldestAge ?? .zero) / .seconds(1))
        inFlight.record(courier.inFlight)
    }
}
