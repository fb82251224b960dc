import Glibc
import XCTest

/// Leaves this process short of something, as long as a piece of work lasts.
///
/// The work must do without what is missing: it waits on semaphores and conditions, and makes no assertions that fail, since
/// a failed one is written down with files.
package enum Shortage {
    /// Runs the work while so many descriptors are free.
    package static func ofDescriptors<R>(leaving count: Int, _ work: () throws -> R) throws -> R {
        try warmUp()
        // A descriptor gets the lowest free number, which has to be below the limit.
        let lowest = (0...count).map { _ in dup(STDERR_FILENO) }
        for descriptor in lowest { close(descriptor) }
        guard let first = lowest.last, first >= 0 else { throw POSIXError(.EMFILE) }
        return try limit(RLIMIT_NOFILE, to: rlim_t(first), work)
    }

    /// Runs the work while no thread can be made: there is less address space left than a stack takes. (The limit on the
    /// number of a user's threads does not bind root.)
    package static func ofThreads<R>(_ work: () throws -> R) throws -> R {
        try warmUp()
        let statistics = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
        let pages = try XCTUnwrap(statistics.split(separator: " ").first.flatMap { UInt64($0) })
        let size = pages * UInt64(sysconf(Int32(_SC_PAGESIZE)))
        return try limit(RLIMIT_AS, to: rlim_t(size) + rlim_t(stackSize() / 2)) {
            // The stacks of threads that have ended are kept for others.
            let idle = IdleThreads()
            defer { idle.end() }
            return try work()
        }
    }

    /// What glibc takes for a thread: the limit of the first one's stack.
    private static func stackSize() -> UInt64 {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_STACK.rawValue), &limit)
        return limit.rlim_cur == rlim_t.max ? 2 << 20 : UInt64(limit.rlim_cur)
    }

    /// libdispatch makes its descriptors when the first timer is set, and ends the process where it cannot. It makes one more
    /// for each further clock.
    package static func warmUp() throws {
        let isDone = DispatchSemaphore(value: 0)
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1)) { isDone.signal() }
        guard isDone.wait(timeout: .now() + 10) == .success else { throw POSIXError(.ETIMEDOUT) }
    }

    private static func limit<R>(
        _ resource: __rlimit_resource, to count: rlim_t, _ work: () throws -> R
    ) throws -> R {
        let resource = __rlimit_resource_t(resource.rawValue)
        var usual = rlimit()
        guard getrlimit(resource, &usual) == 0 else { throw POSIXError(.EINVAL) }
        var short = rlimit(rlim_cur: count, rlim_max: usual.rlim_max)
        guard setrlimit(resource, &short) == 0 else { throw POSIXError(.EPERM) }
        defer { setrlimit(resource, &usual) }
        return try work()
    }

    /// Waits until the condition holds. It polls, since there is no event to wait for. Returns whether
    /// it does within `limit` seconds.
    package static func wait(limit: Double, until condition: () -> Bool) -> Bool {
        let end = DispatchTime.now() + limit
        while !condition() {
            guard DispatchTime.now() < end else { return false }
            _ = DispatchSemaphore(value: 0).wait(timeout: .now() + 0.005)
        }
        return true
    }
}

/// As many threads as can be made, which do nothing.
private final class IdleThreads {
    private let gate = DispatchSemaphore(value: 0)
    private var threads: [pthread_t] = []

    init() {
        threads.reserveCapacity(1024)
        var thread = pthread_t()
        while threads.count < 1024,
            pthread_create(
                &thread, nil,
                { argument in
                    guard let argument else { return nil }
                    Unmanaged<DispatchSemaphore>.fromOpaque(argument).takeUnretainedValue().wait()
                    return nil
                }, Unmanaged.passUnretained(gate).toOpaque()) == 0
        {
            threads.append(thread)
        }
    }

    func end() {
        for _ in threads { gate.signal() }
        for thread in threads { pthread_join(thread, nil) }
    }
}
