import Foundation
import BlueCapReactor

/// How a transfer verifies that what it wrote has been sent.
enum TransferFence: Hashable, Sendable {
    /// One of the others, which depends on the characteristic.
    case automatic
    /// By reading a characteristic; the value is ignored, and so is an error.
    case reading(AttributeID)
    /// By writing the last part of each window with response.
    case writing
    /// Not at all.
    case none
}

/// A long sequence of writes without response, as a value: decides which part is written next, and when to verify that
/// the parts before it have been sent.
///
/// `bluetoothd` replies to a command when it has queued it, however many are queued already. So the machine makes one
/// request after each window of commands: the peripheral replies to it after everything that was queued before on the
/// same channel has been sent. The time that this takes shows how much was queued, and the window is adapted to contain
/// about an eighth of a second.
struct TransferMachine: Equatable {
    enum Event: Equatable {
        case begun
        /// BlueZ has replied to the last call.
        case replied(OperationFailure?, Instant)
        /// The pause is over.
        case paused
    }

    /// The next step after an event, or none.
    enum Action: Equatable {
        case write(Range<Int>, isRequest: Bool)
        case read(AttributeID)
        /// Waits for this number of seconds.
        case pause(TimeInterval)
        case finish(OperationFailure?)
    }

    private enum Step: Equatable {
        /// Before the first part, and after the end.
        case idle
        case writing(Range<Int>, isRequest: Bool)
        case fencing
    }

    /// The shortest and the longest duration of a window, in seconds, that leave its size unchanged.
    static let span: ClosedRange<TimeInterval> = 0.06...0.25
    /// The smallest and the largest number of commands in a window.
    static let windows = 4...256
    /// The number of attempts to write a part that BlueZ was too busy for, each after `pause`.
    static let attempts = 40
    static let pause: TimeInterval = 0.05

    let count: Int
    /// The number of bytes in one write.
    let length: Int
    let fence: TransferFence
    private(set) var window = 16
    /// The number of bytes that BlueZ has accepted.
    private(set) var sent = 0
    private(set) var fences = 0
    /// What was transferred so far, in the seconds from the first reply to the last one.
    var report: TransferReport {
        TransferReport(bytes: sent, duration: .seconds(start.map { end.seconds(since: $0) } ?? 0), fences: fences)
    }
    private var start: Instant?
    private var end = Instant.origin
    private var step = Step.idle
    private var refusals = 0
    /// The number of writes in this window so far, and the time at which the window began.
    private var written = 0
    private var windowStart = Instant.origin

    init(count: Int, length: Int, fence: TransferFence) {
        self.count = count
        self.length = max(1, length)
        self.fence = fence
    }

    mutating func event(_ event: Event) -> Action? {
        switch event {
        case .begun:
            return proceed()
        case .replied(let failure, let now):
            return replied(failure, now)
        case .paused:
            guard case .writing(let part, let isRequest) = step else { return nil }
            return .write(part, isRequest: isRequest)
        }
    }

    private mutating func replied(_ failure: OperationFailure?, _ now: Instant) -> Action? {
        if start == nil { (start, windowStart) = (now, now) }
        end = now
        switch step {
        case .idle:
            return nil
        case .writing(let part, let isRequest):
            if let failure { return refused(failure) }
            sent = part.upperBound
            refusals = 0
            written += 1
            if isRequest { closeWindow(at: now) }
            return proceed()
        case .fencing:
            switch failure {
            case .linkLost?, .keysMissing?, .linkEnded?, .timedOut?, .withdrawn?, .unanswered?: return finish(failure)
            // An error is a reply, too.
            case .busy?, .refused?, .needsSecurity?, .invalidated?, nil: break
            }
            closeWindow(at: now)
            return proceed()
        }
    }

    private mutating func refused(_ failure: OperationFailure) -> Action? {
        guard case .busy = failure, refusals < Self.attempts else { return finish(failure) }
        refusals += 1
        return .pause(Self.pause)
    }

    private mutating func closeWindow(at now: Instant) {
        fences += 1
        let seconds = now.seconds(since: windowStart)
        if seconds < Self.span.lowerBound, written >= window {
            window = min(window * 2, Self.windows.upperBound)
        } else if seconds > Self.span.upperBound {
            window = max(window / 2, Self.windows.lowerBound)
        }
        written = 0
        windowStart = now
    }

    private mutating func proceed() -> Action? {
        if case .reading(let id) = fence, written > 0, written >= window || sent == count {
            step = .fencing
            return .read(id)
        }
        guard sent < count else { return finish(nil) }
        let part = sent..<min(sent + length, count)
        let isRequest = fence == .writing && (written + 1 >= window || part.upperBound == count)
        step = .writing(part, isRequest: isRequest)
        return .write(part, isRequest: isRequest)
    }

    private mutating func finish(_ failure: OperationFailure?) -> Action? {
        step = .idle
        return .finish(failure)
    }
}
