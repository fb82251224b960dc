package import Glibc

/// State that can only be accessed in `withLock`.
///
/// The lock is a `pthread_mutex_t` rather than a `Synchronization.Mutex`, because the thread sanitizer of this toolchain
/// understands the former and reports false races for the latter.
///
/// `body` must not run code that it does not know. Documentation/Architecture.md has the order in which locks are taken.
// `@unchecked`: the state is accessed only while the mutex is held. Both are parts of one object, so their addresses do not
// change.
package struct Locked<State>: @unchecked Sendable {
    @usableFromInline let storage: ManagedBuffer<State, pthread_mutex_t>

    package init(_ state: State) {
        storage = Storage.create(minimumCapacity: 1) { _ in state }
        storage.withUnsafeMutablePointerToElements { mutex in
            mutex.initialize(to: pthread_mutex_t())
            pthread_mutex_init(mutex, nil)
        }
    }

    private final class Storage: ManagedBuffer<State, pthread_mutex_t> {
        deinit {
            withUnsafeMutablePointerToElements { mutex in
                pthread_mutex_destroy(mutex)
                mutex.deinitialize(count: 1)
            }
        }
    }

    /// Runs `body` with the state, which no other thread accesses until `body` has returned.
    // Inlinable, so that `body` becomes a part of its caller, in which the types are known.
    @inlinable
    package func withLock<R, E: Error>(_ body: (inout State) throws(E) -> R) throws(E) -> R {
        try storage.withUnsafeMutablePointers { state, mutex throws(E) in
            pthread_mutex_lock(mutex)
            defer { pthread_mutex_unlock(mutex) }
            return try body(&state.pointee)
        }
    }
}

/// Returns `task`, a closure over values of an unconstrained `T`, as one that an execution context may run on another
/// thread.
///
/// It is for closures that this module writes, never for one that it receives: a closure of the caller's that is to run
/// on another thread is `@Sendable` in the signature that takes it. Each use names what its closure captures, which is
/// of three kinds:
/// - A future, a stream or a part of one. They lock their state themselves; the compiler does not accept them only
///   because they are `Sendable` only if `T` is.
/// - Closures that were `@Sendable` when the caller passed them and are stored without that attribute.
/// - An outcome. The task neither reads nor changes it; it passes it on, once, and keeps no copy. Whether a `T` that is
///   not `Sendable` may go to another thread is what the caller decides by choosing a context, as ``Future`` documents.
@inlinable
func assumeSendable(_ task: @escaping () -> Void) -> @Sendable () -> Void {
    unsafeBitCast(IsolatedTask(body: task), to: SendableTask.self).body
}

/// The same for a function of a future's outcome.
@inlinable
func assumeSendable<A, R>(_ function: @escaping (A) -> R) -> @Sendable (A) -> R {
    unsafeBitCast(function, to: (@Sendable (A) -> R).self)
}

/// A closure that can be cast without being passed to a generic function, which would wrap it twice, each time with an
/// allocation.
@usableFromInline
struct IsolatedTask {
    let body: () -> Void

    @usableFromInline
    init(body: @escaping () -> Void) {
        self.body = body
    }
}

@usableFromInline
struct SendableTask {
    @usableFromInline let body: @Sendable () -> Void
}
