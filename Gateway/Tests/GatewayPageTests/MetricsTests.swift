import CoreMetrics
import Foundation
import GatewayCore
import XCTest

@testable import GatewayPage

final class MetricsTests: XCTestCase {
    func testAllKindsOfMetricsAreWritten() throws {
        let metrics = PrometheusMetrics()
        Counter(label: "a.counter", dimensions: [("device", "x\"\\\n\u{1F600}")], factory: metrics).increment(by: 3)
        Counter(label: "a.counter", dimensions: [("device", "x\"\\\n\u{1F600}")], factory: metrics).increment(by: 4)
        FloatingPointCounter(label: "seconds", factory: metrics).increment(by: 0.25)
        FloatingPointCounter(label: "seconds", factory: metrics).increment(by: 0.25)
        Gauge(label: "1gauge", dimensions: [("le", "a"), ("9", "b")], factory: metrics).record(-2.5)
        Meter(label: "meter", factory: metrics).set(Double.infinity)
        Recorder(label: "sizes", factory: metrics).record(10)
        Recorder(label: "sizes", factory: metrics).record(20)
        let timer = CoreMetrics.Timer(label: "latency", factory: metrics)
        timer.recordMilliseconds(3)
        timer.recordSeconds(100)
        let samples = try parse(text(of: metrics))
        XCTAssertEqual(samples["a_counter{device=x\"\\\n\u{1F600}}"], 7)
        XCTAssertEqual(samples["seconds"], 0.5)
        XCTAssertEqual(samples["_1gauge{_9=b,le_=a}"], -2.5)
        XCTAssertEqual(samples["meter"], .infinity)
        XCTAssertEqual(samples["sizes_sum"], 30)
        XCTAssertEqual(samples["sizes_count"], 2)
        XCTAssertEqual(samples["latency_seconds_bucket{le=0.0025}"], 0)
        XCTAssertEqual(samples["latency_seconds_bucket{le=0.005}"], 1)
        XCTAssertEqual(samples["latency_seconds_bucket{le=30}"], 1)
        XCTAssertEqual(samples["latency_seconds_bucket{le=+Inf}"], 2)
        XCTAssertEqual(samples["latency_seconds_count"], 2)
        XCTAssertEqual(try XCTUnwrap(samples["latency_seconds_sum"]), 100.003, accuracy: 1e-9)
        XCTAssertEqual(samples["bluecap_metrics_refused_total"], 0)
    }

    func testMetricsAreBoundedInNumber() throws {
        var limits = PrometheusMetrics.Limits()
        (limits.names, limits.series) = (10, 5)
        let metrics = PrometheusMetrics(limits: limits)
        for number in 0..<20 {
            Counter(label: "c", dimensions: [("n", "\(number)")], factory: metrics).increment()
            Counter(label: "name\(number)", factory: metrics).increment()
        }
        let samples = try parse(text(of: metrics))
        XCTAssertEqual(samples.keys.filter { $0.hasPrefix("c{") }.count, 5)
        XCTAssertEqual(samples.keys.filter { $0.hasPrefix("name") }.count, 9)
        XCTAssertEqual(samples["bluecap_metrics_refused_total"], 26)
    }

    func testTwoKindsOfOneNameAreNotMixed() throws {
        let metrics = PrometheusMetrics()
        Counter(label: "x", factory: metrics).increment()
        Gauge(label: "x", factory: metrics).record(5)
        Counter(label: "t_seconds_count", factory: metrics).increment()
        CoreMetrics.Timer(label: "t", factory: metrics).recordSeconds(1)
        let samples = try parse(text(of: metrics))
        XCTAssertEqual(samples["x"], 1)
        XCTAssertEqual(samples["t_seconds_count"], 1)
        XCTAssertNil(samples["t_seconds_sum"])
        XCTAssertEqual(samples["bluecap_metrics_refused_total"], 2)
    }

    func testADestroyedMetricIsNoLongerWritten() throws {
        let metrics = PrometheusMetrics()
        let counter = Counter(label: "x", factory: metrics)
        counter.increment()
        XCTAssertEqual(try parse(text(of: metrics))["x"], 1)
        counter.destroy()
        XCTAssertNil(try parse(text(of: metrics))["x"])
        Counter(label: "x", factory: metrics).increment(by: 2)
        XCTAssertEqual(try parse(text(of: metrics))["x"], 2)
    }

    func testThePageHasTheNumbersOfTheBoard() throws {
        let page = try TestPage()
        defer { page.end() }
        page.board.reported(device(1), name: nil, strength: -50)
        page.board.reported(device(1), name: nil, strength: -50)
        page.board.link(device(1), .connected)
        page.board.broker(connected: true)
        page.board.queue(depth: 3, stored: 10, acknowledged: 6, dropped: 1)
        _ = try page.get("/healthz")
        let response = try page.get("/metrics")
        XCTAssertEqual(response.fields["content-type"], "text/plain; version=0.0.4; charset=utf-8")
        let samples = try parse(response.text)
        XCTAssertEqual(samples["bluecap_gateway_info{gateway=kitchen,version=1.0}"], 1)
        XCTAssertEqual(samples["bluecap_gateway_broker_connected"], 1)
        XCTAssertEqual(samples["bluecap_gateway_reports_total"], 2)
        XCTAssertEqual(samples["bluecap_gateway_devices"], 1)
        XCTAssertEqual(samples["bluecap_gateway_links"], 1)
        XCTAssertEqual(samples["bluecap_gateway_queue_depth"], 3)
        XCTAssertEqual(samples["bluecap_gateway_values_stored_total"], 10)
        XCTAssertEqual(samples["bluecap_gateway_values_acknowledged_total"], 6)
        XCTAssertEqual(samples["bluecap_gateway_values_dropped_total"], 1)
        XCTAssertEqual(samples["bluecap_gateway_page_requests_total{status=200}"], 1)
        try checkWithPython(response.text)
    }

    /// Gives a text with all kinds of metrics and hostile values to the parser of Prometheus' Python client.
    func testPrometheusOwnParserAcceptsTheText() throws {
        let metrics = PrometheusMetrics()
        for name in ["plain", "x\"y\\z\nw\r,}", "\u{1F600}", ""] {
            Counter(label: "c", dimensions: [("n", name)], factory: metrics).increment()
            CoreMetrics.Timer(label: "t", dimensions: [("n", name)], factory: metrics).recordMilliseconds(20)
            Recorder(label: "r", dimensions: [("n", name)], factory: metrics).record(Double.nan)
        }
        try checkWithPython(text(of: metrics))
    }

    private func text(of metrics: PrometheusMetrics) -> String {
        var text = PrometheusText()
        metrics.write(to: &text)
        return text.text
    }

    private func checkWithPython(_ text: String) throws {
        let script = """
            import sys
            try:
                from prometheus_client.parser import text_string_to_metric_families
            except ImportError:
                sys.exit(77)
            families = list(text_string_to_metric_families(sys.stdin.buffer.read().decode()))
            print(sum(len(family.samples) for family in families))
            """
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        process.arguments = ["-c", script]
        let (input, output) = (Pipe(), Pipe())
        (process.standardInput, process.standardOutput) = (input, output)
        do {
            try process.run()
        } catch {
            throw XCTSkip("/usr/bin/python3 cannot be run: \(error)")
        }
        input.fileHandleForWriting.write(Data(text.utf8))
        try input.fileHandleForWriting.close()
        let result = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus != 77 else {
            throw XCTSkip("python3-prometheus-client is not installed.")
        }
        XCTAssertEqual(process.terminationStatus, 0)
        XCTAssertEqual(Int(result.trimmingCharacters(in: .whitespacesAndNewlines)), try parse(text).count)
    }

    /// Parses the text strictly, and returns the samples by names and labels.
    private func parse(_ text: String) throws -> [String: Double] {
        var samples: [String: Double] = [:]
        var types: [String: String] = [:]
        var current = ""
        XCTAssertTrue(text.hasSuffix("\n"))
        for line in text.split(separator: "\n", omittingEmptySubsequences: true) {
            if line.hasPrefix("# TYPE ") {
                let parts = line.split(separator: " ", omittingEmptySubsequences: false)
                XCTAssertEqual(parts.count, 4, "\(line)")
                current = String(parts[2])
                XCTAssertNil(types.updateValue(String(parts[3]), forKey: current), "\(current) occurs twice.")
                continue
            }
            if line.hasPrefix("# HELP ") { continue }
            let (name, labels, value) = try sample(String(line))
            var allowed = [current]
            switch types[current] {
            case "histogram": allowed = ["_bucket", "_sum", "_count"].map { current + $0 }
            case "summary": allowed = ["_sum", "_count"].map { current + $0 }
            default: break
            }
            XCTAssertTrue(allowed.contains(name), "\(line) does not belong to \(current).")
            let suffix = labels.isEmpty ? "" : "{" + labels.map { "\($0)=\($1)" }.joined(separator: ",") + "}"
            XCTAssertNil(samples.updateValue(value, forKey: name + suffix), "\(line) occurs twice.")
        }
        return samples
    }

    private func sample(_ line: String) throws -> (String, [(String, String)], Double) {
        var rest = line[...]
        func name() throws -> String {
            let name = rest.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_" || $0 == ":") }
            guard let first = name.first, !first.isNumber else { throw TestFailure(text: "no name: \(line)") }
            rest = rest[name.endIndex...]
            return String(name)
        }
        func take(_ character: Character) throws {
            guard rest.first == character else { throw TestFailure(text: "no \(character) at \(rest): \(line)") }
            rest = rest.dropFirst()
        }
        let metric = try name()
        var labels: [(String, String)] = []
        if rest.first == "{" {
            try take("{")
            while rest.first != "}" {
                if !labels.isEmpty { try take(",") }
                let label = try name()
                try take("=")
                try take("\"")
                var value = ""
                while let character = rest.first, character != "\"" {
                    rest = rest.dropFirst()
                    guard character == "\\" else {
                        value.append(character)
                        continue
                    }
                    switch rest.first {
                    case "n": value.append("\n")
                    case "\\": value.append("\\")
                    case "\"": value.append("\"")
                    default: throw TestFailure(text: "an unknown escape: \(line)")
                    }
                    rest = rest.dropFirst()
                }
                try take("\"")
                labels.append((label, value))
            }
            try take("}")
        }
        try take(" ")
        guard let value = Double(rest) else { throw TestFailure(text: "no number: \(line)") }
        return (metric, labels, value)
    }
}
