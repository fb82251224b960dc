import Foundation
import GatewayBroker
import GatewayCore
import GatewayPage
import GatewayTestSupport
import XCTest

/// The page of the metrics is what a running gateway exports.
final class MetricsTests: XCTestCase {
    private let documentation = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Documentation")

    func testThePageOfTheMetricsIsUpToDate() throws {
        var page = """
            # The metrics of the gateway

            `GET /metrics` of the page returns them in Prometheus' text format, version 0.0.4. Counters begin at 0 when the gateway is started, if
            nothing else is said here. Each metric exists from the start, with 0 for each value of its label.

            ```yaml
            scrape_configs:
              - job_name: bluecap-gateway
                static_configs:
                  - targets: ["127.0.0.1:8080"]
            ```

            | metric | type | labels | meaning |
            |---|---|---|---|

            """
        for metric in GatewayMetric.all {
            let labels = metric.labels.map { "`\($0)`" }.joined(separator: ", ")
            page += "| `\(metric.name)` | \(metric.kind) | \(labels) | \(metric.meaning) |\n"
        }
        page += """
            | `bluecap_central_…` | | | The statistics of the library's manager, by the names of [its guide](../../Documentation/Central.md). |

            The gateway records with swift-metrics, and so do libraries that it uses. A summary of what to watch:

            | question | expression |
            |---|---|
            | Is the gateway connected? | `bluecap_gateway_broker_connected == 0` for some minutes |
            | Does the broker take what is received? | `bluecap_gateway_queue_oldest_seconds > 60` |
            | Was anything lost? | `increase(bluecap_gateway_values_dropped_total[1h]) + increase(bluecap_gateway_values_missed_total[1h]) > 0` |
            | Do links break? | `increase(bluecap_gateway_gaps_total{reason="linkLost"}[1h]) > 10` |

            """
        let url = documentation.appending(path: "Metrics.md")
        if ProcessInfo.processInfo.environment["WRITE"] == "1" { try Data(page.utf8).write(to: url) }
        XCTAssertEqual(
            try String(contentsOf: url, encoding: .utf8), page,
            "Metrics.md is not up to date: run this test with WRITE=1")
        XCTAssertEqual(GatewayMetric.all.map(\.name), GatewayMetric.all.map(\.name).sorted())
    }

    func testARunningGatewayExportsWhatThePageSays() async throws {
        let stage = try ProgramStage()
        defer { stage.end() }
        let broker = try await MosquittoBroker()
        let port = try Loopback.freePort()
        let subscriber = try await Subscriber([broker.address], ["bluecap/attic/value/#", "bluecap/attic/reply"])
        let process = try stage.start(
            """
            name: attic
            broker: {addresses: ["\(broker.address)"]}
            peripherals: [{name: Tag, characteristics: [{service: 180D, uuid: 2A37}]}]
            page: {port: \(port)}
            claims: {enabled: false}
            """)
        _ = try await subscriber.messages(atLeast: 10, limit: .seconds(30))
        try subscriber.transport.publish(
            BrokerMessage(topic: "bluecap/attic/command", payload: Data("{}".utf8)), token: 1)
        try await eventually("the reply") {
            await subscriber.messages.contains { $0.topic == "bluecap/attic/reply" }
        }
        var samples: [Substring] = []
        func value(_ name: String) -> Double? {
            samples.first { $0.hasPrefix(name + " ") }.flatMap { Double($0.dropFirst(name.count + 1)) }
        }
        try await eventually("the metrics") {
            let text = try XCTUnwrap(Loopback.get("/metrics", port: port))
            samples = String(decoding: text, as: UTF8.self).split(separator: "\n")
            return value("bluecap_gateway_values_acknowledged_total") ?? 0 >= 10
                && samples.contains { $0.hasPrefix("# TYPE bluecap_central_") }
        }
        XCTAssertEqual(value("bluecap_gateway_broker_connected"), 1)
        XCTAssertEqual(value("bluecap_gateway_broker_connections_total"), 1)
        XCTAssertEqual(value("bluecap_gateway_commands_total{result=\"invalidRequest\"}"), 1)
        XCTAssertEqual(value("bluecap_gateway_command_seconds_count"), 1)
        XCTAssertEqual(value("bluecap_gateway_gaps_total{reason=\"restarted\"}"), 1)
        XCTAssertEqual(value("bluecap_gateway_links"), 1)
        XCTAssertEqual(value("bluecap_metrics_refused_total"), 0)
        let (sent, stored) = (
            try XCTUnwrap(value("bluecap_gateway_values_sent_total")),
            try XCTUnwrap(value("bluecap_gateway_values_stored_total"))
        )
        XCTAssertGreaterThanOrEqual(sent, 10)
        XCTAssertGreaterThanOrEqual(stored, 10)

        var kinds: [String: String] = [:]
        for line in samples where line.hasPrefix("# TYPE ") {
            let words = line.split(separator: " ")
            kinds[String(words[2])] = String(words[3])
        }
        let central = try String(
            contentsOf: documentation.appending(path: "../../Documentation/Central.md"), encoding: .utf8)
        for name in kinds.keys where name.hasPrefix("bluecap_central_") {
            // Some names are there by their beginnings.
            let name = name.dropFirst("bluecap_central_".count)
            XCTAssertTrue(
                central.contains("`\(name)`") || central.contains("`\(name.prefix { $0 != "_" })_…`"),
                "\(name) is not in Central.md")
        }
        for name in kinds.keys where name.hasPrefix("bluecap_central_") {
            kinds[name] = nil
        }
        XCTAssertEqual(
            kinds, Dictionary(uniqueKeysWithValues: GatewayMetric.all.map { ($0.name, $0.kind) }), "Metrics.md")
        for metric in GatewayMetric.all {
            for label in metric.labels {
                XCTAssertTrue(
                    samples.contains { $0.hasPrefix(metric.name + "{") && $0.contains("\(label)=") },
                    "\(metric.name) has no label \(label)")
            }
            XCTAssertTrue(samples.contains { $0.hasPrefix("# HELP \(metric.name) ") }, metric.name)
        }
        try await process.terminate(limit: .seconds(30))
        XCTAssertEqual(process.exitStatus, 0)
        await subscriber.stop()
    }
}
