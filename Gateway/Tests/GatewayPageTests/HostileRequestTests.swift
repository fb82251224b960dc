import Foundation
import GatewayCore
import GatewayTestSupport
import XCTest

@testable import GatewayPage

final class HostileRequestTests: XCTestCase {
    func testRequestsThatAreTooLongAreRefused() throws {
        let page = try TestPage()
        defer { page.end() }
        let long = String(repeating: "a", count: 1_000_000)
        XCTAssertEqual(try page.get("/", fields: ["X: \(long)"]).status, 431)
        XCTAssertEqual(try page.get("/\(long)").status, 431)
        XCTAssertEqual(try page.exchange(long).status, 431)
        XCTAssertEqual(try page.get("/", fields: (0..<100).map { "X-\($0): a" }).status, 431)
        XCTAssertEqual(try page.get("/", fields: ["Content-Length: 1000000000000"]).status, 413)
        XCTAssertEqual(try page.get("/", fields: ["Content-Length: 99999999999999999999"]).status, 400)
        XCTAssertEqual(try page.get("/healthz").status, 200)
    }

    func testRequestsThatCanBeMisunderstoodAreRefused() throws {
        let page = try TestPage()
        defer { page.end() }
        let bad = [
            "GET / HTTP/1.1\nHost: localhost\n\r\n\r\n", "GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\n a: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", "GET http://localhost/ HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", "\r\n\r\n", "GET\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
            "GET /\u{1F600} HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /\0 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        ]
        for request in bad { XCTAssertEqual(try page.exchange(request).status, 400, request) }
        XCTAssertEqual(try page.exchange("GET / HTTP/2.0\r\nHost: localhost\r\n\r\n").status, 505)
        XCTAssertEqual(
            try page.exchange("POST /command HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n").status,
            411)
    }

    func testASlowRequestGetsNoMoreThanItsTime() throws {
        var limits = Listener.Limits()
        limits.request = .milliseconds(500)
        let page = try TestPage(limits: limits)
        defer { page.end() }
        let client = try Client(port: page.port)
        let sending = Thread {
            // Each byte comes in time for itself; the request does not. Sending fails once the page has closed.
            while (try? client.send(Data("a".utf8))) != nil { usleep(50_000) }
        }
        sending.start()
        let begin = Date()
        let response = try TestResponse(client.readToEnd())
        XCTAssertEqual(response.status, 408)
        XCTAssertLessThan(Date().timeIntervalSince(begin), 8)
    }

    func testHalfRequestsAndIdleConnectionsAreClosed() throws {
        var limits = Listener.Limits()
        limits.request = .seconds(1)
        let page = try TestPage(limits: limits)
        defer { page.end() }
        for length in stride(from: 0, through: 30, by: 5) {
            let client = try Client(port: page.port)
            try client.send(Data("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8.prefix(length)))
            client.endSending()
            _ = try client.readToEnd()
        }
        // More idle connections than are allowed: those above the limit get 503 at once, and the others end.
        let idle = try (0..<150).map { _ in try Client(port: page.port) }
        let ends = try idle.map { try TestResponse($0.readToEnd()).status }
        XCTAssertEqual(ends.filter { $0 == 408 }.count + ends.filter { $0 == 503 }.count, 150)
        XCTAssertGreaterThanOrEqual(ends.filter { $0 == 408 }.count, 64)
        try page.wait("The places are not free again.") { try page.get("/healthz").status == 200 }
    }

    func testThePageSurvivesWhenDescriptorsRunOut() throws {
        let page = try TestPage()
        defer { page.end() }
        var before = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &before)
        defer { setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &before) }
        // The first connection is accepted while there are descriptors.
        func used() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count }
        let usedBefore = try used()
        var clients = [try Client(port: page.port)]
        try page.wait("The page does not accept.") { try used() >= usedBefore + 2 }
        let lowest = open("/dev/null", O_RDONLY)
        close(lowest)
        var few = rlimit(rlim_cur: rlim_t(lowest + 20), rlim_max: before.rlim_max)
        XCTAssertEqual(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &few), 0)
        // Both ends are in this process: a client takes a descriptor, and so does the page, until there are none.
        let end = Date() + 10
        while Date() < end, let client = try? Client(port: page.port) { clients.append(client) }
        XCTAssertGreaterThan(clients.count, 5)
        XCTAssertLessThan(clients.count, 40)
        // The oldest connection is served even now.
        try clients[0].send(Data("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
        XCTAssertEqual(try TestResponse(clients[0].readToEnd()).status, 200)
        clients = []
        try page.wait("The page does not serve any more.") { (try? page.get("/healthz").status) == 200 }
    }

    func testRandomBytesNeverEndThePage() throws {
        let seed = SeededNumbers.seed
        var random = SeededNumbers(seed)
        print("BLUECAP_SEED=\(seed)")
        let pieces = [
            "GET", " ", "/", "/status", "HTTP/1.1", "\r\n", "\n", "\r", "Host: localhost", ":", "Content-Length: ", "5",
            "\0", "\u{FF}", "Authorization: Bearer ", "POST /command", "\r\n\r\n", "\t", "é",
        ]
        let page = try TestPage(configure: { $0.token = "0123456789abcdef" })
        defer { page.end() }
        for _ in 0..<150 {
            let client = try Client(port: page.port)
            let count = Int.random(in: 0...30, using: &random)
            let text = (0..<count).map { _ in pieces.randomElement(using: &random)! }.joined()  // there are pieces
            try client.send(Data(text.utf8))
            client.endSending()
            _ = try client.readToEnd()
        }
        // The parser alone is quick enough for many more.
        for _ in 0..<20_000 {
            var parser = RequestParser(limits: .init(head: 100, fields: 4, body: 20))
            let count = Int.random(in: 0...12, using: &random)
            for _ in 0..<count {
                let piece = Array(pieces.randomElement(using: &random)!.utf8)  // there are pieces
                do {
                    guard let request = try parser.append(piece) else { continue }
                    XCTAssertTrue(request.path.hasPrefix("/"))
                    XCTAssertLessThanOrEqual(request.body.count, 20)
                } catch {
                    XCTAssertTrue((400...505).contains(error.status))
                }
                break
            }
        }
        XCTAssertEqual(try page.get("/healthz").status, 200)
    }

    func testARequestIsTheSameHoweverItIsDivided() throws {
        let text = "POST /command?x=y HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nX: 1\r\nx: 2\r\n\r\nhello"
        let bytes = Array(text.utf8)
        var whole = RequestParser(limits: .init())
        let expected = try XCTUnwrap(whole.append(bytes))
        XCTAssertEqual(expected.path, "/command")
        XCTAssertEqual(expected.fields["x"], "1, 2")
        XCTAssertEqual(expected.body, Array("hello".utf8))
        for size in 1..<bytes.count {
            var parser = RequestParser(limits: .init())
            var request: Request?
            for start in stride(from: 0, to: bytes.count, by: size) {
                XCTAssertNil(request)
                request = try parser.append(Array(bytes[start..<min(start + size, bytes.count)]))
            }
            XCTAssertEqual(request, expected, "in parts of \(size)")
        }
    }
}
