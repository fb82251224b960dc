import Glibc
import Synchronization

/// An object whose deliveries were postponed because the stack was deep.
@usableFromInline
protocol Delivering: AnyObject {
    /// Makes the deliveries that are due. Called once for each `postpone`.
    func deliverWaiting()
}

/// The state of one thread: how deeply handlers are nested on it, and what is postponed until the stack has unwound.
///
/// Handlers on ``ImmediateContext`` are plain nested calls, so a chain of 100 000 steps would be a stack of 100 000
/// frames. From `depthLimit` levels on, deliveries are queued here instead, and the outermost call makes them before it
/// returns: the caller still sees everything completed.
@usableFromInline
struct ThreadWork {
    /// Deep enough for ordinary code, and shallow enough for the small stacks of worker threads.
    @usableFromInline static let depthLimit = 32

    @usableFromInline var depth = 0
    @usableFromInline var postponed: [any Delivering] = []
    /// How many tasks of ``MaxStackDepthContext`` are running inside each other.
    var taskDepth = 0
    /// Handlers that will never run, to be released one after the other instead of one inside the other.
    var discarded: [Any] = []
    var isDiscarding = false
    /// Whether the thread runs what it adds itself, when its present work is done; see ``TaskThread``.
    var runsTasks = false
    /// The default context, if tasks may wait there for this thread.
    @usableFromInline var defaultTasks: DefaultTasks?
    /// A job of a ``ResumingThreadExecutor`` that waits for this thread.
    @usableFromInline var job: UnownedJob?

    @inlinable var hasTasks: Bool { defaultTasks != nil || job != nil }

    /// The record of the calling thread, valid until the thread ends.
    @usableFromInline
    static var current: UnsafeMutablePointer<ThreadWork> {
        let key = existingKey.load(ordering: .acquiring)
        if key != 0, let record = pthread_getspecific(pthread_key_t(key - 1)) {
            return record.assumingMemoryBound(to: ThreadWork.self)
        }
        return makeCurrent()
    }

    /// The thread-specific key plus one; 0 until a thread has read `createdKey`. Reading this costs less.
    private static let existingKey = Atomic<UInt32>(0)

    private static let createdKey: pthread_key_t = {
        var created = pthread_key_t()
        let status = pthread_key_create(&created) { record in
            guard let record = record?.assumingMemoryBound(to: ThreadWork.self) else { return }
            record.deinitialize(count: 1)
            record.deallocate()
        }
        precondition(
            status == 0, "No thread-specific key is left: the process uses more than PTHREAD_KEYS_MAX of them.")
        return created
    }()

    @inline(never)
    private static func makeCurrent() -> UnsafeMutablePointer<ThreadWork> {
        let key = createdKey
        existingKey.store(UInt32(key) + 1, ordering: .releasing)
        if let record = pthread_getspecific(key) { return record.assumingMemoryBound(to: ThreadWork.self) }
        let record = UnsafeMutablePointer<ThreadWork>.allocate(capacity: 1)
        record.initialize(to: ThreadWork())
        pthread_setspecific(key, record)
        return record
    }
}

/// The record is accessed through a pointer, never through `inout`, because code that these functions run may access it too.
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

    /// Postpones the deliveries of `waiting` until the stack has unwound.
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
            for waiting in batch { waiting.deliverWaiting() }
        }
        pointee.depth -= 1
    }

    /// Releases `things` without nesting, so that the release of a long chain does not need a deep stack.
    @usableFromInline @inline(never)
    func discard(_ things: consuming Any) {
        // `consuming`: the list must be the only one that holds them, or they would be released by the caller, nested.
        keepDiscarded(things)
        guard !pointee.isDiscarding else { return }
        pointee.isDiscarding = true
        while releaseOneDiscarded() {}
        pointee.isDiscarding = false
    }

    // These are not inlined: the release of one element may append others to the list, so no change of the list may be in
    // progress then.

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
