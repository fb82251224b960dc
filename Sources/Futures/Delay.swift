import Dispatch

/// What the operators that take time wait on. Tests bring one whose time they move themselves.
package protocol DelayClock: Sendable {
    /// Runs `work` once, after `seconds`.
    func after(_ seconds: Double, _ work: @escaping @Sendable () -> Void)

    /// Seconds since some moment in the past.
    var now: Double { get }
}

/// Real time, on a queue of the module's own.
struct DispatchClock: DelayClock {
    static let shared = DispatchClock()

    private let queue = DispatchQueue(label: "Futures.delays")

    func after(_ seconds: Double, _ work: @escaping @Sendable () -> Void) {
        guard seconds.isFinite else { return }
        queue.asyncAfter(deadline: .now() + seconds, execute: work)
    }

    var now: Double { Double(DispatchTime.now().uptimeNanoseconds) / 1e9 }
}

/// What a future fails with that was given ``Future/timeout(_:)`` and took longer.
public struct FutureTimedOut: Error, Hashable, Sendable {
    /// How long it was waited for.
    public let seconds: Double

    public init(seconds: Double) {
        self.seconds = seconds
    }
}

extension Future {
    /// A future of the same outcome, or of the failure ``FutureTimedOut`` if there is none within `seconds`.
    ///
    /// The first of the two decides. This future goes on all the same, since whatever completes it does.
    public func timeout(_ seconds: Double) -> Future<T> {
        timeout(seconds, clock: DispatchClock.shared)
    }

    package func timeout(_ seconds: Double, clock: any DelayClock) -> Future<T> {
        if let result { return Future(result: result) }
        let timed = Future<T>()
        // What waits for the time must keep the future, since this one may be given up; but not once it is decided.
        let undecided = Locked<Future<T>?>(timed)
        add(
            .completion { outcome in
                undecided.withLock { $0 = nil }
                timed.complete(outcome)
            })
        clock.after(seconds) {
            let late = undecided.withLock { $0.take() }
            late?.failure(FutureTimedOut(seconds: seconds))
        }
        return timed
    }

    /// A future of the same outcome, `seconds` after it came.
    public func delay(_ seconds: Double) -> Future<T> {
        delay(seconds, clock: DispatchClock.shared)
    }

    package func delay(_ seconds: Double, clock: any DelayClock) -> Future<T> {
        let delayed = Future<T>()
        // Captures a future, which locks itself, and an outcome, which is passed on.
        add(.completion { outcome in clock.after(seconds, assumeSendable { delayed.complete(outcome) }) })
        return delayed
    }
}

/// How long to wait before another try.
public struct Backoff: Sendable {
    /// The wait after the try of that number, the first being 1, in seconds.
    public let seconds: @Sendable (_ attempt: Int) -> Double

    public init(_ seconds: @escaping @Sendable (_ attempt: Int) -> Double) {
        self.seconds = seconds
    }

    /// No wait.
    public static var none: Backoff { Backoff { _ in 0 } }

    /// Always the same wait.
    public static func constant(_ seconds: Double) -> Backoff {
        Backoff { _ in seconds }
    }

    /// `first` seconds, then each time `factor` times as long, and never more than `limit`.
    public static func exponential(first: Double, factor: Double = 2, limit: Double = .infinity) -> Backoff {
        Backoff { attempt in
            var wait = first
            for _ in 1..<Swift.max(attempt, 1) where wait < limit { wait *= factor }
            return Swift.min(wait, limit)
        }
    }
}

/// A future of what `task` succeeds with: if it fails it is tried again, up to `times` times more.
///
/// When all tries have failed, it fails with the error of the last. The first try is made before `retry` returns, each
/// further one after the wait that `backoff` says, on the thread that reports the failure or on that of the delays.
/// A `task` that throws has failed.
@preconcurrency
public func retry<T>(
    times: Int, backoff: Backoff = .none, _ task: @escaping @Sendable () throws -> Future<T>
) -> Future<T> {
    retry(times: times, backoff: backoff, clock: DispatchClock.shared, task)
}

package func retry<T>(
    times: Int, backoff: Backoff, clock: any DelayClock, _ task: @escaping @Sendable () throws -> Future<T>
) -> Future<T> {
    precondition(times >= 0, "retry(times:) tries once and then up to `times` times more, so 0 is the least.")
    let retried = Future<T>()
    tryOnce(1, of: times + 1, backoff: backoff, clock: clock, task, into: retried)
    return retried
}

private func tryOnce<T>(
    _ attempt: Int, of attempts: Int, backoff: Backoff, clock: any DelayClock,
    _ task: @escaping @Sendable () throws -> Future<T>, into retried: Future<T>
) {
    let tried: Future<T>
    do { tried = try task() } catch { tried = Future(error: error) }
    tried.add(
        .completion { outcome in
            guard outcome.isFailure(), attempt < attempts else {
                retried.complete(outcome)
                return
            }
            let again = {
                tryOnce(attempt + 1, of: attempts, backoff: backoff, clock: clock, task, into: retried)
            }
            let wait = backoff.seconds(attempt)
            // Captures `@Sendable` closures and a future, which locks itself. No outcome.
            if wait > 0 { clock.after(wait, assumeSendable(again)) } else { again() }
        })
}
