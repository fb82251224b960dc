/// A metric of the gateway: what `GET /metrics` says about it, and the page of the documentation.
public struct GatewayMetric: Hashable, Sendable {
    public let name: String
    /// `counter`, `gauge` or `histogram`.
    public let kind: String
    /// The names of its labels.
    public let labels: [String]
    /// One sentence.
    public let meaning: String

    init(_ name: String, _ kind: String, _ meaning: String, labels: [String] = []) {
        (self.name, self.kind, self.labels, self.meaning) = (name, kind, labels, meaning)
    }

    /// All metrics of the gateway, in the order of their names. The library's begin with `bluecap_central_`.
    public static let all = [
        GatewayMetric("bluecap_gateway_broker_connected", "gauge", "1 if the broker is connected, otherwise 0."),
        GatewayMetric(
            "bluecap_gateway_broker_connections_total", "counter", "Connections that the broker has accepted."),
        GatewayMetric(
            "bluecap_gateway_broker_messages_dropped_total", "counter",
            "Messages from the broker that were dropped, because they were too large or too many."),
        GatewayMetric(
            "bluecap_gateway_command_seconds", "histogram",
            "The time from a command to its reply, also of commands that failed or were refused."),
        GatewayMetric(
            "bluecap_gateway_commands_total", "counter",
            "Commands by their results: `succeeded`, or the code of the error in the reply.", labels: ["result"]),
        GatewayMetric(
            "bluecap_gateway_devices", "gauge", "Devices with a report in the last 15 minutes, or with a link."),
        GatewayMetric(
            "bluecap_gateway_gaps_total", "counter",
            "Gaps in the values of characteristics, by the reasons of their messages.", labels: ["reason"]),
        GatewayMetric(
            "bluecap_gateway_info", "gauge", "Always 1; the labels have the name and the version.",
            labels: ["gateway", "version"]),
        GatewayMetric("bluecap_gateway_links", "gauge", "Devices with a link."),
        GatewayMetric(
            "bluecap_gateway_page_requests_total", "counter", "Requests to the page by the status of HTTP.",
            labels: ["status"]),
        GatewayMetric("bluecap_gateway_page_viewers", "gauge", "Open pages that receive events."),
        GatewayMetric("bluecap_gateway_queue_bytes", "gauge", "The size of the values in the store, in bytes."),
        GatewayMetric("bluecap_gateway_queue_depth", "gauge", "Values that the broker has not acknowledged."),
        GatewayMetric(
            "bluecap_gateway_queue_oldest_seconds", "gauge",
            "The age of the oldest value that the broker has not acknowledged; 0 if there is none."),
        GatewayMetric("bluecap_gateway_reports_total", "counter", "Received advertisements."),
        GatewayMetric(
            "bluecap_gateway_start_time_seconds", "gauge", "When the gateway was started, in seconds since 1970."),
        GatewayMetric(
            "bluecap_gateway_values_acknowledged_total", "counter", "Values that the broker has acknowledged."),
        GatewayMetric(
            "bluecap_gateway_values_dropped_total", "counter",
            "Values that the limits of the store have dropped, since the store was made."),
        GatewayMetric("bluecap_gateway_values_in_flight", "gauge", "Values that are sent and not acknowledged."),
        GatewayMetric(
            "bluecap_gateway_values_missed_total", "counter",
            "Values that were not stored, because more arrived than the store could take."),
        GatewayMetric(
            "bluecap_gateway_values_repeated_total", "counter", "Values that were sent again, marked as repeated."),
        GatewayMetric("bluecap_gateway_values_sent_total", "counter", "Values that were sent, with those sent again."),
        GatewayMetric("bluecap_gateway_values_stored_total", "counter", "Values that were stored."),
        GatewayMetric(
            "bluecap_metrics_refused_total", "counter",
            "Metrics that were not kept: too many, or two kinds of one name."),
    ]

    static let help = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0.meaning.replacing("`", with: "")) })
}
