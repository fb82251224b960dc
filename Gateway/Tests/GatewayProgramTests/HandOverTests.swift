import BlueZSimulator
import Foundation
import GatewayCore
import GatewayTestSupport
import XCTest

/// Three gateways and a device that walks, in real time, with a real broker.
final class HandOverTests: XCTestCase {
    private static let isLong = ProcessInfo.processInfo.environment["BLUECAP_LONG"] == "1"

    func testADeviceThatWalksIsHandedOverWithMosquitto() async throws {
        let broker = try await MosquittoBroker()
        try await play(walks: Self.isLong ? 20 : 2, [broker.address])
    }

    func testADeviceThatWalksIsHandedOverWithACluster() async throws {
        let cluster = try await NatsCluster()
        try await play(walks: Self.isLong ? 5 : 1, cluster.addresses)
    }

    /// Plays walks, four at a time, each with gateways of its own.
    private func play(walks: Int, _ brokers: [String]) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for walk in 1...walks {
                if walk > 4 { try await group.next() }
                group.addTask { @Sendable in try await Self.play(walk, brokers) }
            }
            try await group.waitForAll()
        }
    }

    /// One walk: from gateway to gateway, with a pause at each place, for about a minute.
    private static func play(_ walk: Int, _ brokers: [String]) async throws {
        let seed = SeededNumbers.seed &* 1_000 &+ UInt64(walk)
        var numbers = SeededNumbers(seed)
        let stage = try HandOverStage(brokers: brokers, prefix: "walk\(walk)", seed: seed)
        defer { stage.end() }
        let subscriber = try await Subscriber(brokers, ["walk\(walk)/+/value/#", "walk\(walk)/+/gap/#"])
        let path = Path(places: HandOverStage.places, seconds: 60, using: &numbers)
        stage.move(to: path.place(at: 0))
        try stage.start()

        var leads = Leads()
        let begin = ContinuousClock.now
        var step = 0
        while true {
            let time = (ContinuousClock.now - begin) / .seconds(1)
            if time >= path.end { break }
            // Fifty numbers a second.
            stage.sendNumber()
            if step % 10 == 0 {
                stage.move(to: path.place(at: time))
                leads.check(at: time, place: path.place(at: time), linked: stage.linked)
            }
            step += 1
            try await Task.sleep(until: begin + .milliseconds(20 * step))
        }
        let lastLinked = stage.linked
        try await stage.stop()
        // What has not arrived then is missing below.
        try? await eventually(limit: .seconds(20), "all numbers") {
            let arrived = try await Self.received(subscriber).values.flatMap(\.self).compactMap(\.number)
            return Set(arrived).isSuperset(of: stage.sent)
        }
        let received = try await Self.received(subscriber)
        var all: Set<UInt32> = []
        for messages in received.values {
            let last = messages.map(\.sequence).max() ?? 0
            Deliveries(messages, stored: (last, remaining: [])).expectComplete()
            all.formUnion(messages.compactMap(\.number))
        }
        let lost = Set(stage.sent).subtracting(all).sorted()
        print(
            "seed \(seed): \(stage.links.begun) links, \(leads.checked) leads, the slowest taken over after",
            String(format: "%.1f s,", leads.slowest), "\(stage.sent.count) numbers sent, \(lost.count) lost,",
            "\(received.values.joined().count { $0.repeated == true }) repeated")
        // For who waits for signs of life.
        fflush(nil)
        XCTAssertEqual(stage.links.most, 1, "never two links")
        XCTAssertGreaterThan(stage.links.begun, 1, "no hand-over")
        XCTAssertGreaterThan(leads.checked, 0)
        XCTAssertEqual(leads.failures, [], stage.logs)
        XCTAssertEqual(lastLinked.count, 1)
        XCTAssertEqual(lost, [], stage.logs)
        XCTAssertEqual(all.subtracting(stage.sent), [], "the device has not sent them")
        await subscriber.stop()
    }

    /// What each gateway has published, by its name.
    private static func received(_ subscriber: Subscriber) async throws -> [String: [Delivered]] {
        var received: [String: [Delivered]] = [:]
        for message in await subscriber.messages {
            let gateway = String(message.topic.split(separator: "/")[1])
            received[gateway, default: []].append(try JSONDecoder().decode(Delivered.self, from: message.payload))
        }
        return received
    }
}

/// A way with pauses.
private struct Path {
    private var legs: [(start: Double, from: Double, to: Double, speed: Double)] = []
    /// The time in seconds at which the last pause, which is long enough for a hand-over, ends.
    private(set) var end = 0.0

    /// Each leg leads from the range of one gateway to that of another, where that one leads clearly.
    init(places: [Double], seconds: Double, using numbers: inout SeededNumbers) {
        var gateway = Int.random(in: places.indices, using: &numbers)
        var (time, place) = (0.0, places[gateway] + numbers.time(-4...4))
        while time < seconds {
            // The first leg begins when a gateway has had the time to connect; after it the device stays for a hand-over.
            time += legs.isEmpty ? 14 : legs.count == 1 ? 22 : numbers.time(5...20)
            gateway = (gateway + Int.random(in: 1..<places.count, using: &numbers)) % places.count
            let goal = places[gateway] + numbers.time(-4...4)
            let speed = numbers.time(2...5)
            legs.append((time, place, goal, speed))
            time += abs(goal - place) / speed
            place = goal
        }
        end = time + 22
    }

    func place(at time: Double) -> Double {
        guard let leg = legs.last(where: { $0.start <= time }) else { return legs[0].from }
        let way = min(abs(leg.to - leg.from), (time - leg.start) * leg.speed)
        return leg.from + (leg.to < leg.from ? -way : way)
    }
}

/// Checks that the gateway that receives the device best has its link 20 s after the beginning of its lead.
private struct Leads {
    private(set) var checked = 0
    private(set) var slowest = 0.0
    private(set) var failures: [String] = []
    private var lead: Lead?

    private struct Lead {
        var gateway: Int
        var since: Double
        var hasLink = false
    }

    /// - Parameters:
    ///   - time: Seconds since the start of the gateways.
    ///   - place: Where the device is.
    ///   - linked: The gateways that have a link to it.
    mutating func check(at time: Double, place: Double, linked: [Int]) {
        let strengths = HandOverStage.places.indices.map { HandOverStage.strength(at: place, of: $0) }
        let best = strengths.indices.max { strengths[$0] < strengths[$1] }!
        let second = strengths.indices.filter { $0 != best }.map { strengths[$0] }.max()!
        // Two decibels more than the hysteresis: each strength that is received is rounded.
        guard strengths[best] - second >= 8 else { return lead = nil }
        var current = lead?.gateway == best ? lead! : Lead(gateway: best, since: time)
        defer { lead = current }
        // A hand-over to another gateway that was under way when the lead began may still happen.
        if linked == [best] {
            if !current.hasLink {
                checked += 1
                slowest = max(slowest, time - current.since)
            }
            current.hasLink = true
        } else {
            current.hasLink = false
            guard time - current.since > 20 else { return }
            failures.append(
                "\(HandOverStage.names[best]) leads since \(current.since) s, and at \(time) s \(linked) have links")
            current.since = .infinity
        }
    }
}
