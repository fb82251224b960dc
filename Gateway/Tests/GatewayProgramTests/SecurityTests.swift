import Foundation
import GatewayBroker
import GatewayCore
import GatewayTestSupport
import XCTest

/// What the page on security says.
final class SecurityTests: XCTestCase {
    private let gateway = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private func page() throws -> String {
        try String(contentsOf: gateway.appending(path: "Documentation/Security.md"), encoding: .utf8)
    }

    func testEachTestOfThePageExists() throws {
        var sources = ""
        let folder = gateway.appending(path: "Tests")
        for path in try XCTUnwrap(FileManager.default.subpaths(atPath: folder.path())) where path.hasSuffix(".swift") {
            sources += try String(contentsOf: folder.appending(path: path), encoding: .utf8)
        }
        let names = try page().matches(of: /`(\w+)\.(test\w+)`/)
        XCTAssertGreaterThan(names.count, 25)
        for name in names {
            XCTAssertTrue(sources.contains("class \(name.1): XCTestCase"), "\(name.1)")
            XCTAssertTrue(sources.contains("func \(name.2)("), "\(name.0)")
        }
        let rows = try page().split(separator: "\n").filter { $0.hasPrefix("| a") || $0.hasPrefix("| the ") }
        for row in rows where !row.contains("a thief of the disk") && row.split(separator: "|").count > 4 {
            XCTAssertTrue(row.contains(".test"), "\(row)")
        }
    }

    func testTheRulesForTheBrokerAreEnoughAndKeepOthersOut() async throws {
        let text = try page()
        let begin = try XCTUnwrap(text.range(of: "```\nuser attic\n"))
        let rules = "user attic\n" + text[begin.upperBound...].components(separatedBy: "\n```")[0]
        var options = MosquittoBroker.Options()
        options.users = ["attic": "a", "console": "c", "homeassistant": "h", "stranger": "s"]
        options.accessControl = rules.components(separatedBy: "\n")
        let broker = try await MosquittoBroker(options)
        func subscriber(_ user: String, _ filters: String...) async throws -> Subscriber {
            try await Subscriber([broker.address], filters) { ($0.user, $0.password) = (user, String(user.prefix(1))) }
        }
        let home = try await subscriber("homeassistant", "bluecap/#", "homeassistant/#")
        let console = try await subscriber("console", "bluecap/attic/reply", "bluecap/reply/console")
        let stranger = try await subscriber("stranger", "#")
        let stage = try ProgramStage()
        defer { stage.end() }
        let password = try stage.directory.write("password", "a\n")
        let process = try stage.start(
            """
            name: attic
            broker: {addresses: ["\(broker.address)"], user: attic, passwordFile: \(password)}
            peripherals: [{name: Tag, characteristics: [{service: 180D, uuid: 2A37}]}]
            commands: {allow: [{peripheral: Tag, read: ["180D/2A38"]}]}
            page: {enabled: false}
            homeAssistant: {enabled: true}
            """)
        // With claims, a link follows only after the gateway has received its own claim.
        let wanted = [
            "bluecap/attic/state", "bluecap/attic/advertisement/", "bluecap/attic/link/", "bluecap/attic/value/",
            "bluecap/attic/gap/", "bluecap/claim/", "bluecap/device/", "homeassistant/",
        ]
        try await eventually(limit: .seconds(30), "all kinds of messages") {
            let topics = await home.messages.map(\.topic)
            return wanted.allSatisfy { kind in topics.contains { $0.hasPrefix(kind) } }
        }
        func send(_ user: Subscriber, _ identifier: String) throws {
            let command = """
                {"id":"\(identifier)","command":"read","peripheral":"Tag","service":"180D","characteristic":"2A38",\
                "replyTo":"bluecap/reply/console"}
                """
            try user.transport.publish(
                BrokerMessage(topic: "bluecap/attic/command", payload: Data(command.utf8)), token: 1)
        }
        try send(stranger, "stranger")
        try send(home, "home")
        try send(console, "console")
        let replies = try await console.messages(atLeast: 1, limit: .seconds(20))
        let reply = try JSONDecoder().decode(CommandReply.self, from: replies[0].payload)
        XCTAssertEqual(reply.id, "console")
        XCTAssertEqual(reply.result?.raw, "01")
        let count = await console.messages.count
        XCTAssertEqual(count, 1)
        let seen = await stranger.messages
        XCTAssertEqual(seen, [])
        try await process.terminate(limit: .seconds(30))
        XCTAssertFalse(process.text.contains("error"), process.text)
        for user in [home, console, stranger] { await user.stop() }
    }

    func testARetainedCommandIsIgnored() async throws {
        let broker = try await MosquittoBroker()
        let user = try await Subscriber([broker.address], ["bluecap/attic/reply", "bluecap/attic/state"])
        func send(_ identifier: String, isRetained: Bool) throws {
            let command = "{\"id\":\"\(identifier)\",\"command\":\"scanOff\"}"
            try user.transport.publish(
                BrokerMessage(topic: "bluecap/attic/command", payload: Data(command.utf8), isRetained: isRetained),
                token: 1)
        }
        try send("retained", isRetained: true)
        let stage = try ProgramStage()
        defer { stage.end() }
        _ = try stage.start(
            """
            name: attic
            broker: {addresses: ["\(broker.address)"]}
            commands: {scan: true}
            page: {enabled: false}
            """)
        try await eventually(limit: .seconds(20), "the gateway") {
            await user.messages.contains { $0.topic == "bluecap/attic/state" }
        }
        try send("new", isRetained: false)
        try await eventually("the reply") { await user.messages.contains { $0.topic == "bluecap/attic/reply" } }
        let replies = try await user.messages.filter { $0.topic == "bluecap/attic/reply" }
            .map { try JSONDecoder().decode(CommandReply.self, from: $0.payload).id }
        XCTAssertEqual(replies, ["new"])
        await user.stop()
    }
}
