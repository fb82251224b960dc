import Glibc
public import Synchronization

/// A lock and a few flags in one word, for objects of which there may be millions.
///
/// Taking a free lock is one atomic instruction. Releasing it is an ordinary store, which also sets the flags. Nothing is
/// allocated or destroyed. A critical section is a few instructions long, so a thread that finds the lock taken tries a
/// little longer; after that it sleeps between attempts, so that a thread which lost its processor while it held the lock
/// gets it back.
///
/// Flags are the bits from `firstFlag` on. While the lock is held only its holder changes them. While it is free
/// `change(from:to:)` can also change them, in one step.
@usableFromInline
struct StateWord: ~Copyable, Sendable {
    @inlinable static var locked: UInt32 { 1 }
    @inlinable static var firstFlag: UInt32 { 2 }

    @usableFromInline let word: Atomic<UInt32>

    @inlinable
    init(_ flags: UInt32 = 0) {
        word = Atomic(flags)
    }

    /// The flags. Everything that was written before they were set is visible to the reader.
    @inlinable @inline(__always)
    var flags: UInt32 { word.load(ordering: .acquiring) & ~Self.locked }

    /// Waits until the lock is free, takes it, and returns the flags.
    @inlinable @inline(__always)
    borrowing func lock() -> UInt32 {
        let present = word.load(ordering: .relaxed)
        return lock(at: present) ? present : lockSlowly()
    }

    /// Takes the lock if it is free and the flags are `present`.
    @inlinable @inline(__always)
    borrowing func lock(at present: UInt32) -> Bool {
        present & Self.locked == 0
            && word.compareExchange(
                expected: present, desired: present | Self.locked, successOrdering: .acquiring,
                failureOrdering: .relaxed
            ).exchanged
    }

    @usableFromInline @inline(never)
    borrowing func lockSlowly() -> UInt32 {
        var attempts = 0
        while true {
            let present = word.load(ordering: .relaxed)
            if lock(at: present) { return present }
            attempts += 1
            if attempts > 64 { usleep(50) }
        }
    }

    /// Sets the flags and releases the lock.
    @inlinable @inline(__always)
    borrowing func unlock(_ flags: UInt32) {
        word.store(flags, ordering: .releasing)
    }

    /// Changes the flags if they are `expected` and the lock is free. Returns whether it did.
    @inlinable @inline(__always)
    borrowing func change(from expected: UInt32, to flags: UInt32) -> Bool {
        word.compareExchange(
            expected: expected, desired: flags, successOrdering: .acquiringAndReleasing, failureOrdering: .relaxed
        ).exchanged
    }

    /// Runs `body` under the lock. The flags stay as they are.
    @inlinable @inline(__always)
    borrowing func withLock<R>(_ body: () -> R) -> R {
        let flags = lock()
        defer { unlock(flags) }
        return body()
    }
}
