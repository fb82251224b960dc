package import Glibc

// The claims of this file are the only ones in the module that the compiler takes on trust. Each says why it holds.

/// State behind a lock: the only way in is `withLock`.
///
/// A box over `pthread_mutex_t` rather than `Synchronization.Mutex`, because the thread sanitizer of this toolchain
/// understands the former and reports false races for the latter.
///
/// The lock is a leaf: `body` must not run code it does not know, and must not take another lock.
// `@unchecked`: `state` is touched only between lock and unlock of `mutex`, and the mutex lives at a stable address.
package final class Locked<State>: @unchecked Sendable {
    @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>
    // Behind a pointer, since the lock keeps accesses apart already: of a variable the runtime would check it at each.
    @usableFromInline let state: UnsafeMutablePointer<State>

    package init(_ state: State) {
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
        self.state = .allocate(capacity: 1)
        self.state.initialize(to: state)
    }

    deinit {
        state.deinitialize(count: 1)
        state.deallocate()
        pthread_mutex_destroy(mutex)
        mutex.deinitialize(count: 1)
        mutex.deallocate()
    }

    /// Runs `body` alone with the state and returns what it returns.
    // Inlinable, so that `body` becomes a part of its caller, with types that are known there.
    @inlinable
    package func withLock<R>(_ body: (inout State) throws -> R) rethrows -> R {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&state.pointee)
    }
}

/// Where threads sleep that found a `WordLock` taken: one mutex and one condition for the whole process, which is enough,
/// because critical sections here are a few instructions long and a thread gets here only when another lost its
/// processor inside one.
// `@unchecked`: both pointers are constants, allocated once and never freed; what they point at is made for threads.
final class ParkingPlace: @unchecked Sendable {
    static let shared = ParkingPlace()

    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    private init() {
        mutex.initialize(to: pthread_mutex_t())
        condition.initialize(to: pthread_cond_t())
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    /// Sleeps until `isFree` answers true; it is asked before sleeping and after every `wakeAll`.
    func sleep(until isFree: () -> Bool) {
        pthread_mutex_lock(mutex)
        while !isFree() { pthread_cond_wait(condition, mutex) }
        pthread_mutex_unlock(mutex)
    }

    func wakeAll() {
        pthread_mutex_lock(mutex)
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
    }
}

/// Lets a closure over values of an unconstrained `T` go to an execution context, which may run it on another thread.
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
    unsafeBitCast(task, to: (@Sendable () -> Void).self)
}

/// The same for a function of what a future hands to its handlers.
@inlinable
func assumeSendable<A, R>(_ function: @escaping (A) -> R) -> @Sendable (A) -> R {
    unsafeBitCast(function, to: (@Sendable (A) -> R).self)
}
