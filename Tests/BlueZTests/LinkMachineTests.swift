import TestRandomness
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

    override func setUp() { machine = LinkMachine() }

    private static func device(_ number: Int) -> ObjectKey {
        var path = "/org/bluez/hci0/dev_00_00_00_00_00_0\(String(number, radix: 16, uppercase: true))"
        guard let key = path.withUTF8({ ObjectKey(path: $0) }) else { preconditionFailure(path) }
        return key
    }

    func testAnAttemptGoesOutAtOnceAndItsAnswerEndsIt() {
        XCTAssertEqual(machine.requested(one, a), [.connect(one, a), turn])
        XCTAssertEqual(machine.connectReplied(one, a, error: nil), [.cancelTimer, .complete(one, nil)])
        XCTAssertEqual(machine, LinkMachine())
    }

    func testTheOthersWaitInTheirOrder() {
        _ = machine.requested(one, a)
        XCTAssertEqual(machine.requested(two, b), [])
        XCTAssertEqual(machine.requested(three, a), [])
        XCTAssertEqual(
            machine.connectReplied(one, a, error: refused),
            [.cancelTimer, .complete(one, refused), .connect(two, b), turn])
        XCTAssertEqual(
            machine.connectReplied(two, b, error: nil), [.cancelTimer, .complete(two, nil), .connect(three, a), turn])
    }

    func testAnAttemptThatWaitsIsTakenOutWithoutACall() {
        _ = machine.requested(one, a)
        _ = machine.requested(two, b)
        XCTAssertEqual(machine.cancelled(two), [.complete(two, .connectCancelled)])
        XCTAssertEqual(machine.connectReplied(one, a, error: nil), [.cancelTimer, .complete(one, nil)])
        XCTAssertEqual(machine.cancelled(one), [])
    }

    func testAnAttemptUnderWayKeepsItsTurnUntilBlueZHasEndedIt() {
        _ = machine.requested(one, a)
        _ = machine.requested(two, b)
        XCTAssertEqual(machine.cancelled(one), [.disconnect(a), end])
        XCTAssertEqual(machine.attempt?.reason, .connectCancelled)
        XCTAssertEqual(machine.cancelled(one), [])
        XCTAssertEqual(machine.disconnectReplied(a, error: nil, isConnected: false), [.disconnected(a, nil)])
        XCTAssertEqual(
            machine.connectReplied(one, a, error: refused),
            [.cancelTimer, .complete(one, .connectCancelled), .connect(two, b), turn])
    }

    func testASuccessThatCrossesTheCancellationIsCancelledAllTheSame() {
        _ = machine.requested(one, a)
        _ = machine.cancelled(one)
        XCTAssertEqual(machine.connectReplied(one, a, error: nil), [])
        XCTAssertEqual(machine.disconnectReplied(a, error: nil, isConnected: true), [])
        XCTAssertEqual(
            machine.linkEnded(a), [.disconnected(a, nil), .cancelTimer, .complete(one, .connectCancelled)])
    }

    func testTheWaitForADaemonThatNeverRepliesEnds() {
        _ = machine.requested(one, a)
        _ = machine.cancelled(one)
        XCTAssertEqual(machine.timerFired(), [.cancelTimer, .complete(one, .connectCancelled)])
        XCTAssertEqual(machine.disconnectReplied(a, error: refused, isConnected: false), [.disconnected(a, refused)])
        XCTAssertEqual(machine, LinkMachine())
        XCTAssertEqual(machine.connectReplied(one, a, error: refused), [])
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

    func testWhoComesInOvertimeEndsIt() {
        _ = machine.requested(one, a)
        _ = machine.timerFired()
        XCTAssertEqual(machine.requested(two, b), [.disconnect(a), end])
    }

    func testASuccessInOvertimeIsASuccess() {
        _ = machine.requested(one, a)
        _ = machine.timerFired()
        XCTAssertEqual(machine.connectReplied(one, a, error: nil), [.cancelTimer, .complete(one, nil)])
    }

    // MARK: Devices that are being disconnected

    func testADeviceThatIsBeingDisconnectedWaitsAndLetsOthersPass() {
        XCTAssertEqual(machine.disconnectAsked(a), [.disconnect(a)])
        XCTAssertEqual(machine.requested(one, a), [])
        XCTAssertEqual(machine.requested(two, b), [.connect(two, b), turn])
        XCTAssertEqual(machine.disconnectReplied(a, error: nil, isConnected: false), [.disconnected(a, nil)])
        XCTAssertEqual(
            machine.connectReplied(two, b, error: nil), [.cancelTimer, .complete(two, nil), .connect(one, a), turn])
    }

    func testADisconnectionJoinsTheOneUnderWay() {
        _ = machine.disconnectAsked(a)
        XCTAssertEqual(machine.disconnectAsked(a), [])
        XCTAssertEqual(machine.linkEnded(a), [], "The reply follows.")
        XCTAssertEqual(machine.disconnectReplied(a, error: nil, isConnected: true), [])
        XCTAssertEqual(machine.linkEnded(a), [.disconnected(a, nil)])
        XCTAssertEqual(machine.linkEnded(a), [])
        XCTAssertEqual(machine, LinkMachine())
    }

    func testAnswersAndTimersThatComeLateChangeNothing() {
        XCTAssertEqual(machine.timerFired(), [])
        XCTAssertEqual(machine.connectReplied(one, a, error: refused), [])
        _ = machine.requested(two, a)
        XCTAssertEqual(machine.connectReplied(one, a, error: nil), [])
        XCTAssertEqual(machine.disconnectReplied(a, error: nil, isConnected: false), [])
        XCTAssertEqual(machine.attempt, LinkMachine.Attempt(id: two, device: a))
    }

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
}
