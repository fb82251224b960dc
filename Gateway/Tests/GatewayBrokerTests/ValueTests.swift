import Foundation
import GatewayCore
import GatewayTestSupport
import XCTest

@testable import GatewayBroker

final class ValueTests: XCTestCase {
    func testParsesAddresses() throws {
        for (text, host, port, isSecure, description) in [
            ("mqtt://broker", "broker", 1883, false, "mqtt://broker:1883"),
            ("mqtts://broker.local:1", "broker.local", 1, true, "mqtts://broker.local:1"),
            ("mqtts://10.0.0.1", "10.0.0.1", 8883, true, "mqtts://10.0.0.1:8883"),
            ("mqtt://[::1]", "::1", 1883, false, "mqtt://[::1]:1883"),
            ("mqtt://[fe80::1%eth0]:65535", "fe80::1%eth0", 65535, false, "mqtt://[fe80::1%eth0]:65535"),
        ] {
            let address = try BrokerAddress(text)
            XCTAssertEqual(address.host, host)
            XCTAssertEqual(Int(address.port), port)
            XCTAssertEqual(address.isSecure, isSecure)
            XCTAssertEqual(address.description, description)
        }
    }

    func testAddressErrorsNameWhatIsWrong() {
        for (text, what) in [
            ("", "it begins with neither"), ("broker:1883", "it begins with neither"), ("mqtt://", "the host \"\""),
            ("mqtt://user:x@broker", "user names and passwords"), ("mqtt://broker:", "the port \"\""),
            ("mqtt://broker:0", "the port \"0\""), ("mqtt://broker:65536", "the port \"65536\""),
            ("mqtt://broker:+5", "the port \"+5\""), ("mqtt://broker/path", "the host \"broker/path\""),
            ("mqtt://[::1", "the bracket is not closed"), ("mqtt://[::1]x", "\"x\" follows the host"),
            ("mqtt://br oker", "the host"), ("mqtt://::1", "the host"), ("mqtt://a\0b", "the host"),
        ] {
            XCTAssertThrowsError(try BrokerAddress(text), text) {
                XCTAssertTrue("\($0)".contains(what), "\(text): \($0)")
            }
        }
    }

    func testABrokerIsSilentWhileAMessageWaitsAndNothingIsAcknowledged() {
        var connection = Connection(limits: MosquittoLimits())
        let begin = ContinuousClock.now
        XCTAssertTrue(connection.report())
        func publish(_ identifier: Int32, _ quality: BrokerMessage.Quality, at seconds: Int) {
            let message = BrokerMessage(topic: "a", payload: Data(), quality: quality)
            connection.published(message, identifier: identifier, token: 1, at: begin + .seconds(seconds))
        }
        XCTAssertEqual(connection.silence(at: begin + .seconds(9)), .zero)
        publish(1, .atMostOnce, at: 9)
        XCTAssertEqual(connection.silence(at: begin + .seconds(20)), .zero, "nothing is to be acknowledged")
        publish(2, .atLeastOnce, at: 20)
        publish(3, .atLeastOnce, at: 22)
        XCTAssertEqual(connection.silence(at: begin + .seconds(25)), .seconds(5))
        XCTAssertEqual(connection.completed(identifier: 2, at: begin + .seconds(26)), 1)
        XCTAssertEqual(connection.silence(at: begin + .seconds(29)), .seconds(3), "since the last acknowledgement")
        XCTAssertNil(connection.completed(identifier: 1, at: begin + .seconds(30)))
        XCTAssertEqual(connection.silence(at: begin + .seconds(31)), .seconds(5), "quality 0 is not acknowledged")
        XCTAssertEqual(connection.completed(identifier: 3, at: begin + .seconds(32)), 1)
        XCTAssertEqual(connection.silence(at: begin + .seconds(50)), .zero)
    }

    func testOptionsOutOfRangeAreRefused() throws {
        let address = try BrokerAddress("mqtt://broker")
        let changes: [(String, (inout MosquittoOptions) -> Void)] = [
            ("no broker address", { $0.addresses = [] }), ("client identifier", { $0.clientIdentifier = "" }),
            ("client identifier", { $0.clientIdentifier = "a\0" }), ("4 s is not in", { $0.keepAlive = 4 }),
            ("without a user name", { $0.password = "x" }),
            ("user name or the password", { ($0.user, $0.password) = ("u", "a\0") }),
            ("needed together", { $0.security.keyFile = "key" }), ("limit", { $0.limits.inFlight = 0 }),
            ("limit", { $0.limits.unsent = 65_000 }), ("limit", { $0.limits.payload = 1 << 28 }),
            ("the will", { $0.will = message("a/+", "") }),
        ]
        for (text, change) in changes {
            var options = MosquittoOptions(addresses: [address], clientIdentifier: "gateway")
            change(&options)
            XCTAssertThrowsError(try MosquittoTransport(options: options)) {
                XCTAssertTrue("\($0)".contains(text), "\($0)")
            }
        }
    }

    func testDescriptionsOfOptionsDoNotShowThePassword() throws {
        var options = MosquittoOptions(addresses: [try BrokerAddress("mqtt://broker")], clientIdentifier: "gateway")
        (options.user, options.password) = ("user", "correct horse")
        XCTAssertEqual(options.password, "correct horse")
        var texts = "\(options)" + String(reflecting: options)
        dump(options, to: &texts)
        XCTAssertTrue(texts.contains("gateway"))
        XCTAssertFalse(texts.contains("horse"), texts)
    }

    func testDelaysDoubleAfterEachRoundThroughTheAddresses() {
        var generator = SeededNumbers(SeededNumbers.seed)
        var plan = Reconnection(count: 2)
        for longest in [1.0, 2, 4, 8, 16, 30, 30] {
            for index in [1, 0] {
                let delay = plan.ended(after: .seconds(9), using: &generator)
                XCTAssertEqual(plan.index, index)
                XCTAssertGreaterThanOrEqual(delay, .seconds(longest / 2))
                XCTAssertLessThanOrEqual(delay, .seconds(longest))
            }
        }
        XCTAssertLessThanOrEqual(plan.ended(after: .seconds(10), using: &generator), .seconds(1))
    }

    func testDelaysDoNotOverflow() {
        var generator = SeededNumbers(1)
        var plan = Reconnection(count: 1)
        for _ in 0..<1_000 { XCTAssertLessThanOrEqual(plan.ended(after: nil, using: &generator), .seconds(30)) }
    }

    func testPacketIdentifiersInUseAreNotUsedAgain() throws {
        var connection = Connection(limits: MosquittoLimits())
        XCTAssertTrue(connection.report())
        XCTAssertFalse(connection.report())
        let stored = message("a", "")
        var sent = stored
        sent.quality = .atMostOnce
        connection.published(stored, identifier: 1, token: 7, at: .now)
        for identifier in 2...65_535 as ClosedRange<Int32> {
            try connection.check(sent, untaken: 0)
            connection.published(sent, identifier: identifier, token: 0, at: .now)
            XCTAssertNil(connection.completed(identifier: identifier))
        }
        XCTAssertThrowsError(try connection.check(sent, untaken: 0)) {
            XCTAssertEqual($0 as? BrokerTransportError, .full)
        }
        XCTAssertEqual(connection.completed(identifier: 1), 7)
        XCTAssertNil(connection.completed(identifier: 1))
        XCTAssertEqual(connection.waiting, 0)
        XCTAssertNoThrow(try connection.check(sent, untaken: 0))
    }

    func testAcknowledgementsThatAreNotTakenCountTowardsTheWindow() throws {
        var limits = MosquittoLimits()
        limits.inFlight = 3
        limits.unsent = 1
        limits.waitingBytes = 10
        var connection = Connection(limits: limits)
        let small = message("a", "")
        XCTAssertThrowsError(try connection.check(small, untaken: 0)) {
            XCTAssertEqual($0 as? BrokerTransportError, .notConnected)
        }
        _ = connection.report()
        XCTAssertNoThrow(try connection.check(message("a", "more than ten bytes"), untaken: 0))
        connection.published(small, identifier: 1, token: 1, at: .now)
        XCTAssertNoThrow(try connection.check(small, untaken: 1))
        XCTAssertThrowsError(try connection.check(small, untaken: 2))
        XCTAssertThrowsError(try connection.check(message("a", "more than ten bytes"), untaken: 0))
        var sent = small
        sent.quality = .atMostOnce
        connection.published(sent, identifier: 2, token: 2, at: .now)
        XCTAssertThrowsError(try connection.check(sent, untaken: 0))
        XCTAssertNil(connection.completed(identifier: 2), "quality 0 is not acknowledged")
        XCTAssertNoThrow(try connection.check(sent, untaken: 0))
    }

    func testAConnectionIsReportedWhenAllSubscriptionsHaveReplies() {
        var connection = Connection(limits: MosquittoLimits())
        connection.subscribing(to: "a", identifier: 1)
        connection.subscribing(to: "b", identifier: 2)
        XCTAssertNil(connection.subscribed(identifier: 1, isGranted: true))
        XCTAssertFalse(connection.report())
        XCTAssertEqual(connection.subscribed(identifier: 2, isGranted: false), "b")
        XCTAssertTrue(connection.report())
        XCTAssertEqual(connection.takeRefused(), ["b"])
        XCTAssertEqual(connection.takeRefused(), [])
    }

    func testFailuresThatAreNotTakenBecomeOneEvent() async {
        let queue = EventQueue(limits: MosquittoLimits())
        for number in 1...1_000 { queue.append(.disconnected(reason: "\(number)")) }
        XCTAssertEqual(queue.changes, 1)
        queue.append(.connected)
        queue.append(.acknowledged(token: 1))
        XCTAssertEqual(queue.acknowledgements, 1)
        queue.append(.disconnected(reason: "end"))
        queue.finish()
        var texts: [String] = []
        while let event = await queue.next() { texts.append("\(event)") }
        XCTAssertEqual(
            texts,
            [
                "disconnected(reason: \"1000\")", "connected", "acknowledged(token: 1)",
                "disconnected(reason: \"end\")",
            ])
        XCTAssertEqual(queue.acknowledgements + queue.changes, 0)
    }

    func testMessagesOfAConnectionThatIsNotReportedFollowTheReport() async {
        let queue = EventQueue(limits: MosquittoLimits())
        queue.append(.received(message("a", "1")))
        queue.append(.disconnected(reason: "before"))
        queue.append(.received(message("a", "2")))
        queue.append(.connected)
        queue.append(.received(message("a", "3")))
        queue.finish()
        var texts: [String] = []
        while let event = await queue.next() {
            switch event {
            case .received(let message): texts.append(message.text)
            case .connected: texts.append("connected")
            default: texts.append("other")
            }
        }
        XCTAssertEqual(texts, ["1", "other", "connected", "2", "3"])
    }

    func testReceivedBytesAreBounded() {
        var limits = MosquittoLimits()
        limits.receivedBytes = 100
        let queue = EventQueue(limits: limits)
        queue.append(.connected)
        XCTAssertFalse(queue.append(.received(message("a", String(repeating: "x", count: 500)))), "one is always kept")
        XCTAssertTrue(queue.append(.received(message("a", "x"))), "the first that is dropped")
        XCTAssertFalse(queue.append(.received(message("a", "x"))))
        XCTAssertFalse(queue.dropOversized())
        XCTAssertEqual(queue.counts.received, 4)
        XCTAssertEqual(queue.counts.dropped, 3)
    }
}
