import BlueCapBlueZ
import TestBasics
import TestSupport
import XCTest

@testable import BlueCapKit

extension ReportedMachine {
    /// Executes an event of a table.
    fileprivate mutating func send(_ words: [String]) throws -> String {
        /// The number behind a word.
        func number<Value: LosslessStringConvertible>(_ word: String = words[0]) -> Value? {
            words.firstIndex(of: word).flatMap { $0 + 1 < words.count ? Value(words[$0 + 1]) : nil }
        }
        let refusal = words.compactMap { ConnectionMachine.Report.refusals[$0] }.first
        let retries: UInt = number("retries") ?? .max
        let policy = ConnectionPolicy(
            timeoutRetries: retries, disconnectRetries: retries, timeout: number("timeout"))
        let sent: ConnectionMachine.Event
        switch words[0] {
        case "state":
            return "\(self.state)".replacing(/BlueCapKit.ConnectionMachine.(Wait|Next)./, with: "")
        case "purpose": return "\(self.purpose)"
        case "isOurs": return "\(self.isOurs)"
        case "isWanted": return "\(self.isWanted)"
        case "isInUse": return "\(self.isInUse)"
        case "hasFallen": return "\(self.hasFallen)"
        case "timeouts": return "\(self.timeouts)"
        case "disconnections": return "\(self.disconnections)"
        case "timers": return self.timers.isEmpty ? "none" : "\(self.timers)"
        case "failures": return self.failures == [.noLink] ? "noLink" : "\(self.failures)"
        case "connecting":
            _ = event(.connectAsked(policy))
            sent = .connectStarted(1)
        case "connected", "lent":
            _ = event(words[0] == "lent" ? .linkNeeded(.run) : .connectAsked(policy))
            _ = event(.connectStarted(1))
            _ = deviceChanged(isConnected: true)
            sent = .connectReplied(1, nil)
        case "up": return deviceChanged(isConnected: true).words
        case "down": return deviceChanged(isConnected: false).words
        case "absent": return deviceChanged(isPresent: false, isConnected: false).words
        case "power": return adapterUsable(words[1] == "on").words
        case "connect": sent = .connectAsked(policy)
        case "reconnect": sent = .reconnectAsked(delay: number() ?? 0)
        case "disconnect": sent = .disconnectAsked
        case "terminate": sent = .terminateAsked
        case "withdrawn": sent = .connectWithdrawn(.forced, leavingFor: words.contains("run") ? .run : nil)
        case "needed": sent = .linkNeeded(.run)
        case "notNeeded": sent = .linkNotNeeded(.run)
        case "linkMade": sent = .linkMade(isOurs: true)
        case "keysMissing": sent = .keysMissing
        case "closed": sent = .closed(keepingLinks: words.contains("keepingLinks"))
        case "started": sent = .connectStarted(number() ?? 0)
        case "replied":
            sent = .connectReplied(
                number() ?? 0, refusal, words.contains("keyMissing") ? .keyMissing(isCertain: false) : nil)
        case "ended": sent = .disconnectReplied
        case "fired":
            let timers: [ConnectionMachine.Timer] = [.wait, .timeout, .stability, .loss]
            sent = .timerFired(timers.first { "\($0)" == words[1] }!)
        default: throw UnknownEvent(words)
        }
        return event(sent).words
    }

    fileprivate static func play(_ table: String, line: UInt = #line) {
        TestSupport.play(table, line: line) {
            var machine = Self(backOff: BackOff(seed: 1), isUsable: true, isPresent: true, isLinkUp: false)
            return { try machine.send($0) }
        }
    }
}

/// The table of `ConnectionMachine`: what each event leads to.
final class ConnectionMachineTests: RandomTestCase {
    private let transient = BlueZError(name: "org.bluez.Error.Failed", message: "le-connection-abort-by-local")
    private let cancelled = BlueZError(name: "org.bluez.Error.Canceled")

    private func connecting(timeout: TimeInterval) -> ReportedMachine {
        var machine = ReportedMachine(backOff: BackOff(seed: 1), isUsable: true, isPresent: true, isLinkUp: false)
        _ = machine.event(.connectAsked(ConnectionPolicy(timeout: timeout)))
        _ = machine.event(.connectStarted(1))
        return machine
    }

    func testAPeripheralWithoutItsKeysIsNotTriedAtOnce() {
        ReportedMachine.play(
            """
            A reconnection waits, and a connection that the application asks for does not:
            connected; keysMissing; down; reconnect → start wait 30
            connect → cancel wait, finishStream 1, cancel loss, connect 2
            A pairing ends that wait:
            connected; keysMissing; linkMade; down; reconnect → connect 2
            A lasting link ends that wait:
            connected; keysMissing; fired stability; down; reconnect → connect 2
            """)
    }

    func testConnecting() {
        ReportedMachine.play(
            """
            A connect is called and its reply reports the link:
            connect timeout 10 → connect 1; started 1 → start timeout 10; up → none
            replied 1 → cancel timeout, start stability 3, linkWentUp, report 1 connected; isOurs → true
            The time limit begins when the call's turn has come:
            connect timeout 10 → connect 1; timers → none; started 1 → start timeout 10; started 1 → none
            A lost link is reported once and fails what is under way:
            connected; down → cancel stability, linkWentDown linkLost, start loss 6, report 1 disconnected
            down → none; absent → none; power off → cancel loss
            A removed device is a lost link:
            connected; absent → cancel stability, linkWentDown linkLost, start loss 6, report 1 disconnected
            A link that a pairing has made is ours:
            connect; up; state → connected; isOurs → false; linkMade; isOurs → true
            """)
    }

    func testCallersThatNoLongerWait() {
        ReportedMachine.play(
            """
            A withdrawn connect ends its attempt:
            connecting timeout 10 retries 0; withdrawn → cancel timeout, cancelConnect; isWanted → false
            replied 1 cancelled → report 1 forced; state → disconnected
            A withdrawn connect leaves its attempt to a run:
            connecting timeout 10 retries 0; withdrawn run → none; purpose → run
            notNeeded → cancel timeout, cancelConnect
            A connect that is withdrawn during the end of a link does not follow it:
            connected; disconnect; connect; state → ending(nil, connect(after: 0.0)); withdrawn → none
            ended → report 2 forced; state → disconnected
            """)
    }

    func testCounts() {
        ReportedMachine.play(
            """
            Successive time limits beyond the count end the retries:
            connecting timeout 10 retries 1; fired timeout → cancelConnect; replied 1 cancelled → report 1 timedOut
            reconnect → connect 2; started 2; fired timeout → cancelConnect
            replied 2 cancelled → report 1 gaveUp timedOut, finishStream 1; state → disconnected
            A connection begins another count of time limits:
            connecting timeout 10 retries 1; fired timeout; replied 1 cancelled; reconnect; up; replied 2; timeouts → 0
            down → cancel stability, linkWentDown linkLost, start loss 6, report 1 disconnected
            Disconnections beyond the count end the retries:
            connected retries 0
            down → cancel stability, linkWentDown linkLost, start loss 6, report 1 gaveUp disconnected, finishStream 1
            """)
    }

    // MARK: Back-off (B3, B8)

    func testTransientFailuresAreRetriedSilentlyWithABackOff() {
        var machine = connecting(timeout: 30)
        var waits: [TimeInterval] = []
        for attempt in 1...7 as ClosedRange<UInt32> {
            let effects = machine.event(.connectReplied(attempt, transient))
            for case .startTimer(.connection(.wait), let seconds) in effects { waits.append(seconds) }
            XCTAssertEqual(effects.count, 1)
            XCTAssertEqual(machine.event(.timerFired(.wait)), [.callConnect(attempt + 1)])
        }
        for (wait, step) in zip(waits, BackOff.steps + [4]) { XCTAssertEqual(wait, step, accuracy: step * 0.25) }
        XCTAssertEqual(machine.failures.map(\.message), Array(repeating: transient.message, count: 7))
    }

    func testReconnectingIsHeldUpMoreAfterEachFruitlessTry() {
        var machine = connecting(timeout: 1)
        var waits: [TimeInterval] = []
        for _ in 1...4 {
            _ = machine.event(.timerFired(.timeout))
            _ = machine.event(.connectReplied(machine.lastAttempt, cancelled))
            for case .startTimer(.connection(.wait), let seconds) in machine.event(.reconnectAsked(delay: 0)) {
                waits.append(seconds)
                _ = machine.event(.timerFired(.wait))
            }
            _ = machine.event(.connectStarted(machine.lastAttempt))
        }
        XCTAssertEqual(waits.count, 3, "The first reconnect is not held up.")
        for (wait, step) in zip(waits, BackOff.steps) { XCTAssertEqual(wait, step, accuracy: step * 0.25) }
    }

    func testRefusals() {
        ReportedMachine.play(
            """
            A search goes on during the first attempts:
            absent; connect; down → cancel wait, connect 1 scanning; replied 1 transient
            fired wait → connect 2 scanning
            replied 2 transient; fired wait → connect 3
            A refusal that no retry cures is a failure at once:
            connecting timeout 30; replied 1 refusal → cancel timeout, report 1 refusal; state → disconnected
            An unknown refusal is retried twice:
            connecting; replied 1 unknown; fired wait; replied 2 unknown; fired wait
            replied 3 unknown → report 1 unknown
            An attempt that another program left is cancelled:
            connecting; replied 1 busy → start wait later; fired wait; replied 2 busy → start wait later; fired wait
            replied 3 busy → start wait later; fired wait; replied 4 busy → start wait later; fired wait
            replied 5 busy → callDisconnect, start wait later
            A connection that lasts ends the back-off:
            connected; fired stability; down; reconnect → connect 2; started 2; up; replied 2; fired stability; down
            reconnect → connect 3; started 3; up; replied 3; fired stability; down; reconnect → connect 4
            A peripheral that ends each link at once is not tried at once:
            connected; down; reconnect → connect 2; up; replied 2; down; reconnect → start wait later
            state → waiting(delay)
            """)
    }

    func testCancellingAnAttempt() {
        ReportedMachine.play(
            """
            A time limit is reported when BlueZ has ended the attempt (B2):
            connecting timeout 10; fired timeout → cancelConnect; replied 1 cancelled → report 1 timedOut
            A link that appears meanwhile is not used, since the connector ends it before it reports:
            connecting timeout 10; fired timeout; up → none; down → none; isInUse → true
            replied 1 cancelled → report 1 timedOut
            The reply of an attempt in place of which a link was adopted ends nothing:
            connect; up → cancelConnect, start stability 3, linkWentUp, report 1 connected; isOurs → false
            disconnect; replied 1 cancelled → none; ended → report 1 forced
            A reconnect meanwhile follows the report:
            connecting timeout 10; fired timeout; reconnect → none; replied 1 cancelled → report 1 timedOut, connect 2
            """)
    }

    func testALateReplyOfAnOlderAttemptIsHarmless() {
        var machine = connecting(timeout: 10)
        _ = machine.event(.connectReplied(1, transient))
        XCTAssertEqual(machine.event(.timerFired(.wait)), [.callConnect(2)])
        let before = machine
        XCTAssertEqual(machine.event(.connectReplied(1, transient)), [])
        XCTAssertEqual(machine, before)
    }

    func testDisconnecting() {
        ReportedMachine.play(
            """
            It fails what is under way at once and is reported when the link has ended (B2a):
            connected; disconnect → cancel stability, linkWentDown application, callDisconnect; disconnect → none
            down → none; ended → report 1 forced; ended → none
            Without a connection it fails:
            disconnect → report 0 failed disconnected
            While connecting it cancels the attempt:
            connecting timeout 10; disconnect → cancel timeout, cancelConnect; replied 1 cancelled → report 1 forced
            It ends a wait for power:
            power off; connect; disconnect → report 1 forced; state → disconnected
            It ends a delay:
            reconnect 5; disconnect → cancel wait, report 0 forced; state → disconnected
            It ends a back-off:
            connecting; replied 1 transient; disconnect → cancel wait, report 1 forced; state → disconnected
            It ends a search:
            absent; connect; disconnect → cancel wait, stopSeeking, report 1 forced; state → disconnected
            A connect meanwhile waits for the end of the link:
            connected; disconnect; connect → report 1 forced, finishStream 1; down → none; ended → connect 2
            One that does not end the link until the connector's limit is reported too:
            connected; disconnect; ended → report 1 forced; state → disconnected
            Terminate forgets at once and finishes after the last event:
            connected; terminate → cancel stability, linkWentDown application, callDisconnect, forget
            ended → report 1 forced, finishStream 1; terminate → forget
            """)
    }

    func testSearches() {
        ReportedMachine.play(
            """
            A device that BlueZ dropped is sought, and discovery lasts until the link (B4):
            connecting timeout 30; absent; replied 1 notFound → seek, start wait 10
            down → cancel wait, connect 2 scanning
            started 2; up
            replied 2 → cancel timeout, stopSeeking, start stability 3, linkWentUp, report 1 connected
            A search is bounded and then repeated after a back-off:
            absent; connect → seek, start wait 10; fired wait → stopSeeking, start wait later; state → waiting(backOff)
            fired wait → seek, start wait 10
            A search ends with the time limit:
            absent; connect timeout 5 → seek, start timeout 5, start wait 10
            fired timeout → cancel wait, stopSeeking, report 1 timedOut
            """)
    }

    func testLinksThatAreThere() {
        ReportedMachine.play(
            """
            A link that is there is adopted without a call (B5):
            up; connect → start stability 3, linkWentUp, report 1 connected; isOurs → false
            closed → linkWentDown application, cancel stability, finishStream 1
            A link that another program opens meanwhile is adopted:
            connecting; replied 1 busy; up → cancel wait, start stability 3, linkWentUp, report 1 connected
            A second connect takes a link over:
            connected; connect → finishStream 1, report 2 connected
            A second connect takes an attempt over:
            connecting timeout 10; connect timeout 3 → cancel timeout, finishStream 1, start timeout 3
            A good reply without a link is a transient failure (B6):
            connecting; up; down; hasFallen → true; replied 1; state → waiting(backOff); failures → noLink
            So is a reply that there is no link:
            connecting; up; down; hasFallen → true; replied 1 noLink; state → waiting(backOff); failures → noLink
            A reply whose meaning is known is a failure at once:
            connecting; replied 1 transient keyMissing → report 1 failed keyMissing; state → disconnected
            """)
    }

    func testTheAdapter() {
        ReportedMachine.play(
            """
            Its end ends an attempt once, and the next waits for it (F1, F2):
            connecting timeout 9; power off → cancelConnect, cancel timeout, report 1 disconnected; power off → none
            reconnect; state → waiting(power); power on → cancel timeout, connect 2
            Its end ends a link once, and the next attempt waits for it:
            connected; power off → cancel stability, linkWentDown adapterLost, report 1 disconnected; power off → none
            reconnect; state → waiting(power); power on → connect 2
            An attempt after a reported loss waits for it without a second report, until the next loss:
            connected timeout 9; down → cancel stability, linkWentDown linkLost, start loss 6, report 1 disconnected
            reconnect; state → connecting(isUnderWay: false); started 2
            power off → cancel loss, cancelConnect, cancel timeout, start timeout 9; state → waiting(power)
            replied 2 notFound → none; power on → cancel timeout, connect 3
            power off → cancelConnect, report 1 disconnected
            An attempt for a run waits for it after a reported loss:
            connected retries 1; down → cancel stability, linkWentDown linkLost, start loss 6, report 1 disconnected
            needed → connect 2; power off → cancel loss, cancelConnect; state → waiting(power); disconnections → 1
            power on → connect 3
            Its end long after a reported loss is reported:
            connected timeout 9; down; reconnect; started 2; fired loss → none
            power off → cancelConnect, cancel timeout, report 1 disconnected; state → disconnected
            A link after a reported loss is lost with it:
            connected; down; reconnect; started 2; up
            replied 2 → start stability 3, linkWentUp, cancel loss, report 1 connected
            power off → cancel stability, linkWentDown adapterLost, report 1 disconnected
            The wait for power has the same limit, and the radio its full time afterwards:
            power off; connect timeout 10 → start timeout 10; fired timeout → report 1 timedOut
            reconnect → start timeout 10; power on → cancel timeout, connect 1; started 1 → start timeout 10
            Its end completes an attempt whose time is over:
            connecting timeout 10; fired timeout; power off → report 1 timedOut
            Its end completes a disconnection:
            connected; disconnect; power off → report 1 forced
            """)
    }

    func testTheEndOfTheManager() {
        ReportedMachine.play(
            """
            It ends the links it opened (B7):
            connected; closed → linkWentDown application, callDisconnect, cancel stability, finishStream 1
            Unless it keeps them:
            connected; closed keepingLinks → linkWentDown application, cancel stability, finishStream 1
            It ends an attempt anyway, and accepts no more:
            connecting; closed keepingLinks → cancelConnect, finishStream 1
            connect → report 2 failed disconnected, finishStream 2
            """)
    }

    // MARK: Laws

    /// Whatever happens in whatever order: timers that run are known, every stream finishes once, links go up and down in
    /// turn, searches end, and a machine that is left alone comes to rest.
    func testLawsHoldForEventsInAnyOrder() {
        var random = TestRandom(self)
        for round in 0..<400 {
            var play = MachinePlay(random.split())
            for _ in 0..<200 { play.step() }
            play.end()
            XCTAssertEqual(play.faults, [], "round \(round): \(play.history.suffix(12))")
        }
    }
}

/// Links that runs and other operations need for a time, beside the connection that the application requests.
final class LinkLendingTests: XCTestCase {
    func testLinksForRuns() {
        ReportedMachine.play(
            """
            A link that was made for runs ends with them:
            lent; state → connected; isWanted → false
            notNeeded → cancel stability, linkWentDown application, callDisconnect
            ended → report 0 forced; state → disconnected; notNeeded → none
            A link of the application stays:
            connect; needed → none; started 1; up; replied 1; needed → none; notNeeded → none; state → connected
            A link that the application connects meanwhile stays:
            lent; connect; isWanted → true; notNeeded → none; state → connected
            A link that the application reconnects meanwhile stays:
            lent; reconnect; isWanted → true; notNeeded → none; state → connected
            A link that another program has made stays:
            up; needed → start stability 3, linkWentUp, report 0 connected; notNeeded → none
            An attempt that no run needs any more is cancelled:
            needed → connect 1; notNeeded → cancelConnect
            So is one that waits for power:
            power off; needed → none; state → waiting(power); notNeeded → report 0 forced; state → disconnected
            An attempt of the application that waits begins sooner and stays:
            reconnect 60; needed → cancel wait, connect 1; notNeeded → none
            A link that ends is followed by another:
            lent; notNeeded; needed → none; down → none; ended → report 0 forced, connect 2; purpose → run
            Unless no run needs it any more:
            lent; notNeeded; needed; notNeeded → none; ended → report 0 forced; state → disconnected
            A manager that has ended makes none:
            closed; needed → none; notNeeded → none
            """)
    }
}
