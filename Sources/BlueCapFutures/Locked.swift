public import Glibc

/// State that can only be accessed in `withLock`.
///
/// The lock is a `pthread_mutex_t` rather than a `Synchronization.Mutex`, because the thread sanitizer of this toolchain
/// understands the former and reports false races for the latter.
///
/// `body` must not run code that it does not know. Documentation/Architecture.md has the order in which locks are taken.
// `@unchecked`: the state is accessed only while the mutex is held. Both are parts of one object, so their addresses do not
// change.
@usableFromInline
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
    // Inlinable, so that `body` becomes a part of its caller, in which the types are known. The type must be usable from inline
    // code for that: else the optimizer leaves this function generic in other modules.
    @inlinable
    package func withLock<R, E: Error>(_ body: (inout State) throws(E) -> R) throws(E) -> R {
        try storage.withUnsafeMutablePointers { state, mutex throws(E) in
            pthread_mutex_lock(mutex)
            defer { pthread_mutex_unlock(mutex) }
            return try body(&state.pointee)
        }
    }
}
