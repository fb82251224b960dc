import Foundation
import Reactor

/// Why it is certain that what was written has been sent, with ids for characteristics.
enum TransferFence: Hashable, Sendable {
    case automatic
    case reading(AttributeID)
    case writing
    case none
}

/// A long sequence of writes without response, as a value: which part is written next, and when to verify that the parts
/// before have been sent.
///
/// `bluetoothd` replies to a command when it has queued it, however many are queued already. So after each window of
/// commands one request is made: the peripheral replies to it after everything that was queued before on the same channel
/// has been sent. The time that this takes shows how much was queued, and the window is adapted: it contains about an
/// eighth of a second.
struct TransferMachine: Equatable {
    /// How it is verified that commands have been sent.
    enum Fence: Hashable, Sendable {
        /// By reading a characteristic; its value is ignored, and so is an error.
        case read(AttributeID)
        /// By writing the last part of each window with response.
        case write
        /// Not at all.
        case none
    }

    enum Event: Equatable {
        case begun
        /// BlueZ has replied to the last call.
        case replied(OperationFailure?, Instant)
        /// The pause is over.
        case paused
    }

    /// What follows from an event: one step, or nothing.
    enum Action: Equatable {
        case write(Range<Int>, isRequest: Bool)
        case read(AttributeID)
        /// Waits so many seconds.
        case pause(TimeInterval)
        case finish(OperationFailure?)
    }

    private enum Step: Equatable {
        case idle
        case writing(Range<Int>, isRequest: Bool)
        case fencing
        case finished
    }

    /// What a window takes at least and at most, in seconds, before it is changed.
    static let span: ClosedRange<TimeInterval> = 0.06...0.25
    /// How many commands a window has at least and at most.
    static let windows = 4...256
    /// How often a part that BlueZ was too busy for is written again, each time after `pause`.
    static let attempts = 40
    static let pause: TimeInterval = 0.05

    let count: Int
    /// How many bytes go into one write.
    let length: Int
    let fence: Fence
    private(set) var window = 16
    /// How many bytes BlueZ has accepted.
    private(set) var sent = 0
    private(set) var writes = 0
    private(set) var fences = 0
    /// Seconds from the first reply to the last one.
    var seconds: TimeInterval { start.map { end.seconds(since: $0) } ?? 0 }
    private var start: Instant?
    private var end = Instant.origin
    private var step = Step.idle
    private var refusals = 0
    /// How many writes of the window have been made, and when it began.
    private var written = 0
    private var windowStart = Instant.origin

    init(count: Int, length: Int, fence: Fence) {
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
        case .idle, .finished:
            return nil
        case .writing(let part, let isRequest):
            if let failure { return refused(failure) }
            sent = part.upperBound
            refusals = 0
            writes += 1
            written += 1
            if isRequest { closeWindow(at: now) }
            return proceed()
        case .fencing:
            switch failure {
            case .linkLost?, .linkEnded?, .timedOut?: return finish(failure)
            // An error is a reply, too.
            case .busy?, .refused?, .invalidated?, nil: break
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
        if case .read(let id) = fence, written > 0, written >= window || sent == count {
            step = .fencing
            return .read(id)
        }
        guard sent < count else { return finish(nil) }
        let part = sent..<min(sent + length, count)
        let isRequest = fence == .write && (written + 1 >= window || part.upperBound == count)
        step = .writing(part, isRequest: isRequest)
        return .write(part, isRequest: isRequest)
    }

    private mutating func finish(_ failure: OperationFailure?) -> Action? {
        step = .finished
        return .finish(failure)
    }
}
