import Glibc
import Synchronization

/// Something with deliveries to make that had to wait because the stack was deep.
@usableFromInline
protocol Delivering: AnyObject {
    /// Makes the deliveries that are due. Called once for each `postpone`.
    func deliverPostponed()
}

/// What the present thread has under way: how deeply handlers are nested, and what waits for the stack to unwind.
///
/// Handlers on ``ImmediateContext`` are plain nested calls, so a chain of 100 000 steps would be a stack of 100 000
/// frames. From `depthLimit` levels on, deliveries are queued here instead, and the outermost call makes them before it
/// returns: the caller still sees everything completed.
@usableFromInline
struct ThreadWork {
    /// Deep enough that ordinary code never notices, shallow enough for the small stacks of worker threads.
    @usableFromInline static let depthLimit = 32

    @usableFromInline var depth = 0
    @usableFromInline var postponed: [any Delivering] = []
    /// How many tasks of ``MaxStackDepthContext`` are running inside each other.
    var taskDepth = 0
    /// Handlers of futures that were given up, to be released one after the other instead of one inside the other.
    var discarded: [Any] = []
    var isDiscarding = false

    /// The record of the calling thread, valid until the thread ends.
    @usableFromInline
    static var current: UnsafeMutablePointer<ThreadWork> {
        let key = existingKey.load(ordering: .acquiring)
        if key != 0, let record = pthread_getspecific(pthread_key_t(key - 1)) {
            return record.assumingMemoryBound(to: ThreadWork.self)
        }
        return makeCurrent()
    }

    /// The thread-specific key plus one; 0 until the first thread asks.
    private static let existingKey = Atomic<UInt32>(0)

    @inline(never)
    private static func makeCurrent() -> UnsafeMutablePointer<ThreadWork> {
        let key = pthread_key_t(sharedKey() - 1)
        if let record = pthread_getspecific(key) { return record.assumingMemoryBound(to: ThreadWork.self) }
        let record = UnsafeMutablePointer<ThreadWork>.allocate(capacity: 1)
        record.initialize(to: ThreadWork())
        pthread_setspecific(key, record)
        return record
    }

    private static func sharedKey() -> UInt32 {
        let existing = existingKey.load(ordering: .acquiring)
        guard existing == 0 else { return existing }
        var created = pthread_key_t()
        let status = pthread_key_create(&created) { record in
            guard let record = record?.assumingMemoryBound(to: ThreadWork.self) else { return }
            record.deinitialize(count: 1)
            record.deallocate()
        }
        precondition(
            status == 0, "No thread-specific key is left: the process uses more than PTHREAD_KEYS_MAX of them.")
        let mine = UInt32(created) + 1
        let (exchanged, original) = existingKey.compareExchange(
            expected: 0, desired: mine, ordering: .acquiringAndReleasing)
        if exchanged { return mine }
        pthread_key_delete(created)
        return original
    }
}

/// The record is reached through a pointer, never through `inout`: whatever runs in here may come back to it.
extension UnsafeMutablePointer<ThreadWork> {
    /// Whether one more handler may run inside those that are running.
    @inlinable
    var mayNest: Bool { pointee.depth < ThreadWork.depthLimit }

    @inlinable @inline(__always)
    func enter() {
        pointee.depth += 1
    }

    @inlinable @inline(__always)
    func leave() {
        pointee.depth -= 1
        if pointee.depth == 0, !pointee.postponed.isEmpty { deliverPostponed() }
    }

    /// Lets `waiting` deliver when the stack has unwound.
    @usableFromInline
    func postpone(_ waiting: any Delivering) {
        pointee.postponed.append(waiting)
    }

    /// Makes the postponed deliveries, in the order they were postponed; called by the outermost level only.
    @usableFromInline @inline(never)
    func deliverPostponed() {
        pointee.depth += 1
        while !pointee.postponed.isEmpty {
            let batch = pointee.postponed
            pointee.postponed = []
            for waiting in batch { waiting.deliverPostponed() }
        }
        pointee.depth -= 1
    }

    /// Releases `things` without nesting, so that giving up a long chain does not unwind it on the stack.
    @usableFromInline @inline(never)
    func discard(_ things: consuming Any) {
        // `consuming`: the list must be the only one that holds them, or they would be released by the caller, nested.
        keepDiscarded(things)
        guard !pointee.isDiscarding else { return }
        pointee.isDiscarding = true
        while releaseOneDiscarded() {}
        pointee.isDiscarding = false
    }

    // Not inlined, these two: what is released comes back to the list, which must not be half changed by then.

    @inline(never)
    private func keepDiscarded(_ things: consuming Any) {
        pointee.discarded.append(things)
    }

    @inline(never)
    private func takeDiscarded() -> Any? {
        pointee.discarded.popLast()
    }

    @inline(never)
    private func releaseOneDiscarded() -> Bool {
        takeDiscarded() != nil
    }
}
