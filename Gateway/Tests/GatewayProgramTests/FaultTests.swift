import BlueZSimulator
import Foundation
import GatewayBroker
import GatewayCore
import GatewayTestSupport
import XCTest

/// The gateway's process with a real broker: what it has stored arrives, in its order, whatever is killed.
final class FaultTests: XCTestCase {
    private func delivered(_ subscriber: Subscriber) async throws -> [Delivered] {
        try await subscriber.messages.map { try JSONDecoder().decode(Delivered.self, from: $0.payload) }
    }

    private func subscriber(_ stage: GatewayStage) async throws -> Subscriber {
        // Values and gaps of the device.
        try await Subscriber([stage.broker.address], ["bluecap/attic/value/#", "bluecap/attic/gap/#"])
    }

    func testNothingIsLostWhileTheBrokerIsAway() async throws {
        let stage = try await GatewayStage(every: 0.005)
        defer { stage.end() }
        let subscriber = try await subscriber(stage)
        try stage.start()
        _ = try await subscriber.messages(atLeast: 200, limit: .seconds(30))
        // The broker is to know its subscriber again: it keeps what it acknowledges for that one.
        try await stage.broker.save()
        stage.broker.kill()
        let outage = Double(ProcessInfo.processInfo.environment["BLUECAP_OUTAGE"] ?? "") ?? 10
        let end = stage.simulator.seconds + outage
        try await eventually(limit: .seconds(outage + 10), "the outage") { stage.simulator.seconds >= end }
        XCTAssertEqual(stage.simulator.links.count, 1, "the link stays")
        try await stage.broker.start()
        let count = Int(outage / 0.005) + 200
        _ = try await subscriber.messages(atLeast: count, limit: .seconds(60))
        try await delivered(subscriber).expectComplete(brokerWasKilled: true)
        let gaps = try await delivered(subscriber).count { $0.reason != nil }
        XCTAssertEqual(gaps, 1, "only the one of the start")
        await subscriber.stop()
    }

    func testNothingThatWasStoredIsLostWhenTheGatewayIsKilled() async throws {
        let stage = try await GatewayStage(every: 0.005)
        defer { stage.end() }
        let subscriber = try await subscriber(stage)
        var generator = SystemRandomNumberGenerator()
        let kills = Int(ProcessInfo.processInfo.environment["BLUECAP_KILLS"] ?? "") ?? 5
        for kill in 1...kills {
            let before = await subscriber.messages.count
            try stage.start()
            let wanted = before + .random(in: 1...200, using: &generator)
            _ = try await subscriber.messages(atLeast: wanted, limit: .seconds(60))
            stage.kill()
            print("kill \(kill) of \(kills): \(await subscriber.messages.count) messages")
        }
        try stage.start()
        _ = try await subscriber.messages(atLeast: await subscriber.messages.count + 100, limit: .seconds(60))
        try await stage.stop()
        try await delivered(subscriber).expectComplete()
        await subscriber.stop()
    }

    func testValuesGoOnAfterBluetoothdWasKilled() async throws {
        let stage = try await GatewayStage(every: 0.02)
        defer { stage.end() }
        let subscriber = try await subscriber(stage)
        try stage.start()
        _ = try await subscriber.messages(atLeast: 20, limit: .seconds(30))
        stage.simulator.simulateDaemonDeath()
        stage.simulator.simulateDaemonReturn()
        let before = await subscriber.messages.count
        _ = try await subscriber.messages(atLeast: before + 50, limit: .seconds(60))
        try await stage.stop()
        let messages = try await delivered(subscriber)
        messages.expectComplete()
        XCTAssertGreaterThanOrEqual(messages.count { $0.reason != nil }, 2, "the start and the restart")
        await subscriber.stop()
    }

    func testItEndsInOrder() async throws {
        let stage = try await GatewayStage(every: 0.02)
        defer { stage.end() }
        let states = try await Subscriber([stage.broker.address], ["bluecap/attic/state"])
        let subscriber = try await subscriber(stage)
        try stage.start()
        _ = try await subscriber.messages(atLeast: 5, limit: .seconds(30))
        try await stage.stop()
        XCTAssertEqual(stage.process?.exitStatus, 0)
        XCTAssertEqual(stage.simulator.links.count, 0, "the link has ended")
        try await eventually(limit: .seconds(5), "offline") {
            guard let last = await states.messages.last else { return false }
            return (try? JSONDecoder().decode(GatewayStatePayload.self, from: last.payload))?.state == .offline
        }
        await states.stop()
        await subscriber.stop()
    }

    func testACommandReadsAndARefusedOneSaysWhy() async throws {
        let stage = try await GatewayStage(every: 0.1)
        defer { stage.end() }
        let replies = try await Subscriber([stage.broker.address], ["bluecap/attic/reply"])
        let subscriber = try await subscriber(stage)
        try stage.start()
        _ = try await subscriber.messages(atLeast: 2, limit: .seconds(30))
        func send(_ text: String) async throws -> CommandReply {
            let before = await replies.messages.count
            try replies.transport.publish(
                BrokerMessage(topic: "bluecap/attic/command", payload: Data(text.utf8)), token: 1)
            let messages = try await replies.messages(atLeast: before + 1, limit: .seconds(20))
            return try JSONDecoder().decode(CommandReply.self, from: try XCTUnwrap(messages.last).payload)
        }
        let read = try await send(
            #"{"id":"1","command":"read","peripheral":"Tag","service":"180D","characteristic":"2A38"}"#)
        XCTAssertEqual(read.id, "1")
        XCTAssertEqual(read.result?.raw, "01")
        let refused = try await send(
            #"{"id":"2","command":"write","peripheral":"Tag","service":"180D","characteristic":"2A39","value":"01"}"#)
        XCTAssertEqual(refused.error?.code, .notAllowed)
        XCTAssertEqual(stage.simulator.value(of: "2A39", at: GatewayStage.address), [])
        let malformed = try await send("{")
        XCTAssertEqual(malformed.error?.code, .invalidRequest)
        await replies.stop()
        await subscriber.stop()
    }
}
