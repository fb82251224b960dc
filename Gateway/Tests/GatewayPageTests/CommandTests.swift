import Foundation
import GatewayCore
import XCTest

@testable import GatewayPage

final class CommandTests: XCTestCase {
    private static let token = "correct-horse-battery"

    private func post(
        _ page: TestPage, token: String? = token, type: String = "application/json", body: String = "{}"
    ) throws -> TestResponse {
        try page.exchange(Self.request(token: token, type: type, body: body))
    }

    private static func request(token: String?, type: String = "application/json", body: String = "{}") -> String {
        let authorization = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
        return "POST /command HTTP/1.1\r\nHost: localhost\r\n\(authorization)Content-Type: \(type)\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    func testWithoutATokenThePageIsReadOnly() throws {
        let page = try TestPage(command: { _ in Data("{}".utf8) })
        defer { page.end() }
        let response = try post(page)
        XCTAssertEqual(response.status, 403)
        XCTAssertTrue(response.text.contains("page.tokenFile"), response.text)
    }

    func testACommandWithTheTokenIsCarriedOut() throws {
        let page = try TestPage(command: { Data("{\"echo\":".utf8) + $0 + Data("}".utf8) }) { $0.token = Self.token }
        defer { page.end() }
        let response = try post(page, type: "application/json; charset=utf-8", body: "{\"id\":\"1\"}")
        XCTAssertEqual(response.status, 200)
        XCTAssertEqual(response.fields["content-type"], "application/json")
        XCTAssertEqual(response.text, "{\"echo\":{\"id\":\"1\"}}")
    }

    func testWrongTokensAndTypesAreRefused() throws {
        let page = try TestPage(command: { _ in
            XCTFail("A command without the token was carried out.")
            return Data()
        }) { $0.token = Self.token }
        defer { page.end() }
        for token in [nil, "", "wrong", Self.token + "x", String(Self.token.dropLast()), Self.token + Self.token] {
            let response = try post(page, token: token)
            XCTAssertEqual(response.status, 401, token ?? "no token")
            XCTAssertEqual(response.fields["www-authenticate"], "Bearer")
        }
        XCTAssertEqual(try post(page, type: "text/plain").status, 415)
        XCTAssertEqual(try post(page, body: String(repeating: "a", count: 20_000)).status, 413)
    }

    func testCommandsAreBoundedInNumberAndTime() throws {
        let page = try TestPage(command: { _ in
            try? await Task.sleep(for: .seconds(60))
            return Data()
        }) {
            $0.token = Self.token
            $0.commandTime = .seconds(2)
        }
        defer { page.end() }
        let clients = try (0..<12).map { _ in try Client(port: page.port) }
        for client in clients { try client.send(Data(Self.request(token: Self.token).utf8)) }
        let ends = try clients.map { try TestResponse($0.readToEnd()).status }
        XCTAssertEqual(ends.filter { $0 == 504 }.count, 8)
        XCTAssertEqual(ends.filter { $0 == 429 }.count, 4)
    }

    func testTokensAreEqualOnlyIfAllBytesAre() {
        XCTAssertTrue(GatewayPage.isEqual("abcdef", "abcdef"))
        for text in ["", "abcde", "abcdeg", "bbcdef", "abcdefabcdef", "abcdeff"] {
            XCTAssertFalse(GatewayPage.isEqual(text, "abcdef"), text)
        }
    }
}
