import Foundation
import GatewayCore
import XCTest

/// The rules one by one: one machine, whose events are written out.
final class ClaimMachineTests: XCTestCase {
    private let device = ClaimWorld.device

    /// A machine, its time, and a broker that sends its claims back.
    private struct Desk {
        var machine: ClaimMachine
        var now = 0.0
        var isEchoing = true
        private(set) var published: [Claim.State?] = []
        private(set) var commands: [String] = []
        private(set) var last: Claim?
        private var number: UInt64 = 0

        init(_ name: String = "b", linkLimit: Int = 3) {
            machine = ClaimMachine(gateway: name, session: 7, linkLimit: linkLimit)
        }

        mutating func give(_ event: ClaimMachine.Event) {
            for order in machine.handle(event, at: now) {
                switch order {
                case .publish(let device, let claim):
                    if last?.state != claim.state { published.append(claim.state) }
                    last = claim
                    if isEchoing { give(.claim(device, gateway: machine.gateway, claim)) }
                case .remove(let device):
                    published.append(nil)
                    last = nil
                    if isEchoing { give(.claim(device, gateway: machine.gateway, nil)) }
                case .connect(let device):
                    commands.append("connect")
                    if isConnecting { give(.linkUp(device)) }
                case .disconnect(let device):
                    commands.append("disconnect")
                    if isConnecting { give(.linkDown(device)) }
                case .announce: commands.append("announce")
                }
            }
        }

        /// Whether links begin and end at once.
        var isConnecting = true

        /// Passes time, with an advertisement each half second, and another gateway's claim each four seconds.
        mutating func pass(
            _ seconds: Double, _ strength: Double? = nil, _ others: [(String, Claim.State, Double?)] = []
        ) {
            let end = now + seconds
            var step = 0
            while now < end {
                if step % 8 == 0 { for other in others { claim(other.0, other.1, other.2) } }
                if let strength { give(.sighting(ClaimWorld.device, strength: strength)) }
                let next = min(end, now + 0.5)
                while let wake = machine.nextWake, wake <= next {
                    now = max(now, wake)
                    give(.time)
                }
                now = next
                step += 1
            }
        }

        mutating func claim(
            _ gateway: String, _ state: Claim.State?, _ strength: Double? = nil, bid: Double? = nil, to: String? = nil,
            freeLinks: Int = 3, session: UInt32 = 1
        ) {
            number += 1
            let claim = state.map {
                Claim(
                    $0, strength: strength, bid: bid ?? strength ?? -100, freeLinks: freeLinks, successor: to,
                    session: session, number: number)
            }
            give(.claim(ClaimWorld.device, gateway: gateway, claim))
        }

        mutating func connected() {
            give(.brokerConnected)
            pass(6)
        }

        /// Takes the device, which is free.
        mutating func takeDevice() {
            connected()
            for _ in 0..<20 where activity != .linked { pass(0.5, -60) }
        }

        var activity: ClaimMachine.Activity { machine.activity(of: ClaimWorld.device) }
    }

    // MARK: Free devices

    func testAFreeDeviceIsListenedToClaimedAndConnected() {
        var desk = Desk()
        desk.takeDevice()
        XCTAssertEqual(desk.published, [.takes, .holds])
        XCTAssertEqual(desk.commands, ["connect"])
        XCTAssertEqual(desk.activity, .linked)
    }

    func testNothingIsConnectedBeforeTheBrokerHasSentTheClaimBack() {
        var desk = Desk()
        desk.isEchoing = false
        desk.takeDevice()
        XCTAssertEqual(desk.activity, .takes)
        desk.give(.claim(device, gateway: "b", desk.last))
        desk.pass(1.4, -60)
        XCTAssertEqual(desk.activity, .takes)
        desk.pass(1, -60)
        XCTAssertEqual(desk.activity, .linked)
    }

    func testWithoutABrokerNothingIsConnected() {
        var desk = Desk()
        desk.pass(60, -50)
        XCTAssertEqual(desk.published, [])
        XCTAssertEqual(desk.commands, [])
    }

    /// Both sides let the same one of two claims precede.
    func testTheOrderOfTwoClaims() {
        let table: [(line: UInt, bids: (Double, Double), free: (Int, Int), names: (String, String), isFirst: Bool)] = [
            (#line, (-60, -70), (0, 3), ("b", "a"), true), (#line, (-70, -60), (3, 0), ("a", "b"), false),
            (#line, (-60, -58.5), (3, 1), ("b", "a"), true), (#line, (-58.5, -60), (1, 3), ("a", "b"), false),
            (#line, (-60, -59), (2, 2), ("a", "b"), true), (#line, (-60, -59), (2, 2), ("b", "a"), false),
            (#line, (-60, -60), (2, 2), ("a", "a1"), true), (#line, (-60, -60), (2, 2), ("z", "ä"), true),
        ]
        for row in table {
            func claim(_ bid: Double, _ free: Int) -> Claim {
                Claim(.takes, strength: -90, bid: bid, freeLinks: free, session: 1, number: 1)
            }
            let (left, right) = (claim(row.bids.0, row.free.0), claim(row.bids.1, row.free.1))
            XCTAssertEqual(
                Claim.precedes(left, of: row.names.0, right, of: row.names.1), row.isFirst, line: row.line)
            XCTAssertEqual(
                Claim.precedes(right, of: row.names.1, left, of: row.names.0), !row.isFirst, line: row.line)
        }
    }

    func testOfTwoThatClaimAtOnceExactlyOneGivesWay() {
        let table: [(line: UInt, other: String, bid: Double, free: Int, gives: Bool)] = [
            (#line, "c", -40, 3, true), (#line, "c", -80, 3, false), (#line, "a", -60, 3, true),
            (#line, "c", -60, 3, false), (#line, "c", -60, 4, true), (#line, "a", -60, 2, false),
        ]
        for row in table {
            var desk = Desk()
            desk.connected()
            desk.pass(3, -60)
            XCTAssertEqual(desk.activity, .takes, line: row.line)
            desk.claim(row.other, .takes, row.bid, freeLinks: row.free)
            XCTAssertEqual(desk.activity, row.gives ? .none : .takes, line: row.line)
            desk.pass(5, -60, [(row.other, .takes, row.bid)])
            XCTAssertEqual(desk.commands, [], "neither connects while the other claims", line: row.line)
            desk.claim(row.other, nil)
            desk.pass(5, -60)
            XCTAssertEqual(desk.commands, ["connect"], line: row.line)
        }
    }

    func testAClaimThatIsPrecededByALinkIsRemoved() {
        for state in [Claim.State.holds, .yields] {
            var desk = Desk()
            desk.connected()
            desk.pass(3, -60)
            desk.claim("z", state, -90)
            XCTAssertEqual(desk.published, [.takes, nil])
        }
    }

    func testWithoutAFreeLinkNothingIsClaimed() {
        var desk = Desk(linkLimit: 0)
        desk.takeDevice()
        XCTAssertEqual(desk.published, [])
        desk.give(.linkLimit(1))
        desk.pass(8, -60)
        XCTAssertEqual(desk.activity, .linked)
        let second = DeviceName("c0ffee00180e")!
        for _ in 0..<20 {
            desk.give(.sighting(second, strength: -40))
            desk.pass(0.5)
        }
        XCTAssertEqual(desk.machine.activity(of: second), .none)
    }

    func testADeviceThatIsNotPermittedIsLeftAloneAndReleased() {
        var desk = Desk()
        desk.give(.permitted(device, false))
        desk.takeDevice()
        XCTAssertEqual(desk.published, [])
        desk.give(.permitted(device, true))
        desk.pass(8, -60)
        XCTAssertEqual(desk.activity, .linked)
        desk.give(.permitted(device, false))
        XCTAssertEqual(desk.published, [.takes, .holds, .yields, nil])
        XCTAssertEqual(desk.commands, ["connect", "disconnect"])
    }

    func testFailedAttemptsAreRepeatedLessAndLessOften() {
        var desk = Desk()
        desk.isConnecting = false
        desk.takeDevice()
        var times: [Double] = []
        for _ in 0..<4 {
            times.append(desk.now)
            desk.give(.linkDown(device))
            XCTAssertNil(desk.last, "a claim without a link is removed")
            let attempts = desk.commands.count
            while desk.commands.count == attempts, desk.now < 300 { desk.pass(0.5, -60) }
        }
        let pauses = zip(times.dropFirst(), times).map { $0 - $1 }
        XCTAssertEqual(desk.commands.count, 5)
        XCTAssertTrue(zip(pauses.dropFirst(), pauses).allSatisfy { $0 > $1 + 1 }, "\(pauses)")
    }

    func testAnAttemptThatDoesNotEndIsEnded() {
        var desk = Desk()
        desk.isConnecting = false
        desk.takeDevice()
        desk.pass(46, -60)
        XCTAssertEqual(desk.commands, ["connect", "disconnect"])
        XCTAssertEqual(desk.last?.state, .yields, "the claim stays until there is certainly no link")
        desk.pass(11, -60)
        XCTAssertEqual(desk.commands, ["connect", "disconnect", "disconnect"])
        desk.give(.linkDown(device))
        XCTAssertNil(desk.last)
    }

    func testALinkWithoutAClaimIsEnded() {
        var desk = Desk()
        desk.give(.linkUp(device))
        XCTAssertEqual(desk.commands, ["disconnect"])
    }

    // MARK: Hand-over

    /// The lead of this gateway over a holder, in decibels, for how long, and whether it asks for the device.
    func testTheHysteresis() {
        let table: [(line: UInt, strength: Double, holder: Double?, seconds: Double, asks: Bool)] = [
            (#line, -64, -70, 12, true), (#line, -64, -70, 9, false), (#line, -65, -70, 60, false),
            (#line, -80, nil, 12, true), (#line, -96, nil, 60, false), (#line, -80, -60, 60, false),
        ]
        for row in table {
            var desk = Desk()
            desk.connected()
            desk.pass(row.seconds, row.strength, [("a", .holds, row.holder)])
            XCTAssertEqual(desk.activity, row.asks ? .wants : .none, line: row.line)
            XCTAssertEqual(desk.commands, [], line: row.line)
        }
    }

    func testALeadThatPausesBeginsAgain() {
        var desk = Desk()
        desk.connected()
        desk.pass(8, -60, [("a", .holds, -70)])
        desk.pass(4, -60, [("a", .holds, -62)])
        desk.pass(8, -60, [("a", .holds, -70)])
        XCTAssertEqual(desk.activity, .none)
        desk.pass(4, -60, [("a", .holds, -70)])
        XCTAssertEqual(desk.activity, .wants)
        desk.pass(4, -60, [("a", .holds, -61)])
        XCTAssertEqual(desk.published, [.wants, nil], "the request is withdrawn")
    }

    func testTheSuccessorConnectsOnlyAfterTheClaimOfTheHolderIsGone() {
        var desk = Desk()
        desk.connected()
        desk.pass(12, -60, [("a", .holds, -70)])
        desk.claim("a", .yields, -70, to: "b")
        XCTAssertEqual(desk.activity, .takes)
        desk.pass(8, -60, [])
        XCTAssertEqual(desk.commands, [])
        desk.claim("a", nil)
        XCTAssertEqual(desk.commands, ["connect"])
        XCTAssertEqual(desk.published, [.wants, .takes, .holds])
    }

    func testADeviceThatIsGivenToAnotherIsLeftToIt() {
        var desk = Desk()
        desk.connected()
        desk.pass(12, -60, [("a", .holds, -70)])
        desk.claim("a", .yields, -70, to: "c")
        XCTAssertEqual(desk.published, [.wants, nil])
        // The lead over both goes on: the other one is asked at once.
        desk.claim("c", .takes, -70)
        desk.claim("a", nil)
        desk.claim("c", .holds, -70)
        desk.pass(1, -60)
        XCTAssertEqual(desk.published, [.wants, nil, .wants])
    }

    func testTheHolderEndsItsLinkBeforeItsClaim() {
        var desk = Desk()
        desk.takeDevice()
        desk.isConnecting = false
        desk.pass(1, -70)
        desk.pass(9, -70, [("c", .wants, -60)])
        XCTAssertEqual(desk.last?.state, .yields)
        XCTAssertEqual(desk.last?.successor, "c")
        XCTAssertEqual(desk.commands, ["connect", "disconnect"])
        desk.give(.linkDown(device))
        XCTAssertEqual(desk.published, [.takes, .holds, .yields, nil])
        XCTAssertEqual(desk.activity, .none)
    }

    func testTheHolderKeepsTheDeviceIfTheRequestIsNoLongerTrue() {
        var desk = Desk()
        desk.takeDevice()
        desk.pass(5, -60, [("c", .wants, -59)])
        XCTAssertEqual(desk.activity, .linked)
    }

    func testTheHolderPublishesTheStrengthOfItsLink() {
        var desk = Desk()
        desk.takeDevice()
        for _ in 0..<20 {
            desk.give(.linkStrength(device, -81))
            desk.pass(1)
        }
        XCTAssertEqual(desk.last?.strength, -81)
        desk.pass(20)
        XCTAssertEqual(desk.activity, .linked)
        XCTAssertEqual(desk.last?.state, .holds)
        XCTAssertNil(desk.last?.strength as Double?, "a strength that is not measured again becomes unknown")
    }

    /// A device that advertises while it has a link is received by all: no gateway needs to end a link to find that
    /// out.
    func testAWeakLinkIsEndedOnlyIfTheDeviceIsSilentAndAnotherGatewayIsThere() {
        for (isSilent, isAlone, ends) in [(true, false, true), (false, false, false), (true, true, false)] {
            var desk = Desk()
            if !isAlone { desk.give(.gateway("a", isOnline: true)) }
            desk.takeDevice()
            for _ in 0..<15 {
                desk.give(.linkStrength(device, -85))
                desk.pass(1, isSilent ? nil : -85)
            }
            XCTAssertEqual(desk.commands.contains("disconnect"), ends)
        }
    }

    // MARK: Ends of gateways and of the broker

    func testTheWillOfAGatewayRemovesItsClaims() {
        var desk = Desk()
        desk.connected()
        desk.pass(5, -70, [("a", .holds, -50)])
        XCTAssertEqual(desk.machine.holder(of: device), "a")
        desk.give(.gateway("a", isOnline: false))
        XCTAssertNil(desk.machine.holder(of: device))
        desk.pass(3.9, -70)
        XCTAssertEqual(desk.published, [], "the gateway may only have lost its connection")
        desk.pass(8, -70)
        XCTAssertEqual(desk.commands, ["connect"])
    }

    func testAClaimFromBeforeTheWillDoesNotReturn() {
        var desk = Desk()
        desk.connected()
        let old = Claim(.holds, strength: -50, bid: -50, session: 1, number: 40)
        desk.give(.claim(device, gateway: "a", old))
        desk.give(.gateway("a", isOnline: false))
        desk.give(.claim(device, gateway: "a", old))
        XCTAssertNil(desk.machine.holder(of: device))
        let new = Claim(.holds, strength: -50, bid: -50, session: 1, number: 41)
        desk.give(.claim(device, gateway: "a", new))
        XCTAssertEqual(desk.machine.holder(of: device), "a", "also if its state arrives later")
    }

    func testAClaimThatIsDeliveredAgainIsOlderThanTheOneThatHasArrived() {
        var desk = Desk()
        desk.connected()
        func claim(_ state: Claim.State, _ session: UInt32, _ number: UInt64) -> ClaimMachine.Event {
            .claim(device, gateway: "a", Claim(state, strength: -50, bid: -50, session: session, number: number))
        }
        desk.give(claim(.holds, 1, 8))
        desk.give(claim(.wants, 1, 7))
        XCTAssertEqual(desk.machine.holder(of: device), "a")
        desk.give(claim(.wants, 2, 1))
        XCTAssertNil(desk.machine.holder(of: device), "another process of the gateway counts from the beginning")
    }

    func testAClaimThatIsNotRepeatedFalls() {
        var desk = Desk()
        desk.connected()
        desk.pass(30)
        desk.claim("a", .holds, -50)
        desk.pass(14, -70)
        XCTAssertEqual(desk.published, [])
        desk.pass(6, -70)
        XCTAssertEqual(desk.published, [.takes])
        desk.pass(10, -70)
        XCTAssertEqual(desk.activity, .takes, "its gateway has time to publish it again")
        desk.claim("a", .holds, -50)
        XCTAssertEqual(desk.activity, .none)
        XCTAssertEqual(desk.commands, [])
    }

    func testALinkStaysWhileThereIsNoBroker() {
        var desk = Desk()
        desk.takeDevice()
        desk.give(.brokerDisconnected)
        desk.pass(600, -90, [])
        XCTAssertEqual(desk.activity, .linked)
        desk.give(.brokerConnected)
        XCTAssertEqual(desk.last?.state, .holds)
        XCTAssertEqual(desk.commands, ["connect"])
    }

    func testWithoutABrokerOnlyTheLastHolderConnectsAgain() {
        var desk = Desk()
        desk.takeDevice()
        desk.give(.brokerDisconnected)
        desk.pass(5)
        desk.give(.linkDown(device))
        desk.pass(5)
        XCTAssertEqual(desk.activity, .waiting)
        XCTAssertEqual(desk.commands, ["connect"], "the device is not received")
        desk.pass(1, -60)
        XCTAssertEqual(desk.commands, ["connect", "connect"])

        var other = Desk()
        other.connected()
        other.claim("a", .holds, -60)
        other.give(.brokerDisconnected)
        other.pass(120, -50)
        XCTAssertEqual(other.commands, [])
    }

    func testALinkThatWasLostWithoutABrokerIsFreeWhenItReturns() {
        var desk = Desk()
        desk.takeDevice()
        desk.give(.brokerDisconnected)
        desk.give(.linkDown(device))
        desk.give(.brokerConnected)
        XCTAssertEqual(desk.published, [.takes, .holds, nil])
    }

    /// Claims that the broker has lost are published again by their gateways first.
    func testAfterAConnectionNothingIsClaimedForAWhile() {
        var desk = Desk()
        desk.pass(20, -50)
        desk.give(.brokerConnected)
        desk.pass(4.9, -50)
        XCTAssertEqual(desk.published, [])
        desk.claim("a", .holds, -60)
        desk.pass(5, -60)
        XCTAssertEqual(desk.published, [])
    }

    func testAClaimToALinkEndsWithTheConnectionToTheBroker() {
        var desk = Desk()
        desk.connected()
        desk.pass(3, -60)
        XCTAssertEqual(desk.activity, .takes)
        desk.give(.brokerDisconnected)
        desk.pass(30, -60)
        XCTAssertEqual(desk.activity, .none)
        XCTAssertEqual(desk.commands, [])
        desk.give(.brokerConnected)
        XCTAssertEqual(desk.published, [.takes, nil], "what the broker kept is removed")
    }

    func testClaimsFromBeforeAnOutageCountUntilTheirGatewayCanBeBack() {
        var desk = Desk()
        desk.connected()
        desk.claim("a", .holds, -60)
        desk.give(.brokerDisconnected)
        desk.pass(100, -60)
        desk.give(.brokerConnected)
        desk.pass(29, -60)
        XCTAssertEqual(desk.published, [])
        desk.pass(5, -60)
        XCTAssertEqual(desk.published, [.takes])
    }

    func testClaimsOfTheGatewaysEarlierProcessAreRemoved() {
        var desk = Desk()
        desk.give(.brokerConnected)
        desk.claim("b", .holds, -60, session: 6)
        XCTAssertEqual(desk.published, [nil])
    }

    func testALateWillOfTheGatewayItselfIsReplaced() {
        var desk = Desk()
        desk.give(.brokerConnected)
        desk.give(.gateway("b", isOnline: false))
        XCTAssertEqual(desk.commands, ["announce"])
    }

    /// A will can reach other gateways later than claims that were published after it, and remove them there.
    func testClaimsArePublishedAgainAfterALateWill() throws {
        var desk = Desk()
        desk.takeDevice()
        desk.pass(3)
        let first = try XCTUnwrap(desk.last?.number)
        desk.give(.gateway("b", isOnline: false))
        XCTAssertEqual(desk.last?.number, first + 1)
        desk.pass(1.4)
        XCTAssertEqual(desk.last?.number, first + 1)
        desk.pass(0.2)
        XCTAssertEqual(desk.last?.number, first + 2)
    }

    func testARemovalThatTheBrokerDoesNotSendBackIsRepeated() {
        var desk = Desk()
        desk.takeDevice()
        desk.isEchoing = false
        desk.give(.linkDown(device))
        desk.pass(7)
        XCTAssertEqual(desk.published, [.takes, .holds, nil, nil, nil, nil])
        desk.give(.claim(device, gateway: "b", nil))
        desk.pass(7)
        XCTAssertEqual(desk.published.count, 6)
    }

    // MARK: Bounds

    func testTheTableOfDevicesIsBounded() {
        var options = ClaimOptions()
        options.deviceLimit = 50
        var machine = ClaimMachine(gateway: "b", session: 1, options: options)
        _ = machine.handle(.brokerConnected, at: 0)
        for number in 0..<200 {
            let name = DeviceName(String(format: "c0ffee%06x", number))!
            let claim = Claim(.holds, strength: nil, bid: -60, session: 1, number: UInt64(number + 1))
            _ = machine.handle(.claim(name, gateway: "a", claim), at: 1)
        }
        XCTAssertEqual(machine.ignored, 150)
        // The claims fall, and are forgotten: there is room again.
        for second in 2..<900 { _ = machine.handle(.time, at: Double(second)) }
        let late = DeviceName("c0ffee0000ff")!
        var orders: [ClaimMachine.Order] = []
        for second in 900..<920 {
            orders += machine.handle(.sighting(late, strength: -50), at: Double(second))
        }
        XCTAssertFalse(orders.isEmpty)
        XCTAssertEqual(machine.ignored, 150)
    }

    func testTheNumberOfGatewaysIsBounded() {
        var machine = ClaimMachine(gateway: "b", session: 1)
        for number in 0..<5_000 {
            let claim = Claim(.wants, strength: nil, bid: -60, session: 1, number: 1)
            _ = machine.handle(.claim(device, gateway: "g\(number)", claim), at: 0)
            _ = machine.handle(.gateway("h\(number)", isOnline: true), at: 0)
        }
        XCTAssertGreaterThan(machine.ignored, 8_000)
    }
}
