/// The clock of the operators that depend on time. Tests pass one that they control.
package protocol DelayClock: Sendable {
    /// Runs `work` once, after `seconds`.
    func after(_ seconds: Double, _ work: @escaping @Sendable () -> Void)
}

/// The real time, on a queue of this module.
struct DispatchClock: DelayClock {
    static let shared = DispatchClock()

    private let queue = Queue("Futures.delays")

    func after(_ seconds: Double, _ work: @escaping @Sendable () -> Void) {
        if seconds.isFinite { queue.delay(seconds, work) }
    }
}

/// The error of the future that ``Future/timeout(_:)`` returns, if the time was too short.
public struct FutureTimedOutError: Error, Hashable, Sendable {
    /// The time-out, in seconds.
    public let seconds: Double

    /// Creates the error of a time-out.
    public init(seconds: Double) {
        self.seconds = seconds
    }
}

extension Future {
    /// Returns a future of the same outcome, or of the failure ``FutureTimedOutError`` if there is none within `seconds`.
    ///
    /// A time-out does not cancel this future, nor the operation that will complete it.
    public func timeout(_ seconds: Double) -> Future<T> {
        timeout(seconds, clock: DispatchClock.shared)
    }

    package func timeout(_ seconds: Double, clock: any DelayClock) -> Future<T> {
        if let result { return Future(result: result) }
        let timed = Future<T>()
        // The timer must retain the returned future, since this one may be released; but only until that is complete.
        let undecided = Locked<Future<T>?>(timed)
        add(
            .completion { outcome in
                undecided.withLock { $0 = nil }
                timed.complete(outcome)
            })
        clock.after(seconds) {
            let late = undecided.withLock { $0.take() }
            late?.failure(FutureTimedOutError(seconds: seconds))
        }
        return timed
    }

    /// Returns a future of the same outcome, which completes `seconds` after this one.
    public func delay(_ seconds: Double) -> Future<T> {
        delay(seconds, clock: DispatchClock.shared)
    }

    package func delay(_ seconds: Double, clock: any DelayClock) -> Future<T> {
        derive(ImmediateContext(), .uncancellable) { delayed, outcome in
            // A future locks itself, and the outcome is passed on once.
            nonisolated(unsafe) let (delayed, outcome) = (delayed, outcome)
            clock.after(seconds) { delayed.complete(outcome) }
        }
    }
}

/// The waits between the tries of ``retry(times:backoff:_:)``.
public struct Backoff: Sendable {
    /// Returns the wait in seconds after the try of that number, from 1 on; 0 or less for none. It is called on the thread that
    /// reports the failure.
    public let seconds: @Sendable (_ attempt: Int) -> Double

    /// Creates a backoff from its function.
    public init(_ seconds: @escaping @Sendable (_ attempt: Int) -> Double) {
        self.seconds = seconds
    }

    /// No wait.
    public static var none: Backoff { Backoff { _ in 0 } }

    /// The same wait after every try.
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

/// Returns a future of the value of `task`, which is called again after a failure, up to `times` times.
///
/// If all tries fail, it fails with the error of the last. The first try is made before `retry` returns, and each further
/// one after the wait that `backoff` returns, on the thread that reports the failure or, after a wait, on a queue of this
/// module. If `task` throws, the try has failed.
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
    // A future locks itself.
    nonisolated(unsafe) let retried = Future<T>()
    @Sendable func tryOnce(_ attempt: Int) {
        let tried: Future<T>
        do { tried = try task() } catch { tried = Future(error: error) }
        tried.add(
            .completion { outcome in
                guard outcome.isFailure(), attempt <= times else {
                    retried.complete(outcome)
                    return
                }
                let wait = backoff.seconds(attempt)
                if wait > 0 { clock.after(wait) { tryOnce(attempt + 1) } } else { tryOnce(attempt + 1) }
            })
    }
    tryOnce(1)
    return retried
}

/// The former name of ``FutureTimedOutError``.
@available(*, deprecated, renamed: "FutureTimedOutError")
public typealias FutureTimedOut = FutureTimedOutError
