import BlueCapDBus
import TestBasics
import TestSupport
import XCTest

@testable import BlueCapBlueZ

final class LinkMachineTests: RandomTestCase {
    private var machine = LinkMachine()
    private let one = ConnectID(1)
    private let two = ConnectID(2)
    private let three = ConnectID(3)
    private let a = LinkMachineTests.device(0xA)
    private let b = LinkMachineTests.device(0xB)
    private let refused = BlueZError(name: "org.bluez.Error.Failed", message: "le-connection-abort-by-local")
    private let turn = LinkMachine.Effect.startTimer(seconds: LinkMachine.turnLimit)
    private let end = LinkMachine.Effect.startTimer(seconds: LinkMachine.endLimit)

    private static func device(_ number: Int) -> ObjectKey {
        ObjectKey(BlueZMessages.adapterPath.appending(String(format: "dev_00_00_00_00_00_%02X", number)))
    }

    func testALinkThatComesAfterItsAttemptWasGivenUpIsEnded() {
        for isTriedAgain in [false, true] {
            machine = LinkMachine()
            _ = machine.requested(one, a)
            _ = machine.cancelled(one)
            _ = machine.timerFired()
            _ = machine.disconnectReplied(a, error: refused, isConnected: false)
            if isTriedAgain { _ = machine.requested(two, a) }
            XCTAssertEqual(machine.connectReplied(one, a, error: nil), isTriedAgain ? [] : [.disconnect(a)])
        }
    }

    func testAnAttemptWhoseTimeIsUpIsCalledOff() {
        _ = machine.requested(one, a)
        XCTAssertEqual(
            machine.timerFired(), [.startTimer(seconds: LinkMachine.attemptLimit - LinkMachine.turnLimit)],
            "With no other attempt it continues for the whole time.")
        XCTAssertEqual(machine.timerFired(), [.disconnect(a), end])
        _ = machine.connectReplied(one, a, error: refused)
        let error = BlueZError.connectTimedOut(after: LinkMachine.attemptLimit)
        XCTAssertEqual(
            machine.disconnectReplied(a, error: nil, isConnected: false),
            [.disconnected(a, nil), .cancelTimer, .complete(one, error)])
        XCTAssertEqual(error.connectCause, .transient)
    }

    func testAnAttemptThatIsCancelledWhileItTimesOutCountsAsCancelled() {
        _ = machine.requested(one, a)
        _ = machine.timerFired()
        _ = machine.timerFired()
        _ = machine.cancelled(one)
        _ = machine.connectReplied(one, a, error: refused)
        XCTAssertEqual(
            machine.disconnectReplied(a, error: nil, isConnected: false).last, .complete(one, .connectCancelled))
    }

    func testAttemptsTakeTurns() {
        check(
            "an attempt goes out at once and its answer ends it", LinkMachine(),
            (.requested(one, a), [.connect(one, a), turn]),
            (.connectReplied(one, a, nil), [.cancelTimer, .complete(one, nil)]),
            (.holds { $0 == LinkMachine() }, nil))
        check(
            "the others wait in their order", LinkMachine(), (.requested(one, a), nil), (.requested(two, b), []),
            (.requested(three, a), []),
            (.connectReplied(one, a, refused), [.cancelTimer, .complete(one, refused), .connect(two, b), turn]),
            (.connectReplied(two, b, nil), [.cancelTimer, .complete(two, nil), .connect(three, a), turn]))
        check(
            "an attempt that waits is taken out without a call", LinkMachine(), (.requested(one, a), nil),
            (.requested(two, b), nil), (.cancelled(two), [.complete(two, .connectCancelled)]),
            (.connectReplied(one, a, nil), [.cancelTimer, .complete(one, nil)]), (.cancelled(one), []))
        check(
            "an attempt under way keeps its turn until BlueZ has ended it", LinkMachine(), (.requested(one, a), nil),
            (.requested(two, b), nil), (.cancelled(one), [.disconnect(a), end]),
            (.holds { $0.attempt?.reason == .connectCancelled }, nil), (.cancelled(one), []),
            (.disconnectReplied(a, nil, isConnected: false), [.disconnected(a, nil)]),
            (
                .connectReplied(one, a, refused),
                [.cancelTimer, .complete(one, .connectCancelled), .connect(two, b), turn]
            ))
        check(
            "a success that crosses the cancellation is cancelled all the same", LinkMachine(),
            (.requested(one, a), nil), (.cancelled(one), nil), (.connectReplied(one, a, nil), []),
            (.disconnectReplied(a, nil, isConnected: true), []),
            (.linkEnded(a), [.disconnected(a, nil), .cancelTimer, .complete(one, .connectCancelled)]))
        check(
            "the wait for a daemon that never replies ends", LinkMachine(), (.requested(one, a), nil),
            (.cancelled(one), nil), (.timerFired, [.cancelTimer, .complete(one, .connectCancelled)]),
            (.disconnectReplied(a, refused, isConnected: false), [.disconnected(a, refused)]),
            (.holds { $0 == LinkMachine() }, nil), (.connectReplied(one, a, refused), []))
    }

    // MARK: Fairness

    func testAnAbsentDeviceGivesItsTurnToThoseWhoWait() {
        _ = machine.requested(one, a)
        _ = machine.requested(two, b)
        XCTAssertEqual(machine.timerFired(), [.disconnect(a), end])
        _ = machine.disconnectReplied(a, error: nil, isConnected: false)
        XCTAssertEqual(
            machine.connectReplied(one, a, error: refused),
            [.cancelTimer, .complete(one, .turnEnded), .connect(two, b), turn])
        XCTAssertEqual(BlueZError.turnEnded.connectCause, .transient)
    }

    func testAnAttemptIsCalledOffForThoseThatWait() {
        check(
            "who comes in overtime ends it", LinkMachine(), (.requested(one, a), nil), (.timerFired, nil),
            (.requested(two, b), [.disconnect(a), end]))
        check(
            "a success in overtime is a success", LinkMachine(), (.requested(one, a), nil), (.timerFired, nil),
            (.connectReplied(one, a, nil), [.cancelTimer, .complete(one, nil)]))
    }

    // MARK: Devices that are being disconnected

    /// Whatever happens in whatever order: each attempt and each disconnection is completed exactly once, no two attempts
    /// are under way, and none to a device that is being disconnected begins.
    func testRandomLivesEndEachAttemptOnceAndNeverOverlap() {
        var random = TestRandom(self)
        for _ in 0..<500 {
            var machine = LinkMachine()
            var open = Set<ConnectID>()
            var pendingConnects: [(id: ConnectID, device: ObjectKey)] = []
            var pendingDisconnects: [ObjectKey] = []
            var falling = Set<ObjectKey>()
            var current: ConnectID?
            var isTimed = false
            var last: UInt64 = 0
            func perform(_ effects: [LinkMachine.Effect]) {
                for effect in effects {
                    switch effect {
                    case .connect(let id, let device):
                        XCTAssertTrue(open.contains(id))
                        XCTAssertNil(current)
                        XCTAssertFalse(pendingDisconnects.contains(device) || falling.contains(device))
                        current = id
                        pendingConnects.append((id, device))
                    case .disconnect(let device):
                        XCTAssertFalse(pendingDisconnects.contains(device) || falling.contains(device))
                        pendingDisconnects.append(device)
                    case .startTimer: isTimed = true
                    case .cancelTimer: isTimed = false
                    case .complete(let id, _):
                        XCTAssertNotNil(open.remove(id))
                        if current == id { current = nil }
                    case .disconnected(let device, _): falling.remove(device)
                    }
                }
            }
            func step(_ choice: Int) {
                switch choice {
                case 0, 1:
                    last += 1
                    open.insert(ConnectID(last))
                    perform(machine.requested(ConnectID(last), Self.device(Int.random(in: 0..<4, using: &random))))
                case 2, 3:
                    // In their order: that of a set differs between processes.
                    guard let id = open.sorted(by: { $0.rawValue < $1.rawValue }).randomElement(using: &random) else {
                        return
                    }
                    perform(machine.cancelled(id))
                case 4, 5:
                    guard !pendingConnects.isEmpty else { return }
                    let (id, device) = pendingConnects.removeFirst()
                    perform(machine.connectReplied(id, device, error: Bool.random(using: &random) ? refused : nil))
                case 6:
                    guard !pendingDisconnects.isEmpty else { return }
                    let device = pendingDisconnects.removeFirst()
                    let isConnected = Bool.random(using: &random)
                    if isConnected { falling.insert(device) }
                    perform(machine.disconnectReplied(device, error: nil, isConnected: isConnected))
                case 7: if isTimed { perform(machine.timerFired()) }
                case 8: perform(machine.disconnectAsked(Self.device(Int.random(in: 0..<4, using: &random))))
                default: perform(machine.linkEnded(Self.device(Int.random(in: 0..<4, using: &random))))
                }
            }
            for _ in 0..<100 { step(Int.random(in: 0..<10, using: &random)) }
            for _ in 0..<800 { step([4, 5, 6, 7, 9][Int.random(in: 0..<5, using: &random)]) }
            XCTAssertEqual(machine, LinkMachine())
            XCTAssertEqual(open, [])
            XCTAssertEqual(falling, [])
        }
    }
    func testADeviceThatIsBeingDisconnectedWaits() {
        check(
            "a device that is being disconnected waits and lets others pass", LinkMachine(),
            (.disconnectAsked(a), [.disconnect(a)]), (.requested(one, a), []),
            (.requested(two, b), [.connect(two, b), turn]),
            (.disconnectReplied(a, nil, isConnected: false), [.disconnected(a, nil)]),
            (.connectReplied(two, b, nil), [.cancelTimer, .complete(two, nil), .connect(one, a), turn]))
        check(
            "a disconnection joins the one under way", LinkMachine(), (.disconnectAsked(a), nil),
            (.disconnectAsked(a), []),
            // The reply follows.
            (.linkEnded(a), []), (.disconnectReplied(a, nil, isConnected: true), []),
            (.linkEnded(a), [.disconnected(a, nil)]), (.linkEnded(a), []), (.holds { $0 == LinkMachine() }, nil))
        check(
            "answers and timers that come late change nothing", LinkMachine(), (.timerFired, []),
            (.connectReplied(one, a, refused), []), (.requested(two, a), nil), (.connectReplied(one, a, nil), []),
            (.disconnectReplied(a, nil, isConnected: false), []),
            (.holds { [self] in $0.attempt == LinkMachine.Attempt(id: two, device: a) }, nil))
    }
}
