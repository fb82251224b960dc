import BlueZSimulator
import Foundation
import GatewayBroker
import GatewayCore
import GatewayTestSupport
import XCTest

/// The gateway's process with a real broker: what it has stored arrives, in its order, whatever is killed.
final class FaultTests: XCTestCase {
    private static let isLong = ProcessInfo.processInfo.environment["BLUECAP_LONG"] != nil

    private static func number(_ variable: String, _ usual: Int) -> Int {
        ProcessInfo.processInfo.environment[variable].flatMap { Int($0) } ?? usual
    }

    private func subscriber(_ stage: GatewayStage, _ brokers: [String]? = nil) async throws -> Subscriber {
        // Values and gaps of the device.
        try await Subscriber(brokers ?? stage.brokers, ["bluecap/attic/value/#", "bluecap/attic/gap/#"])
    }

    /// Waits for further messages.
    private func receive(_ count: Int, _ subscriber: Subscriber, limit: Duration = .seconds(60)) async throws {
        _ = try await subscriber.messages(atLeast: await subscriber.messages.count + count, limit: limit)
    }

    /// Ends the gateway in order, and counts what has arrived and what is still in the store.
    private func finish(_ stage: GatewayStage, _ subscriber: Subscriber) async throws -> Deliveries {
        try await stage.stop()
        XCTAssertEqual(stage.process?.exitStatus, 0, stage.log)
        let stored = try stage.stored()
        func deliveries() async throws -> Deliveries {
            let messages = try await subscriber.messages.map {
                try JSONDecoder().decode(Delivered.self, from: $0.payload)
            }
            return Deliveries(messages, stored: stored)
        }
        // The broker sends what it has acknowledged; with a cluster that takes some time.
        let end = ContinuousClock.now + .seconds(20)
        var result = try await deliveries()
        while result.lost > 0, ContinuousClock.now < end {
            _ = try? await subscriber.messages(atLeast: await subscriber.messages.count + 1, limit: .seconds(1))
            result = try await deliveries()
        }
        await subscriber.stop()
        return result
    }

    func testNothingIsLostWhileTheBrokerIsAway() async throws {
        let stage = try await GatewayStage(every: 0.005)
        defer { stage.end() }
        let subscriber = try await subscriber(stage)
        try stage.start()
        try await receive(200, subscriber)
        // The broker is to know its subscriber again: it keeps what it acknowledges for that one.
        try await stage.broker.save()
        stage.broker.kill()
        let outage = Self.number("BLUECAP_OUTAGE", 60)
        let memory = try await MemoryRecord.of(stage, for: .seconds(outage))
        XCTAssertEqual(stage.simulator.links.count, 1, "the link stays")
        try await stage.broker.start()
        try await receive(outage * 180, subscriber, limit: .seconds(60 + outage))
        try await receive(200, subscriber)
        let result = try await finish(stage, subscriber)
        print("Broker away for \(outage) s: \(result); \(memory).")
        result.expectComplete(brokerRepeats: true)
        XCTAssertEqual(result.gaps, ["restarted"], "only the one of the start")
        if outage >= 20 { memory.expectFlat() }
    }

    func testMemoryStaysFlat() async throws {
        let stage = try await GatewayStage(every: 0.005)
        defer { stage.end() }
        let subscriber = try await subscriber(stage)
        try stage.start()
        try await receive(1_000, subscriber)
        let memory = try await MemoryRecord.of(stage, for: .seconds(Self.isLong ? 600 : 30))
        let result = try await finish(stage, subscriber)
        print("200 values a second: \(result); \(memory).")
        result.expectComplete()
        XCTAssertEqual(result.gaps.count, 1)
        memory.expectFlat()
    }

    func testNothingThatWasStoredIsLostWhenTheGatewayIsKilled() async throws {
        let stage = try await GatewayStage(every: 0.005)
        defer { stage.end() }
        let subscriber = try await subscriber(stage)
        var generator = SeededNumbers(SeededNumbers.seed)
        print("BLUECAP_SEED=\(SeededNumbers.seed)")
        let kills = Self.number("BLUECAP_KILLS", 20)
        var moments: [String: Int] = [:]
        for kill in 1...kills {
            if kill % 20 == 0 { progress("kill \(kill) of \(kills)") }
            let before = await subscriber.messages.count
            let moment: String
            try stage.start()
            switch generator.time(0...1) {
            case ..<0.4:
                moment = "after values"
                let count = Int.random(in: 1...200, using: &generator)
                _ = try await subscriber.messages(atLeast: before + count, limit: .seconds(60))
            case ..<0.7:
                moment = "after a time"
                try await Task.sleep(for: .seconds(generator.time(0...1.5)))
            case ..<0.85:
                moment = "while the broker does not react, from the start"
                stage.broker.suspend()
                try await Task.sleep(for: .seconds(generator.time(0...3)))
            default:
                moment = "while the broker does not react, amid a delivery"
                let count = Int.random(in: 1...100, using: &generator)
                _ = try await subscriber.messages(atLeast: before + count, limit: .seconds(60))
                stage.broker.suspend()
                try await Task.sleep(for: .seconds(generator.time(0...1)))
            }
            stage.kill()
            stage.broker.resume()
            moments[moment, default: 0] += 1
        }
        try stage.start()
        try await receive(100, subscriber)
        let result = try await finish(stage, subscriber)
        let counts = moments.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
        print("\(kills) kills (\(counts)): \(result).")
        result.expectComplete()
    }

    /// The node to which the gateway is connected.
    private func node(of stage: GatewayStage, _ cluster: NatsCluster) -> Int? {
        let line = stage.log.split(separator: "\n").last { $0.contains("connected to the broker mqtt://") }
        return cluster.addresses.firstIndex { line?.contains($0) == true }
    }

    func testNothingIsLostWhenNodesOfTheClusterAreKilled() async throws {
        let cluster = try await NatsCluster()
        let stage = try await GatewayStage(every: 0.005, cluster: cluster)
        defer { stage.end() }
        stage.logLevel = "info"
        let subscriber = try await subscriber(stage, cluster.addresses.reversed())
        try stage.start()
        try await receive(400, subscriber)
        let leader = try XCTUnwrap(cluster.leader(ofStream: "$MQTT_msgs"))
        cluster.kill(leader)
        try await receive(2_000, subscriber, limit: .seconds(120))
        try cluster.start(leader)
        try await cluster.waitForLeader()
        let connected = try XCTUnwrap(node(of: stage, cluster))
        cluster.kill(connected)
        try await receive(2_000, subscriber, limit: .seconds(120))
        try cluster.start(connected)
        try await cluster.waitForLeader()
        try await receive(200, subscriber, limit: .seconds(60))
        if Self.isLong { try await stopMostNodes(of: cluster, stage, subscriber) }
        let result = try await finish(stage, subscriber)
        print(
            "Cluster, leader n\(leader + 1), the gateway's node n\(connected + 1)\(Self.isLong ? " and two nodes" : "") killed: "
                + "\(result).")
        result.expectComplete(brokerRepeats: true, inOrder: false)
        XCTAssertEqual(result.gaps.count, 1)
    }

    /// Kills the two nodes to which the gateway is not connected. The last one has no quorum: it acknowledges nothing, or ends the
    /// connection after some seconds.
    private func stopMostNodes(of cluster: NatsCluster, _ stage: GatewayStage, _ subscriber: Subscriber) async throws {
        let last = try XCTUnwrap(node(of: stage, cluster))
        let others = (0..<3).filter { $0 != last }
        let before = stage.log.utf8.count
        for other in others { cluster.kill(other) }
        try await eventually(limit: .seconds(30), "the gateway sees that there is no broker") {
            let log = String(decoding: stage.log.utf8.dropFirst(before), as: UTF8.self)
            return log.contains("not connected to the broker") || log.contains("the broker acknowledges nothing")
        }
        XCTAssertEqual(stage.simulator.links.count, 1, "the link stays")
        for other in others { try cluster.start(other) }
        try await cluster.waitForLeader()
        try await receive(2_000, subscriber, limit: .seconds(120))
    }

    func testGoesOnWhenTheDiskWasFull() async throws {
        let stage = try await GatewayStage(every: 0.001)
        defer { stage.end() }
        try await stage.requireDisk(megabytes: 12)
        let subscriber = try await subscriber(stage)
        try stage.start()
        try await receive(200, subscriber)
        try stage.fillDisk()
        try await stage.waitForLog("No space is left on the file system")
        // Until the gateway has to count what it cannot keep in memory.
        try await stage.waitForLog("values arrive faster than they are stored", limit: .seconds(120))
        let memory = try await MemoryRecord.of(stage, for: .seconds(10))
        memory.expectFlat()
        XCTAssertEqual(stage.simulator.links.count, 1, "the link stays")
        try stage.clearDisk()
        try await stage.waitForLog("values are stored again")
        try await receive(500, subscriber)
        // At its end, the gateway stores what it keeps in memory.
        let result = try await finish(stage, subscriber)
        print("Disk full until values were missing, 1000 values a second: \(result); \(memory).")
        result.expectComplete()
        XCTAssertEqual(result.gaps, ["restarted", "overload"], stage.log)
    }

    func testBeginsWhileTheDiskIsFull() async throws {
        let stage = try await GatewayStage(every: 0.005)
        defer { stage.end() }
        try await stage.requireDisk(megabytes: 12)
        let subscriber = try await subscriber(stage)
        try stage.start()
        try await receive(200, subscriber)
        // Values wait in the store.
        stage.broker.suspend()
        _ = try await MemoryRecord.of(stage, for: .seconds(3))
        try stage.fillDisk()
        try await stage.waitForLog("No space is left on the file system")
        stage.kill()
        stage.broker.resume()
        let before = await subscriber.messages.count
        try stage.start()
        // What is stored arrives: the window at least, for which nothing is to be stored.
        try await receive(300, subscriber)
        try await stage.waitForLog("values cannot be stored")
        let meanwhile = await subscriber.messages.count - before
        try stage.clearDisk()
        try await stage.waitForLog("values are stored again")
        try await receive(400, subscriber)
        let result = try await finish(stage, subscriber)
        print("Disk full at the start, \(meanwhile) values sent meanwhile: \(result).")
        result.expectComplete()
        XCTAssertEqual(result.gaps, ["restarted", "restarted"])
    }

    func testNumbersAndOrderStayWhenTheClockIsSet() async throws {
        let stage = try await GatewayStage(every: 0.02)
        defer { stage.end() }
        try await stage.requireClock()
        let subscriber = try await subscriber(stage)
        try stage.start()
        try await receive(50, subscriber)
        // More than the age at which values are dropped, in both directions, and a little.
        let differences = ["-400d", "+400d", "-1h", "+1h", "+0d"]
        for difference in differences {
            try stage.setClock(difference)
            try await receive(100, subscriber)
        }
        // A process that begins before its values.
        try stage.setClock("-400d")
        stage.kill()
        try stage.start()
        try await receive(100, subscriber)
        // While values wait for the broker.
        stage.broker.suspend()
        let memory = try await MemoryRecord.of(stage, for: .seconds(3))
        try stage.setClock("+400d")
        _ = try await MemoryRecord.of(stage, for: .seconds(12))
        try stage.setClock("-400d")
        stage.broker.resume()
        try await receive(800, subscriber)
        let result = try await finish(stage, subscriber)
        print("Clock set \(differences.count + 3) times, with one kill: \(result); \(memory).")
        result.expectComplete()
        XCTAssertEqual(result.gaps, ["restarted", "restarted"])
        let years = Set(result.first.map { $0.time.prefix(4) })
        XCTAssertGreaterThanOrEqual(years.count, 3, "the clock was set: \(years)")
        XCTAssertEqual(stage.process?.exitStatus, 0)
    }

    func testReportsABrokerThatAcknowledgesNothing() async throws {
        let stage = try await GatewayStage(every: 0.02)
        defer { stage.end() }
        // The client's own limit is later.
        stage.keepAlive = 60
        let subscriber = try await subscriber(stage)
        try stage.start()
        try await receive(50, subscriber)
        let begin = ContinuousClock.now
        stage.broker.suspend()
        try await stage.waitForLog("the broker acknowledges nothing")
        XCTAssertGreaterThan(ContinuousClock.now - begin, .seconds(5))
        stage.broker.resume()
        try await stage.waitForLog("the broker acknowledges again")
        XCTAssertEqual(stage.simulator.links.count, 1, "the link stays")
        try await receive(400, subscriber)
        XCTAssertFalse(stage.log.contains("not connected to the broker"), stage.log)
        let result = try await finish(stage, subscriber)
        print("Broker silent for 8 s: \(result).")
        result.expectComplete()
        XCTAssertEqual(result.gaps.count, 1)
    }

    func testValuesGoOnAfterBluetoothdWasKilled() async throws {
        let stage = try await GatewayStage(every: 0.005)
        defer { stage.end() }
        let subscriber = try await subscriber(stage)
        try stage.start()
        try await receive(100, subscriber)
        let kills = 3
        for _ in 1...kills {
            stage.simulator.simulateDaemonDeath()
            stage.simulator.simulateDaemonReturn()
            try await receive(100, subscriber)
        }
        let result = try await finish(stage, subscriber)
        print("bluetoothd killed \(kills) times: \(result).")
        result.expectComplete()
        XCTAssertGreaterThanOrEqual(result.gaps.count, 1 + kills, "the start and the restarts")
    }

    func testItEndsInOrder() async throws {
        // With the least window, values compete with the message that it is offline.
        for inFlight in [100, 1] {
            let stage = try await GatewayStage(every: 0.005)
            defer { stage.end() }
            stage.inFlight = inFlight
            let states = try await Subscriber([stage.broker.address], ["bluecap/attic/state"])
            let subscriber = try await subscriber(stage)
            try stage.start()
            try await receive(20, subscriber)
            try await stage.stop()
            XCTAssertEqual(stage.process?.exitStatus, 0)
            XCTAssertEqual(stage.simulator.links.count, 0, "the link has ended")
            try await eventually(limit: .seconds(5), "offline, with a window of \(inFlight)") {
                guard let last = await states.messages.last else { return false }
                return (try? JSONDecoder().decode(GatewayStatePayload.self, from: last.payload))?.state == .offline
            }
            await states.stop()
            await subscriber.stop()
        }
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
