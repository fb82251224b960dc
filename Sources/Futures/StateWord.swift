public import Synchronization

/// A lock and a few flags in one word, for objects that are made by the million.
///
/// Taking a free lock is one atomic instruction and so is giving it back, changing the flags by the way; nothing is
/// allocated or destroyed. A thread that finds it taken tries a little longer and then sleeps, so that a holder who lost
/// its processor gets it back.
///
/// Flags are the bits from `firstFlag` on. While the lock is held nobody but the holder changes them; while it is free
/// they may also be changed in one step by `change(from:to:)`.
@usableFromInline
struct StateWord: ~Copyable, Sendable {
    @inlinable static var locked: UInt32 { 1 }
    /// Somebody may be asleep, waiting for the lock.
    @inlinable static var crowded: UInt32 { 2 }
    @inlinable static var firstFlag: UInt32 { 4 }
    @inlinable static var allFlags: UInt32 { ~3 }

    @usableFromInline let word: Atomic<UInt32>

    @inlinable
    init(_ flags: UInt32 = 0) {
        word = Atomic(flags)
    }

    /// The flags as they are, and with them everything that was written before they became so.
    @inlinable @inline(__always)
    var flags: UInt32 { word.load(ordering: .acquiring) & Self.allFlags }

    /// Waits until the lock is free, takes it, and returns the flags.
    @inlinable @inline(__always)
    borrowing func lock() -> UInt32 {
        let present = word.load(ordering: .relaxed)
        if present & ~Self.allFlags == 0,
            word.compareExchange(
                expected: present, desired: present | Self.locked, successOrdering: .acquiring,
                failureOrdering: .relaxed
            ).exchanged
        {
            return present
        }
        return lockSlowly()
    }

    /// Gives the lock back and leaves `flags`.
    @inlinable @inline(__always)
    borrowing func unlock(_ flags: UInt32) {
        if word.exchange(flags, ordering: .releasing) & Self.crowded != 0 { wake() }
    }

    /// Changes the flags if they are `expected` and nobody has the lock.
    @inlinable @inline(__always)
    borrowing func change(from expected: UInt32, to flags: UInt32) -> Bool {
        word.compareExchange(
            expected: expected, desired: flags, successOrdering: .acquiringAndReleasing, failureOrdering: .relaxed
        ).exchanged
    }

    /// Runs `body` under the lock, with the flags, and leaves them as they are.
    @inlinable @inline(__always)
    borrowing func withLock<R>(_ body: (_ flags: UInt32) -> R) -> R {
        let flags = lock()
        defer { unlock(flags) }
        return body(flags)
    }

    @usableFromInline @inline(never)
    borrowing func lockSlowly() -> UInt32 {
        for _ in 0..<64 {
            if let flags = lockIfFree(adding: Self.locked) { return flags }
        }
        var flags: UInt32 = 0
        ParkingPlace.shared.sleep {
            // Whoever has slept leaves `crowded` behind, since others may sleep on: one waking too many, never one too few.
            while true {
                if let taken = lockIfFree(adding: Self.locked | Self.crowded) {
                    flags = taken
                    return true
                }
                let present = word.load(ordering: .relaxed)
                if present & Self.locked == 0 { continue }
                if present & Self.crowded != 0 { return false }
                if word.compareExchange(expected: present, desired: present | Self.crowded, ordering: .relaxed)
                    .exchanged
                {
                    return false
                }
            }
        }
        return flags
    }

    private borrowing func lockIfFree(adding bits: UInt32) -> UInt32? {
        let present = word.load(ordering: .relaxed)
        guard present & Self.locked == 0,
            word.compareExchange(
                expected: present, desired: present | bits, successOrdering: .acquiring, failureOrdering: .relaxed
            ).exchanged
        else { return nil }
        return present & Self.allFlags
    }

    @usableFromInline @inline(never)
    borrowing func wake() {
        ParkingPlace.shared.wakeAll()
    }
}
