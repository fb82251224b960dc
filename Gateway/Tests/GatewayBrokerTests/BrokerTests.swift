import Foundation
import GatewayBroker
import GatewayCore
import GatewayTestSupport
import XCTest

/// A transport with the loop that takes its events, as the gateway's main loop does.
final class Client: Sendable {
    let transport: MosquittoTransport
    private let log: Log
    private let connection: Task<Void, Never>
    private let loop: Task<Void, Never>

    /// What the loop has taken, and a publisher that keeps what is not acknowledged.
    actor Log {
        let transport: MosquittoTransport
        private(set) var connections = 0
        private(set) var reasons: [String] = []
        private(set) var messages: [BrokerMessage] = []
        /// How many times each token was acknowledged.
        private(set) var acknowledged: [UInt64: Int] = [:]
        private(set) var refusals: [BrokerTransportError] = []
        /// What is to be published, oldest first, and how many of it were published over the present connection.
        private var unacknowledged: [(token: UInt64, message: BrokerMessage)] = []
        private var published = 0
        private(set) var publications = 0

        init(_ transport: MosquittoTransport) { self.transport = transport }

        func take(_ event: BrokerEvent) {
            switch event {
            case .connected:
                connections += 1
                published = 0
            case .disconnected(let reason):
                reasons.append(reason)
                published = 0
            case .acknowledged(let token):
                acknowledged[token, default: 0] += 1
                if let index = unacknowledged.firstIndex(where: { $0.token == token }) {
                    unacknowledged.remove(at: index)
                    if index < published { published -= 1 }
                }
            case .received(let message): messages.append(message)
            }
            publish()
        }

        func submit(_ message: BrokerMessage, token: UInt64) {
            unacknowledged.append((token, message))
            publish()
        }

        private func publish() {
            while published < unacknowledged.count {
                let (token, message) = unacknowledged[published]
                do throws(BrokerTransportError) {
                    try transport.publish(message, token: token)
                    published += 1
                    publications += 1
                } catch {
                    refusals.append(error)
                    return
                }
            }
        }
    }

    init(_ options: MosquittoOptions, takesEvents: Bool = true, subscribe filters: [String] = []) throws {
        let transport = try MosquittoTransport(options: options)
        for filter in filters { transport.subscribe(filter) }
        let log = Log(transport)
        (self.transport, self.log) = (transport, log)
        connection = Task { await transport.run() }
        loop = Task {
            guard takesEvents else { return }
            for await event in transport.events { await log.take(event) }
        }
    }

    deinit {
        connection.cancel()
        loop.cancel()
    }

    func connected(_ count: Int = 1, limit: Duration = .seconds(30)) async throws {
        try await eventually(limit: limit, "connection \(count)") { await log.connections >= count }
    }

    func submit(_ message: BrokerMessage, token: UInt64) async { await log.submit(message, token: token) }

    /// Ends the connection in order and waits until all events are taken.
    func stop() async {
        connection.cancel()
        await connection.value
        await loop.value
    }

    var reasons: [String] { get async { await log.reasons } }
    var connections: Int { get async { await log.connections } }
    var messages: [BrokerMessage] { get async { await log.messages } }
    var acknowledged: [UInt64: Int] { get async { await log.acknowledged } }
    var publications: Int { get async { await log.publications } }
}

func options(_ addresses: String..., identifier: String = "gateway") throws -> MosquittoOptions {
    MosquittoOptions(addresses: try addresses.map(BrokerAddress.init), clientIdentifier: identifier)
}

func message(_ topic: String, _ text: String, retained: Bool = false) -> BrokerMessage {
    BrokerMessage(topic: topic, payload: Data(text.utf8), isRetained: retained)
}

extension BrokerMessage {
    var text: String { String(decoding: payload, as: UTF8.self) }
}

/// The processor time of this process, in seconds.
func processorTime() -> Double {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return [usage.ru_utime, usage.ru_stime].reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1_000_000 }
}

/// The memory of this process that is resident, in bytes.
func residentBytes() -> Int {
    let fields = ((try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? "").split(separator: " ")
    return (fields.count > 1 ? Int(fields[1]) ?? 0 : 0) * sysconf(Int32(_SC_PAGESIZE))
}

/// The texts without those that were there before.
func firstOccurrences(_ messages: [BrokerMessage]) -> [String] {
    var seen: Set<String> = []
    return messages.map(\.text).filter { seen.insert($0).inserted }
}

final class BrokerTests: XCTestCase {
    func testAcknowledgesEachOfTwoThousandMessagesOnce() async throws {
        let broker = try await MosquittoBroker()
        let subscriber = try await Subscriber([broker.address], ["bluecap/#"])
        let client = try Client(try options(broker.address))
        try await client.connected()
        for token in 1...2_000 { await client.submit(message("bluecap/g/value", "\(token)"), token: UInt64(token)) }
        try await eventually("all acknowledgements") { await client.acknowledged.count == 2_000 }
        let received = try await subscriber.messages(atLeast: 2_000)
        await client.stop()
        await subscriber.stop()
        XCTAssertEqual(received.map(\.text), (1...2_000).map(String.init))
        let acknowledged = await client.acknowledged
        XCTAssertEqual(acknowledged, Dictionary(uniqueKeysWithValues: (1...2_000).map { ($0, 1) }))
        let publications = await client.publications
        XCTAssertEqual(publications, 2_000)
    }

    func testLosesNothingAcknowledgedWhenTheBrokerIsKilled() async throws {
        let broker = try await MosquittoBroker()
        let subscriber = try await Subscriber([broker.address], ["bluecap/#"])
        // So that the broker knows the subscriber's session after its restart.
        try await broker.save()
        let client = try Client(try options(broker.address))
        try await client.connected()
        for token in 1...2_000 {
            await client.submit(message("bluecap/g/value", "\(token)"), token: UInt64(token))
            guard token == 700 || token == 1_400 else { continue }
            // What the broker has acknowledged and not written to its file is only in the socket of the subscriber. It is
            // read first, for it is no loss of the transport if the broker loses it.
            broker.suspend()
            try await eventually("what is acknowledged") {
                let received = Set(await subscriber.messages.map(\.text))
                return await client.acknowledged.keys.allSatisfy { received.contains("\($0)") }
            }
            let acknowledged = await client.acknowledged
            XCTAssertLessThan(acknowledged.count, token, "messages are on their way")
            broker.kill()
            if token == 700 { try await broker.start() }
        }
        try await broker.start()
        try await eventually(limit: .seconds(30), "all acknowledgements") { await client.acknowledged.count == 2_000 }
        try await eventually(limit: .seconds(30), "all messages") {
            await firstOccurrences(subscriber.messages).count == 2_000
        }
        await client.stop()
        let received = await subscriber.messages
        await subscriber.stop()
        XCTAssertEqual(firstOccurrences(received), (1...2_000).map(String.init))
        let acknowledged = await client.acknowledged
        XCTAssertEqual(Set(acknowledged.values), [1], "a token is acknowledged once although it is published again")
        let connections = await client.connections
        XCTAssertGreaterThanOrEqual(connections, 2)
    }

    /// Prints how fast messages are acknowledged; `BLUECAP_MESSAGES` sets their number.
    func testKeepsNoMemoryForMessagesThatAreAcknowledged() async throws {
        let count = UInt64(ProcessInfo.processInfo.environment["BLUECAP_MESSAGES"] ?? "") ?? 20_000
        let broker = try await MosquittoBroker()
        let transport = try MosquittoTransport(options: try options(broker.address))
        let run = Task { await transport.run() }
        let payload = Data(repeating: 0x20, count: 500)
        var (next, acknowledged, early) = (1 as UInt64, 0 as UInt64, 0)
        let (begin, processor) = (ContinuousClock.now, processorTime())
        for await event in transport.events {
            if case .acknowledged(let token) = event {
                acknowledged += 1
                XCTAssertEqual(token, acknowledged)
            }
            if acknowledged == count / 10 { early = residentBytes() }
            if acknowledged == count { break }
            while next <= count {
                do throws(BrokerTransportError) {
                    try transport.publish(BrokerMessage(topic: "bluecap/g/value", payload: payload), token: next)
                } catch {
                    XCTAssertEqual(error, .full)
                    break
                }
                next += 1
            }
        }
        let (duration, used) = (ContinuousClock.now - begin, processorTime() - processor)
        let growth = residentBytes() - early
        print(
            "\(count) messages of 500 bytes: \(Int(Double(count) / (duration / .seconds(1)))) a second,",
            "\(Int(used * 1_000_000 / Double(count))) µs of processor time each, \(growth >> 10) KiB more memory")
        XCTAssertLessThan(growth, 8 << 20)
        run.cancel()
        await run.value
    }

    func testReportsWhyTheBrokerRefusesAConnection() async throws {
        var broker = MosquittoBroker.Options()
        broker.users = ["gateway": "right"]
        let server = try await MosquittoBroker(broker)
        var wrong = try options(server.address)
        (wrong.user, wrong.password) = ("gateway", "wrong")
        let refused = try Client(wrong)
        try await eventually("a refusal") { await !refused.reasons.isEmpty }
        await refused.stop()
        let reason = await refused.reasons[0]
        XCTAssertEqual(
            reason,
            "\(server.address) has refused the connection: "
                + "not authorised; the user name or the password is wrong, or this user may not connect.")
        XCTAssertFalse(reason.contains("\"wrong\""))
        let connections = await refused.connections
        XCTAssertEqual(connections, 0)

        var right = wrong
        right.password = "right"
        let accepted = try Client(right)
        try await accepted.connected()
        await accepted.stop()

        let anonymous = try Client(try options(server.address, identifier: "anonymous"))
        try await eventually("a refusal") { await !anonymous.reasons.isEmpty }
        await anonymous.stop()
        let text = await anonymous.reasons[0]
        XCTAssertTrue(text.contains("it wants a user name and a password"), text)
    }

    func testConnectsByTLSWithAClientCertificate() async throws {
        let certificates = try await TestCertificates()
        var broker = MosquittoBroker.Options()
        broker.certificates = certificates
        let server = try await MosquittoBroker(broker)
        func secure(_ change: (inout MosquittoOptions) -> Void = { _ in }) throws -> MosquittoOptions {
            var result = try options(server.address)
            result.security = MosquittoSecurity(
                authorityFile: certificates.authority, certificateFile: certificates.client,
                keyFile: certificates.clientKey)
            change(&result)
            return result
        }
        let client = try Client(try secure(), subscribe: ["bluecap/echo"])
        try await client.connected()
        let large = String(repeating: "x", count: 200_000)
        await client.submit(message("bluecap/echo", large), token: 1)
        try await eventually("the message") { await client.messages.map(\.text) == [large] }
        await client.stop()
        let reasons = await client.reasons
        XCTAssertEqual(reasons, ["The gateway has ended the connection to \(server.address)."])

        func reason(_ options: MosquittoOptions) async throws -> String {
            let client = try Client(options)
            defer { withExtendedLifetime(client) {} }
            try await eventually("a reason") { await !client.reasons.isEmpty }
            let reason = await client.reasons[0]
            let connections = await client.connections
            XCTAssertEqual(connections, 0)
            await client.stop()
            return reason
        }
        let other = try await TestCertificates()
        let unknown = try await reason(try secure { $0.security.authorityFile = other.authority })
        XCTAssertTrue(unknown.contains("certificate verify failed"), unknown)
        // The broker accepts the handshake of TLS 1.3 before it sees the certificate.
        let missing = try await reason(
            try secure { ($0.security.certificateFile, $0.security.keyFile) = (nil, nil) })
        XCTAssertTrue(missing.contains("whether the broker wants a certificate"), missing)
        let absent = try await reason(try secure { $0.security.authorityFile = "/nowhere/ca.pem" })
        XCTAssertEqual(absent, "The file /nowhere/ca.pem for TLS cannot be read: No such file or directory.")
        let plain = try await reason(try options(server.address.replacingOccurrences(of: "mqtts", with: "mqtt")))
        XCTAssertTrue(plain.contains("with TLS or without"), plain)
        var name = try secure()
        name.addresses = [try BrokerAddress(server.address.replacingOccurrences(of: "127.0.0.1", with: "localhost"))]
        let mismatch = try await reason(name)
        XCTAssertTrue(mismatch.contains("certificate"), mismatch)
    }

    func testATLSAddressOfABrokerWithoutTLSFails() async throws {
        let broker = try await MosquittoBroker()
        let client = try Client(try options(broker.address.replacingOccurrences(of: "mqtt:", with: "mqtts:")))
        try await eventually("a reason") { await !client.reasons.isEmpty }
        await client.stop()
        let reason = await client.reasons[0]
        XCTAssertTrue(reason.contains("TLS"), reason)
    }

    func testTriesTheAddressesInTurn() async throws {
        let broker = try await MosquittoBroker()
        let port = try Loopback.freePort()
        let client = try Client(try options("mqtt://127.0.0.1:\(port)", broker.address))
        try await client.connected()
        XCTAssertEqual(client.transport.statistics.address, try BrokerAddress(broker.address))
        await client.stop()
        let reasons = await client.reasons
        XCTAssertTrue(reasons[0].hasPrefix("mqtt://127.0.0.1:\(port) cannot be reached"), reasons[0])
    }

    func testReportsANameThatDoesNotExist() async throws {
        let client = try Client(try options("mqtt://no-such-host.invalid"))
        try await eventually(limit: .seconds(30), "a reason") { await !client.reasons.isEmpty }
        await client.stop()
        let reason = await client.reasons[0]
        XCTAssertTrue(
            reason.hasPrefix("The host name of mqtt://no-such-host.invalid:1883 cannot be resolved"), reason)
    }

    func testSendsRetainedMessagesToALaterSubscriber() async throws {
        let broker = try await MosquittoBroker()
        let client = try Client(try options(broker.address))
        try await client.connected()
        await client.submit(message("bluecap/g/state", "online", retained: true), token: 1)
        try await eventually("the acknowledgement") { await client.acknowledged[1] == 1 }
        try await broker.stop()
        try await broker.start()
        let subscriber = try await Subscriber([broker.address], ["bluecap/+/state"])
        let received = try await subscriber.messages(atLeast: 1)
        XCTAssertEqual(received, [message("bluecap/g/state", "online", retained: true)])
        await subscriber.stop()
        await client.stop()
    }

    func testSubscribesAgainAfterAReconnection() async throws {
        var configuration = MosquittoBroker.Options()
        // So that the broker has forgotten all sessions after its restart.
        configuration.isPersistent = false
        let broker = try await MosquittoBroker(configuration)
        let client = try Client(try options(broker.address), subscribe: ["bluecap/a"])
        try await client.connected()
        client.transport.subscribe("bluecap/b")
        client.transport.subscribe("not/a#/filter")
        broker.kill()
        try await broker.start()
        try await client.connected(2)
        let sender = try Client(try options(broker.address, identifier: "sender"))
        try await sender.connected()
        await sender.submit(message("bluecap/a", "1"), token: 1)
        await sender.submit(message("bluecap/b", "2"), token: 2)
        try await eventually("both messages") { await client.messages.map(\.text) == ["1", "2"] }
        await sender.stop()
        await client.stop()
    }

    func testReceivesWhatArrivedForItsSessionWhileItWasAway() async throws {
        let broker = try await MosquittoBroker()
        let first = try Client(try options(broker.address), subscribe: ["bluecap/command"])
        try await first.connected()
        await first.stop()
        let sender = try Client(try options(broker.address, identifier: "sender"))
        try await sender.connected()
        for token in 1...50 { await sender.submit(message("bluecap/command", "\(token)"), token: UInt64(token)) }
        try await eventually("the acknowledgements") { await sender.acknowledged.count == 50 }
        await sender.stop()
        // `connected` precedes the messages, which the broker sends at once.
        let transport = try MosquittoTransport(options: try options(broker.address))
        transport.subscribe("bluecap/command")
        let run = Task { await transport.run() }
        var texts: [String] = []
        for await event in transport.events {
            switch event {
            case .connected: texts.append("connected")
            case .received(let message): texts.append(message.text)
            default: XCTFail("\(event)")
            }
            if texts.count == 51 { break }
        }
        run.cancel()
        await run.value
        XCTAssertEqual(texts, ["connected"] + (1...50).map(String.init))
    }

    func testMessagesWithQualityZeroAreSentAndNotAcknowledged() async throws {
        let broker = try await MosquittoBroker()
        let subscriber = try await Subscriber([broker.address], ["bluecap/#"])
        let client = try Client(try options(broker.address))
        try await client.connected()
        for token in 1...200 {
            var sent = message("bluecap/g/advertisement", "\(token)")
            sent.quality = .atMostOnce
            try client.transport.publish(sent, token: UInt64(token))
        }
        let received = try await subscriber.messages(atLeast: 200)
        XCTAssertEqual(received.map(\.text), (1...200).map(String.init))
        XCTAssertEqual(Set(received.map(\.quality)), [.atMostOnce])
        try await eventually("nothing waits") { client.transport.statistics.waiting == 0 }
        await client.stop()
        let acknowledged = await client.acknowledged
        XCTAssertEqual(acknowledged, [:])
        await subscriber.stop()
    }

    func testConnectsToANameByIPv4InItsSecondAttempt() async throws {
        let port = try Loopback.freePort()
        let client = try Client(try options("mqtt://localhost:\(port)"))
        try await eventually("an attempt") { await !client.reasons.isEmpty }
        var configuration = MosquittoBroker.Options()
        configuration.port = port
        let broker = try await MosquittoBroker(configuration)
        try await client.connected()
        await client.stop()
        broker.kill()
    }

    func testKeepsABoundedNumberOfReceivedMessagesInAFlood() async throws {
        let broker = try await MosquittoBroker()
        var limited = try options(broker.address)
        limited.limits.received = 100
        limited.limits.payload = 1_000
        let client = try Client(limited, takesEvents: false, subscribe: ["flood/#"])
        try await eventually("the connection") { client.transport.statistics.connections == 1 }
        let sender = try Client(try options(broker.address, identifier: "sender"))
        try await sender.connected()
        for token in 1...5_000 { await sender.submit(message("flood/x", "\(token)"), token: UInt64(token)) }
        await sender.submit(message("flood/x", String(repeating: "x", count: 1_001)), token: 5_001)
        try await eventually(limit: .seconds(30), "the flood") { client.transport.statistics.received == 5_001 }
        XCTAssertEqual(client.transport.statistics.dropped, 4_901)
        // The newest are dropped, and messages are taken again when there is room.
        var texts: [String] = []
        for await event in client.transport.events {
            if case .received(let message) = event { texts.append(message.text) }
            if texts.count == 100 { await sender.submit(message("flood/x", "again"), token: 5_002) }
            if texts.last == "again" { break }
        }
        XCTAssertEqual(texts, (1...100).map(String.init) + ["again"])
        await sender.stop()
    }

    func testTakesNoMoreMessagesThanItsWindow() async throws {
        let broker = try await MosquittoBroker()
        var small = try options(broker.address)
        small.limits.inFlight = 10
        small.limits.unsent = 20
        small.limits.payload = 100
        let transport = try MosquittoTransport(options: small)
        XCTAssertThrowsError(try transport.publish(message("a", ""), token: 0)) {
            XCTAssertEqual($0 as? BrokerTransportError, .notConnected)
        }
        let run = Task { await transport.run() }
        var events = transport.events.makeAsyncIterator()
        guard case .connected = await events.next() else { return XCTFail("no connection") }
        broker.suspend()
        for token in 1...10 { try transport.publish(message("a", "\(token)"), token: UInt64(token)) }
        XCTAssertThrowsError(try transport.publish(message("a", "11"), token: 11)) {
            XCTAssertEqual($0 as? BrokerTransportError, .full)
        }
        for (topic, payload) in [("a/#", ""), ("", ""), ("a\0b", ""), ("a", String(repeating: "x", count: 101))] {
            XCTAssertThrowsError(try transport.publish(message(topic, payload), token: 12)) {
                guard case .invalid = $0 as? BrokerTransportError else { return XCTFail("\($0)") }
            }
        }
        broker.resume()
        for token in 1...10 as ClosedRange<UInt64> {
            guard case .acknowledged(token) = await events.next() else { return XCTFail("no acknowledgement \(token)") }
        }
        // What was taken is acknowledged before the end.
        broker.suspend()
        try transport.publish(message("a", "11"), token: 11)
        run.cancel()
        broker.resume()
        guard case .acknowledged(11) = await events.next() else { return XCTFail("not acknowledged at the end") }
        guard case .disconnected = await events.next() else { return XCTFail("no end") }
        let end = await events.next()
        XCTAssertNil(end)
        await run.value
    }

    func testEndsAConnectionThatNothingComesOver() async throws {
        let broker = try await MosquittoBroker()
        let client = try Client(try options(broker.address))
        try await client.connected()
        broker.suspend()
        try await eventually(limit: .seconds(15), "the end of the connection") { await !client.reasons.isEmpty }
        broker.resume()
        let reason = await client.reasons[0]
        XCTAssertEqual(reason, "\(broker.address) has sent nothing for the keep-alive of 5 s, twice.")
        try await client.connected(2)
        await client.stop()
    }

    func testBrokerPublishesTheWillOfAProcessThatIsKilled() async throws {
        let broker = try await MosquittoBroker()
        let subscriber = try await Subscriber([broker.address], ["bluecap/helper/state"])
        let log = broker.directory.url.appendingPathComponent("helper.log")
        let helper = try ServerProcess(
            ProcessInfo.processInfo.arguments[0], ["GatewayBrokerTests.HelperProcess/testHoldsAConnection"],
            environment: ["BLUECAP_HELPER_BROKER": broker.address], log: log)
        _ = try await subscriber.messages(atLeast: 1, limit: .seconds(20))
        helper.signal(SIGKILL)
        let messages = try await subscriber.messages(atLeast: 2, limit: .seconds(5))
        XCTAssertEqual(messages.map(\.text), ["online", "offline"])
        await subscriber.stop()
    }

    func testBrokerPublishesNoWillAfterACancellation() async throws {
        let broker = try await MosquittoBroker()
        let subscriber = try await Subscriber([broker.address], ["bluecap/#"])
        var options = try options(broker.address)
        options.will = message("bluecap/g/state", "will", retained: true)
        // Messages arrive without pause, because what arrives must not prevent an end in order.
        let client = try Client(options, subscribe: ["bluecap/noise"])
        let noise = try Client(try GatewayBrokerTests.options(broker.address, identifier: "noise"))
        try await client.connected()
        try await noise.connected()
        for token in 1...2_000 { await noise.submit(message("bluecap/noise", "\(token)"), token: UInt64(token)) }
        await client.submit(message("bluecap/g/state", "offline", retained: true), token: 1)
        let begin = ContinuousClock.now
        await client.stop()
        XCTAssertLessThan(ContinuousClock.now - begin, .seconds(3))
        try await eventually("all noise") { await noise.acknowledged.count == 2_000 }
        await noise.submit(message("bluecap/end", ""), token: 2_001)
        let received = try await subscriber.messages(atLeast: 2_002)
        XCTAssertEqual(received.filter { $0.topic == "bluecap/g/state" }.map(\.text), ["offline"])
        XCTAssertThrowsError(try client.transport.publish(message("a", ""), token: 3)) {
            XCTAssertEqual($0 as? BrokerTransportError, .notConnected)
        }
        await noise.stop()
        await subscriber.stop()
    }

    func testABrokerThatHangsDelaysTheEndByItsLimit() async throws {
        let broker = try await MosquittoBroker()
        var impatient = try options(broker.address)
        impatient.closeLimit = .milliseconds(300)
        let client = try Client(impatient)
        try await client.connected()
        broker.suspend()
        await client.submit(message("a", ""), token: 1)
        let begin = ContinuousClock.now
        await client.stop()
        XCTAssertLessThan(ContinuousClock.now - begin, .seconds(1))
    }

    func testEndsAtOnceWhenCancelledWithoutAConnection() async throws {
        let port = try Loopback.freePort()
        let client = try Client(try options("mqtt://127.0.0.1:\(port)"))
        try await eventually("an attempt") { await !client.reasons.isEmpty }
        let begin = ContinuousClock.now
        await client.stop()
        XCTAssertLessThan(ContinuousClock.now - begin, .seconds(1))
    }

    func testALoopThatIsCancelledCanBeFollowedByAnother() async throws {
        let broker = try await MosquittoBroker()
        let transport = try MosquittoTransport(options: try options(broker.address))
        let first = Task { for await _ in transport.events {} }
        first.cancel()
        await first.value
        let run = Task { await transport.run() }
        var iterator = transport.events.makeAsyncIterator()
        guard case .connected = await iterator.next() else { return XCTFail("no connection") }
        run.cancel()
        await run.value
    }
}

/// Runs in a process of its own, which a test kills.
final class HelperProcess: XCTestCase {
    func testHoldsAConnection() async throws {
        guard let address = ProcessInfo.processInfo.environment["BLUECAP_HELPER_BROKER"] else {
            throw XCTSkip("runs only in a process that another test starts")
        }
        var options = try options(address, identifier: "helper")
        options.will = message("bluecap/helper/state", "offline", retained: true)
        let client = try Client(options)
        try await client.connected()
        await client.submit(message("bluecap/helper/state", "online", retained: true), token: 1)
        try await Task.sleep(for: .seconds(60))
    }
}
