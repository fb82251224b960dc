import Foundation
import GatewayCore
import XCTest

@testable import GatewayPage

final class PageTests: XCTestCase {
    func testThePageIsOneDocumentThatNeedsNothingElse() throws {
        let page = try TestPage()
        defer { page.end() }
        let first = try page.get("/")
        XCTAssertEqual(first.status, 200)
        XCTAssertEqual(first.fields["content-type"], "text/html; charset=utf-8")
        XCTAssertTrue(first.text.hasSuffix("</html>\n"))
        XCTAssertFalse(first.text.contains("http://") && !first.text.contains("http://www.w3.org/2000/svg"))
        XCTAssertFalse(first.text.contains("https://"))
        XCTAssertFalse(first.text.contains("innerHTML"))
        let policy = try XCTUnwrap(first.fields["content-security-policy"])
        XCTAssertTrue(policy.hasPrefix("default-src 'none'; script-src 'nonce-"))
        XCTAssertFalse(policy.contains("unsafe"))
        XCTAssertTrue(policy.contains("frame-ancestors 'none'"))
        let nonce = try XCTUnwrap(policy.split(separator: "'").first { $0.hasPrefix("nonce-") }).dropFirst(6)
        XCTAssertTrue(first.text.contains("<script nonce=\"\(nonce)\">"))
        XCTAssertFalse(first.text.contains("{{"))
        XCTAssertNotEqual(try page.get("/").fields["content-security-policy"], policy)
    }

    func testAllResponsesHaveTheFieldsThatProtectThem() throws {
        let page = try TestPage()
        defer { page.end() }
        for path in ["/", "/status", "/metrics", "/healthz", "/nothing", "/command"] {
            let response = try page.get(path)
            XCTAssertEqual(response.fields["x-content-type-options"], "nosniff", path)
            XCTAssertEqual(response.fields["x-frame-options"], "DENY", path)
            XCTAssertEqual(response.fields["cache-control"], "no-store", path)
            XCTAssertNotNil(response.fields["content-security-policy"], path)
            XCTAssertNil(response.fields["access-control-allow-origin"], path)
        }
    }

    func testTheStatusIsTheSnapshotOfTheBoard() throws {
        let page = try TestPage()
        defer { page.end() }
        page.board.reported(device(1), name: "<script>alert(1)</script>", strength: -50)
        page.board.decoded(device(1), [StatusReading(name: "temperature", value: .number(21.5), unit: "°C")])
        page.board.decoded(device(1), [StatusReading(name: "odd", value: .number(.nan))])
        page.board.link(device(1), .connected)
        page.board.value(device(1), service: "180f", characteristic: "2a19", text: "64 %")
        page.board.refused("write c0ffee000001/180f/2a19", why: "not in the list")
        page.board.queue(depth: 3, stored: 10, acknowledged: 6, dropped: 1)
        page.board.broker(connected: false, reason: "refused")
        let response = try page.get("/status")
        XCTAssertEqual(response.fields["content-type"], "application/json")
        let status = try JSONDecoder().decode(StatusSnapshot.self, from: response.body)
        XCTAssertEqual(status.devices.first?.name, "<script>alert(1)</script>")
        XCTAssertEqual(status.devices.first?.address, "C0:FF:EE:00:00:01")
        XCTAssertEqual(status.devices.first?.readings.map(\.value), [.number(21.5), .text("nan")])
        XCTAssertEqual(status.devices.first?.link, .connected)
        XCTAssertEqual(status.values.map(\.text), ["64 %"])
        XCTAssertEqual(status.refusals.map(\.why), ["not in the list"])
        XCTAssertEqual(status.queue.depth, 3)
        XCTAssertEqual(status.broker.reason, "refused")
    }

    func testOtherPathsAndMethodsAreRefused() throws {
        let page = try TestPage()
        defer { page.end() }
        XCTAssertEqual(try page.get("/healthz").text, "ok\n")
        XCTAssertEqual(try page.get("/healthz?a=b").status, 200)
        XCTAssertEqual(try page.get("/../etc/passwd").status, 404)
        XCTAssertEqual(try page.get("/%2e%2e/etc/passwd").status, 404)
        for method in ["PUT", "POST", "DELETE", "OPTIONS", "TRACE"] {
            let response = try page.exchange("\(method) /status HTTP/1.1\r\nHost: localhost\r\n\r\n")
            XCTAssertEqual(response.status, 405, method)
            XCTAssertEqual(response.fields["allow"], "GET, HEAD", method)
        }
        XCTAssertEqual(try page.get("/command").status, 405)
        let head = try page.exchange("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        XCTAssertEqual(head.status, 200)
        XCTAssertEqual(head.body.count, 0)
        XCTAssertGreaterThan(Int(head.fields["content-length"] ?? "") ?? 0, 1000)
    }

    func testAPageOfAnotherSiteCannotReachItByItsOwnName() throws {
        let page = try TestPage(configure: { $0.hosts = ["Gateway.example"] })
        defer { page.end() }
        func status(_ host: String?) throws -> Int {
            let field = host.map { "Host: \($0)\r\n" } ?? ""
            return try page.exchange("GET /status HTTP/1.1\r\n\(field)\r\n").status
        }
        for host in ["localhost", "localhost:8080", "127.0.0.1:\(page.port)", "[::1]", "[::1]:80", "GATEWAY.example:1"]
        {
            XCTAssertEqual(try status(host), 200, host)
        }
        for host in [
            "attacker.example", "attacker.example:8080", "localhost.attacker.example", "", ":", "[::1", "127.0.0.2",
        ] {
            XCTAssertEqual(try status(host), 421, host)
        }
        XCTAssertEqual(try status(nil), 400)
        let refusal = try page.exchange("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
        XCTAssertTrue(refusal.text.contains("page.hosts"), refusal.text)
    }

    func testEventsBeginWithEverythingAndContinueWithChanges() throws {
        let page = try TestPage()
        defer { page.end() }
        page.board.reported(device(1), name: "one", strength: -50)
        page.board.reported(device(2), name: "two", strength: -60)
        let client = try Client(port: page.port)
        try client.send(Data("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
        try client.read(until: "\"whole\":true")
        page.board.reported(device(2), name: nil, strength: -60)
        page.board.refused("write", why: "no")
        try client.read(until: "\"whole\":false")
        try client.read(until: "\"what\"")
        while client.received.suffix(2) != Data("\n\n".utf8) { _ = try client.read() }
        let head = String(decoding: client.received.prefix(500), as: UTF8.self)
        XCTAssertTrue(head.contains("Content-Type: text/event-stream"), head)
        let events = try client.takeEvents()
        XCTAssertEqual(events.first?.name, "snapshot")
        XCTAssertEqual(events.first?.snapshot.devices.count, 2)
        let changes = events.dropFirst()
        XCTAssertTrue(changes.allSatisfy { $0.name == "changes" && !$0.snapshot.whole })
        XCTAssertEqual(Set(changes.flatMap(\.snapshot.devices).map(\.device)), ["c0ffee000002"])
        XCTAssertEqual(changes.flatMap(\.snapshot.refusals).map(\.what), ["write"])
    }

    func testOfAHundredViewersTwentyAreServed() throws {
        let page = try TestPage()
        defer { page.end() }
        var viewers: [Client] = []
        var refused = 0
        for _ in 0..<100 {
            let client = try Client(port: page.port)
            try client.send(Data("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
            try client.read(until: "\r\n\r\n")
            if client.received.starts(with: Data("HTTP/1.1 200".utf8)) {
                viewers.append(client)
            } else {
                XCTAssertTrue(client.received.starts(with: Data("HTTP/1.1 503".utf8)))
                refused += 1
            }
        }
        XCTAssertEqual(viewers.count, 20)
        XCTAssertEqual(refused, 80)
        XCTAssertEqual(try page.get("/healthz").status, 200)
        page.board.refused("marker", why: "all receive it")
        for viewer in viewers { try viewer.read(until: "marker") }
        viewers.removeLast(5)
        try page.wait("The places of viewers that have left are not free again.") {
            try page.get("/metrics").text.contains("bluecap_gateway_page_viewers 15\n")
        }
    }

    func testAViewerThatReadsNothingIsDropped() throws {
        var limits = Listener.Limits()
        limits.write = .seconds(1)
        let page = try TestPage(limits: limits)
        defer { page.end() }
        for number in 0..<2_000 { page.board.reported(device(number), name: "device \(number)", strength: -60) }
        let client = try Client(port: page.port, receiveBuffer: 4_096)
        try client.send(Data("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
        try page.wait("There is no viewer.") { try page.get("/metrics").text.contains("page_viewers 1\n") }
        // The snapshot and the changes fill the buffers of the kernel.
        let filling = Task {
            while !Task.isCancelled {
                for number in 0..<2_000 { page.board.reported(device(number), name: nil, strength: -60) }
                try await Task.sleep(for: .milliseconds(200))
            }
        }
        defer { filling.cancel() }
        try page.wait("The viewer was not dropped.", seconds: 30) {
            try page.get("/metrics").text.contains("page_viewers 0\n")
        }
    }

    func testAPortInUseIsAClearError() async throws {
        let page = try TestPage()
        defer { page.end() }
        var configuration = GatewayPage.Configuration()
        configuration.port = page.port
        let second = try GatewayPage(configuration: configuration, board: page.board, metrics: page.metrics)
        do {
            try await second.run()
            XCTFail("Two pages listen on one port.")
        } catch let error as GatewayPageError {
            XCTAssertTrue("\(error)".contains("127.0.0.1:\(page.port), because another program does"), "\(error)")
        }
    }

    func testWhatCannotBeUsedIsAClearError() {
        func error(_ change: (inout GatewayPage.Configuration) -> Void) -> GatewayPageError? {
            var configuration = GatewayPage.Configuration()
            change(&configuration)
            let board = StatusBoard(gateway: "g", version: "1", broker: "b")
            do {
                _ = try GatewayPage(configuration: configuration, board: board, metrics: PrometheusMetrics())
                return nil
            } catch {
                return error
            }
        }
        XCTAssertEqual(error { $0.address = "kitchen" }, .address("kitchen"))
        XCTAssertEqual(error { $0.address = "" }, .address(""))
        XCTAssertEqual(error { $0.token = "short" }, .token)
        XCTAssertEqual(error { $0.token = "with a space, which is no token" }, .token)
        XCTAssertNil(error { $0.address = "::1" })
        XCTAssertNil(error { $0.address = "localhost" })
    }

    func testCancellationEndsAllConnectionsAndThePage() throws {
        let page = try TestPage()
        let viewer = try Client(port: page.port)
        try viewer.send(Data("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
        try viewer.read(until: "\"whole\":true")
        let half = try Client(port: page.port)
        try half.send(Data("GET /st".utf8))
        page.end()
        _ = try viewer.readToEnd()
        _ = try half.readToEnd()
        XCTAssertThrowsError(try Client(port: page.port))
    }

    func testThePageIsServedOnIPv6() throws {
        let page: TestPage
        do {
            page = try TestPage(configure: { $0.address = "::1" })
        } catch {
            throw XCTSkip("This machine has no IPv6 loopback address: \(error)")
        }
        page.end()
    }
}
