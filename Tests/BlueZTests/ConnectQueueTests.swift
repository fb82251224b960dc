import TestRandomness
import XCTest

@testable import BlueZ

final class ConnectQueueTests: RandomTestCase {
    private var queue = ConnectQueue()
    private let one = ConnectID(1)
    private let two = ConnectID(2)
    private let three = ConnectID(3)
    private let a = ConnectQueueTests.device(0xA)
    private let b = ConnectQueueTests.device(0xB)
    private let refused = BlueZError(name: "org.bluez.Error.Failed", message: "le-connection-abort-by-local")

    override func setUp() { queue = ConnectQueue() }

    private static func device(_ number: Int) -> ObjectKey {
        var path = "/org/bluez/hci0/dev_00_00_00_00_00_0\(String(number, radix: 16, uppercase: true))"
        guard let key = path.withUTF8({ ObjectKey(path: $0) }) else { preconditionFailure(path) }
        return key
    }

    func testAnAttemptGoesOutAtOnceAndItsAnswerEndsIt() {
        XCTAssertEqual(queue.requested(one, a, timeout: 5), [.connect(one, a), .startTimer(seconds: 5)])
        XCTAssertEqual(queue.connectReplied(one, error: nil), [.cancelTimer, .complete(one, nil)])
        XCTAssertTrue(queue.isAtRest)
    }

    func testTheOthersWaitInTheirOrder() {
        _ = queue.requested(one, a, timeout: 5)
        XCTAssertEqual(queue.requested(two, b, timeout: 5), [])
        XCTAssertEqual(queue.requested(three, a, timeout: 5), [])
        XCTAssertEqual(
            queue.connectReplied(one, error: refused),
            [.cancelTimer, .complete(one, refused), .connect(two, b), .startTimer(seconds: 5)])
        XCTAssertEqual(
            queue.connectReplied(two, error: nil),
            [.cancelTimer, .complete(two, nil), .connect(three, a), .startTimer(seconds: 5)])
    }

    func testAnAttemptThatWaitsIsTakenOutWithoutACall() {
        _ = queue.requested(one, a, timeout: 5)
        _ = queue.requested(two, b, timeout: 5)
        XCTAssertEqual(queue.cancelled(two), [.complete(two, .connectCancelled)])
        XCTAssertEqual(queue.connectReplied(one, error: nil), [.cancelTimer, .complete(one, nil)])
        XCTAssertEqual(queue.cancelled(one), [])
    }

    func testAnAttemptUnderWayKeepsItsTurnUntilBlueZHasEndedIt() {
        _ = queue.requested(one, a, timeout: 5)
        _ = queue.requested(two, b, timeout: 5)
        XCTAssertEqual(queue.cancelled(one), [.disconnect(one, a), .startTimer(seconds: ConnectQueue.cancelLimit)])
        XCTAssertEqual(queue.cancelled(one), [])
        XCTAssertEqual(queue.disconnectReplied(one), [])
        XCTAssertEqual(
            queue.connectReplied(one, error: refused),
            [.cancelTimer, .complete(one, .connectCancelled), .connect(two, b), .startTimer(seconds: 5)])
    }

    func testASuccessThatCrossesTheCancellationIsCancelledAllTheSame() {
        _ = queue.requested(one, a, timeout: 5)
        _ = queue.cancelled(one)
        XCTAssertEqual(queue.connectReplied(one, error: nil), [])
        XCTAssertEqual(queue.disconnectReplied(one), [.cancelTimer, .complete(one, .connectCancelled)])
    }

    func testTheWaitForADaemonThatNeverRepliesEnds() {
        _ = queue.requested(one, a, timeout: 5)
        _ = queue.cancelled(one)
        XCTAssertEqual(queue.timerFired(), [.cancelTimer, .complete(one, .connectCancelled)])
        XCTAssertEqual(queue.connectReplied(one, error: nil), [])
        XCTAssertEqual(queue.disconnectReplied(one), [])
        XCTAssertTrue(queue.isAtRest)
    }

    func testAnAttemptWhoseTimeIsUpIsCalledOff() {
        _ = queue.requested(one, a, timeout: 5)
        XCTAssertEqual(queue.timerFired(), [.disconnect(one, a), .startTimer(seconds: ConnectQueue.cancelLimit)])
        _ = queue.connectReplied(one, error: refused)
        let effects = queue.disconnectReplied(one)
        XCTAssertEqual(effects, [.cancelTimer, .complete(one, .connectTimedOut(after: 5))])
        XCTAssertEqual(BlueZError.connectTimedOut(after: 5).connectCause, .transient)
    }

    func testAnAttemptThatIsCancelledWhileItTimesOutCountsAsCancelled() {
        _ = queue.requested(one, a, timeout: 5)
        _ = queue.timerFired()
        _ = queue.cancelled(one)
        _ = queue.connectReplied(one, error: refused)
        XCTAssertEqual(queue.disconnectReplied(one), [.cancelTimer, .complete(one, .connectCancelled)])
    }

    // MARK: Fairness

    func testAnAbsentDeviceGivesItsTurnToThoseWhoWait() {
        XCTAssertEqual(queue.requested(one, a, timeout: 30).last, .startTimer(seconds: ConnectQueue.turnLimit))
        _ = queue.requested(two, b, timeout: 5)
        XCTAssertEqual(queue.timerFired(), [.disconnect(one, a), .startTimer(seconds: ConnectQueue.cancelLimit)])
        _ = queue.disconnectReplied(one)
        XCTAssertEqual(
            queue.connectReplied(one, error: refused),
            [.cancelTimer, .complete(one, .turnEnded), .connect(two, b), .startTimer(seconds: 5)])
        XCTAssertEqual(BlueZError.turnEnded.connectCause, .transient)
    }

    func testWithNoOtherAttemptItContinuesForTheWholeTime() {
        _ = queue.requested(one, a, timeout: 30)
        XCTAssertEqual(queue.timerFired(), [.startTimer(seconds: 20)])
        XCTAssertEqual(queue.timerFired().first, .disconnect(one, a))
        _ = queue.disconnectReplied(one)
        XCTAssertEqual(
            queue.connectReplied(one, error: refused).last, .complete(one, .connectTimedOut(after: 30)))
    }

    func testWhoComesInOvertimeEndsIt() {
        _ = queue.requested(one, a, timeout: 30)
        _ = queue.timerFired()
        XCTAssertEqual(
            queue.requested(two, b, timeout: 5), [.disconnect(one, a), .startTimer(seconds: ConnectQueue.cancelLimit)])
    }

    func testASuccessInOvertimeIsASuccess() {
        _ = queue.requested(one, a, timeout: 30)
        _ = queue.timerFired()
        XCTAssertEqual(queue.connectReplied(one, error: nil), [.cancelTimer, .complete(one, nil)])
    }

    // MARK: Devices that are being disconnected

    func testADeviceThatIsBeingDisconnectedWaitsAndLetsOthersPass() {
        queue.disconnectStarted(a)
        XCTAssertEqual(queue.requested(one, a, timeout: 5), [])
        XCTAssertEqual(queue.requested(two, b, timeout: 5), [.connect(two, b), .startTimer(seconds: 5)])
        XCTAssertEqual(queue.disconnectEnded(a), [])
        XCTAssertEqual(
            queue.connectReplied(two, error: nil),
            [.cancelTimer, .complete(two, nil), .connect(one, a), .startTimer(seconds: 5)])
    }

    func testOfTwoDisconnectionsTheLastOneCounts() {
        queue.disconnectStarted(a)
        queue.disconnectStarted(a)
        _ = queue.requested(one, a, timeout: 5)
        XCTAssertEqual(queue.disconnectEnded(a), [])
        XCTAssertEqual(queue.disconnectEnded(a), [.connect(one, a), .startTimer(seconds: 5)])
        XCTAssertEqual(queue.disconnectEnded(a), [])
    }

    func testAnswersAndTimersThatComeLateChangeNothing() {
        XCTAssertEqual(queue.timerFired(), [])
        XCTAssertEqual(queue.connectReplied(one, error: nil), [])
        _ = queue.requested(two, a, timeout: 5)
        XCTAssertEqual(queue.connectReplied(one, error: nil), [])
        XCTAssertEqual(queue.disconnectReplied(two), [])
        XCTAssertEqual(queue.state, .connecting(ConnectQueue.Request(id: two, device: a, timeout: 5)))
    }

    /// Whatever happens in whatever order: each attempt is completed exactly once, and no two are under way.
    func testRandomLivesEndEachAttemptOnceAndNeverOverlap() {
        var random = TestRandom(self)
        for _ in 0..<500 {
            var queue = ConnectQueue()
            var open = Set<ConnectID>()
            var pendingConnects: [ConnectID] = []
            var pendingDisconnects: [ConnectID] = []
            var isTimed = false
            var last: UInt64 = 0
            func perform(_ effects: [ConnectQueue.Effect]) {
                for effect in effects {
                    switch effect {
                    case .connect(let id, _):
                        XCTAssertTrue(open.contains(id))
                        pendingConnects.append(id)
                    case .disconnect(let id, _): pendingDisconnects.append(id)
                    case .startTimer: isTimed = true
                    case .cancelTimer: isTimed = false
                    case .complete(let id, _): XCTAssertNotNil(open.remove(id))
                    }
                }
            }
            func step(_ choice: Int) {
                switch choice {
                case 0, 1:
                    last += 1
                    open.insert(ConnectID(last))
                    let device = Self.device(Int.random(in: 0..<4, using: &random))
                    perform(
                        queue.requested(ConnectID(last), device, timeout: Double.random(in: 1...60, using: &random)))
                case 2, 3:
                    // In their order: that of a set differs between processes.
                    guard let id = open.sorted(by: { $0.rawValue < $1.rawValue }).randomElement(using: &random) else {
                        return
                    }
                    perform(queue.cancelled(id))
                case 4, 5:
                    guard !pendingConnects.isEmpty else { return }
                    perform(
                        queue.connectReplied(
                            pendingConnects.removeFirst(), error: Bool.random(using: &random) ? refused : nil))
                case 6:
                    guard !pendingDisconnects.isEmpty else { return }
                    perform(queue.disconnectReplied(pendingDisconnects.removeFirst()))
                case 7: if isTimed { perform(queue.timerFired()) }
                case 8: queue.disconnectStarted(Self.device(Int.random(in: 0..<4, using: &random)))
                default: perform(queue.disconnectEnded(Self.device(Int.random(in: 0..<4, using: &random))))
                }
            }
            for _ in 0..<100 { step(Int.random(in: 0..<10, using: &random)) }
            for device in 0..<4 { for _ in 0..<100 { perform(queue.disconnectEnded(Self.device(device))) } }
            for _ in 0..<400 { step([4, 5, 6, 7][Int.random(in: 0..<4, using: &random)]) }
            XCTAssertTrue(queue.isAtRest)
            XCTAssertEqual(open, [])
        }
    }
}
