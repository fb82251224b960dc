import Foundation
import GatewayCore
import GatewayTestSupport
import XCTest

/// The decision of several gateways in virtual time, with a broker in memory.
final class ClaimWalkTests: XCTestCase {
    /// What one walk found.
    private struct Outcome: Sendable {
        var failures: [String] = []
        var trace: [String] = []
        var checkedLeads = 0
        var links = 0
        var events = 0
    }

    private static let environment = ProcessInfo.processInfo.environment

    /// Plays one walk: fifty seconds to two minutes with disturbances, or without, and the time after which all is in
    /// order.
    private static func walk(
        _ number: Int, seed: UInt64, options: ClaimOptions = ClaimOptions(), traced: Bool = false
    ) -> Outcome {
        var numbers = SeededNumbers(seed &* 1_000_003 &+ UInt64(number))
        let count = Int.random(in: 3...5, using: &numbers)
        let world = ClaimWorld(gateways: count, seed: numbers.next(), options: options)
        if traced { world.trace = [] }
        world.advertisesWhileLinked = numbers.chance(0.6)
        world.reportsLinkStrength = numbers.chance(0.7)
        for (index, node) in world.nodes.enumerated() { node.position = Double(index) * 20 + numbers.time(-4...4) }

        // From place to place, with a pause at each.
        let (isCalm, length) = (numbers.chance(0.5), Double(count - 1) * 20)
        let walking = isCalm ? 70.0 : numbers.time(50...90)
        var chaos = walking
        var legs: [(start: Double, from: Double, to: Double, speed: Double)] = []
        var (time, place) = (0.0, numbers.time(0...length))
        while time < walking {
            let goal = numbers.time(0...length)
            let speed = numbers.time(1...4)
            legs.append((time, place, goal, speed))
            chaos = max(chaos, time + abs(goal - place) / speed)
            time += abs(goal - place) / speed + numbers.time(5...30)
            place = goal
        }
        world.path = { time in
            guard let leg = legs.last(where: { $0.start <= time }) else { return 0 }
            let way = min(abs(leg.to - leg.from), (time - leg.start) * leg.speed)
            return leg.from + (leg.to < leg.from ? -way : way)
        }

        if !isCalm {
            for _ in 0..<Int.random(in: 1...5, using: &numbers) {
                let node = world.nodes.randomElement(using: &numbers)!
                let kind = Int.random(in: 0..<6, using: &numbers)
                let (short, long) = (numbers.time(0.5...4), numbers.time(3...30))
                let (isAtOnce, keeps) = (numbers.chance(0.5), numbers.chance(0.8))
                world.at(numbers.time(0...walking)) { [unowned world] in
                    switch kind {
                    case 0: world.kill(node, will: isAtOnce ? 0.05 : 7.5, restart: long)
                    case 1: world.crash(for: long, keepsRetained: keeps)
                    case 2: world.loseLeader(for: long)
                    case 3 where node.isAlive && node.isAttached && world.isBrokerUp && world.hasLeader:
                        world.detach(node, will: 0.05)
                        world.noticeLoss(node)
                        world.attach(node, after: short / 2)
                    case 4: world.stall(node, by: short)
                    default:
                        world.disturb()
                        world.give(node, .permitted(ClaimWorld.device, isAtOnce))
                        world.at(world.now + long) { world.give(node, .permitted(ClaimWorld.device, true)) }
                    }
                }
            }
        }

        var outcome = Outcome()
        var lead: (node: Int, since: Double)?
        world.observe = { [unowned world] in
            // Ten decibels: what the noise of both sides leaves of them exceeds the six of the hysteresis.
            let strengths = world.nodes.indices.map(world.strength)
            let best = strengths.indices.max { strengths[$0] < strengths[$1] }!
            let second = strengths.indices.filter { $0 != best }.map { strengths[$0] }.max()!
            let isClear = strengths[best] >= -88 && strengths[best] - second >= 10
            let isFree = !world.nodes.contains { $0.link == .up || $0.link == .ending }
            let canBeReceived = world.advertisesWhileLinked || isFree || world.nodes[best].link == .up
            guard isClear, canBeReceived, world.now - world.disturbed > 60 || isCalm && world.now > 8 else {
                lead = nil
                return
            }
            if lead?.node != best { lead = (best, world.now) }
            guard let since = lead?.since, world.now - since >= 20 else { return }
            outcome.checkedLeads += 1
            if world.nodes[best].link != .up {
                world.fail("\(world.nodes[best].name) leads since \(since), and has no link")
                lead = nil
            }
        }
        world.play(until: chaos)
        world.play(until: max(chaos, world.disturbed) + 30)
        world.play(until: isCalm ? chaos + 35 : max(chaos, world.disturbed) + 80)

        // A hand-over, or the end of a weak link, may be under way just then.
        for second in 0...20 {
            let linked = world.nodes.filter { $0.link == .up }.map(\.name)
            let claims = world.retained.values.compactMap { message in
                if case .claim(_, let name, let claim?) = message.event, claim.isExclusive { name } else { nil }
            }
            if linked.count == 1, claims == linked { break }
            if second == 20 { world.fail("at the end \(linked) have links, and the broker has claims of \(claims)") }
            world.play(until: world.now + 1)
        }
        outcome.failures = world.failures
        outcome.trace = world.trace ?? []
        outcome.links = world.links.count
        outcome.events = world.events
        return outcome
    }

    /// A thousand walks, or the number in `BLUECAP_WALKS`; `BLUECAP_WALK` plays one and prints what happens.
    func testAWalkingDeviceHasOneLinkAndTheBetterGatewayHasIt() {
        let seed = SeededNumbers.seed
        if let one = Self.environment["BLUECAP_WALK"].flatMap(Int.init) {
            let outcome = Self.walk(one, seed: seed, traced: true)
            print(outcome.trace.joined(separator: "\n"))
            return XCTAssertEqual(outcome.failures, [])
        }
        let count = Self.environment["BLUECAP_WALKS"].flatMap(Int.init) ?? 1_000
        let outcomes = Outcomes(count)
        DispatchQueue.concurrentPerform(iterations: 4) { part in
            for number in stride(from: part, to: count, by: 4) {
                let outcome = Self.walk(number, seed: seed)
                outcomes.set(number, outcome)
            }
        }
        let all = outcomes.all
        for (number, outcome) in all.enumerated() where !outcome.failures.isEmpty {
            XCTFail("BLUECAP_SEED=\(seed) BLUECAP_WALK=\(number): \(outcome.failures.prefix(2))")
        }
        let leads = all.reduce(0) { $0 + $1.checkedLeads }
        let links = all.reduce(0) { $0 + $1.links }
        let events = all.reduce(0) { $0 + $1.events }
        print("seed \(seed): \(count) walks, \(links) links, \(leads) leads checked, \(events) events")
        XCTAssertGreaterThan(leads, count * 3, "the walks hardly check who leads")
        XCTAssertGreaterThan(links, count, "the walks hardly make links")
    }

    /// The walks find what they are to exclude if one of its causes is allowed.
    func testTheWalksFindTwoLinksWithoutTheSettlingTime() {
        var options = ClaimOptions()
        options.settlingTime = 0
        options.listeningTime = 0
        let found = (0..<100).contains { number in
            Self.walk(number, seed: SeededNumbers.seed, options: options).failures.contains { $0.contains("connects") }
        }
        XCTAssertTrue(found)
    }

    /// Devices that stay at a place that two gateways receive almost equally stay with one of them.
    func testNoiseWithinTheHysteresisMovesNoDevice() {
        for number in 0..<60 {
            let world = ClaimWorld(gateways: 3, seed: SeededNumbers.seed &+ UInt64(number))
            world.advertisesWhileLinked = number % 3 != 0
            world.noise = 6
            world.strengths = { index, _ in [-62, -60, -64][index] }
            world.play(until: 300)
            XCTAssertEqual(world.failures, [])
            XCTAssertEqual(world.links.count, 1, "seed \(number): \(world.links)")
        }
    }

    /// A device that is silent while it has a link is heard by no other gateway: its gateway ends the link when it is
    /// weak, and all listen.
    func testASilentDeviceThatWalksAwayIsTakenOverWhenItsLinkIsWeak() {
        for number in 0..<30 {
            let world = ClaimWorld(gateways: 3, seed: SeededNumbers.seed &+ UInt64(number))
            world.advertisesWhileLinked = false
            world.strengths = { index, time in
                index == 0 ? max(-84, -50 - max(0, time - 30)) : index == 1 ? -90 + min(40, max(0, time - 30)) : -94
            }
            // -78 dBm at 58 s; weak for ten seconds, the end of the link, and four seconds to listen.
            world.play(until: 58 + 22)
            XCTAssertEqual(world.failures, [])
            XCTAssertEqual(world.links.map(\.node).suffix(2), [0, 1], "seed \(number)")
        }
    }

    /// A weak link that no other gateway can replace is ended less and less often.
    func testAWeakLinkThatNoOtherGatewayReplacesIsLeftMoreAndMore() {
        let world = ClaimWorld(gateways: 2, seed: SeededNumbers.seed)
        world.advertisesWhileLinked = false
        world.strengths = { index, _ in index == 0 ? -84 : -120 }
        world.play(until: 3_600)
        XCTAssertEqual(world.failures, [])
        XCTAssertTrue((6...14).contains(world.links.count), "\(world.links.map(\.time))")
    }

    /// A gateway that alone has no broker keeps its link. If another took the device meanwhile, exactly one gives way.
    func testOfTwoLinksAfterAnIsolationExactlyOneEnds() {
        for number in 0..<60 {
            let world = ClaimWorld(gateways: 3, seed: SeededNumbers.seed &+ UInt64(number))
            let better = number % 2 == 0 ? 0 : 1
            world.strengths = { index, time in
                switch index {
                case 2: -120
                case better where time < 60: -50
                default: time < 60 ? -53 : -51
                }
            }
            world.play(until: 30)
            let holder = world.nodes.first { $0.link == .up }!
            world.detach(holder, will: 7.5)
            world.noticeLoss(holder)
            world.play(until: 60)
            XCTAssertEqual(world.nodes.filter { $0.link == .up }.count, 2, "the isolated link stays")
            world.attach(holder, after: 0)
            world.play(until: 75)
            XCTAssertEqual(world.nodes.filter { $0.link == .up }.count, 1, "seed \(number)")
            world.play(until: 120)
            XCTAssertEqual(world.links.count, 2, "seed \(number): one gave way, and not both")
        }
    }

    /// The claim of a gateway that ended while there was no broker, and so without a will, falls because it is not
    /// repeated.
    func testAClaimWhoseGatewayEndedWithTheBrokerFalls() {
        for number in 0..<20 {
            let world = ClaimWorld(gateways: 3, seed: SeededNumbers.seed &+ UInt64(number))
            world.strengths = { index, _ in [-50, -60, -70][index] }
            world.play(until: 30)
            XCTAssertEqual(world.nodes.map { $0.link == .up }, [true, false, false])
            world.crash(for: 20, keepsRetained: true)
            world.play(until: 40)
            world.kill(world.nodes[0], will: 1_000, restart: 1_000)
            world.play(until: 140)
            XCTAssertEqual(world.failures, [])
            XCTAssertEqual(world.nodes.map { $0.link == .up }, [false, true, false], "seed \(number)")
        }
    }

    /// Results of several threads.
    private final class Outcomes: @unchecked Sendable {
        private let lock = NSLock()
        private var held: [Outcome]

        init(_ count: Int) { held = Array(repeating: Outcome(), count: count) }

        func set(_ index: Int, _ outcome: Outcome) { lock.withLock { held[index] = outcome } }

        var all: [Outcome] { lock.withLock { held } }
    }
}
