/// Storage for one value, empty at first: a small value is stored in it, a large one in memory of its own.
///
/// It consists of plain words and does not know the type, so that the `deinit` of a future need not look up `Optional<T>` to
/// destroy the value. That look-up costs a quarter of the time of a promise with one handler. In exchange the owner decides
/// when to `store`, to `load` and to `destroy`, always with the same type.
// The reasoning: the slot is a stored property of a class, so its address does not change; it is aligned for words, and
// only types that need no more alignment and no more space than that are stored in it; `store` is called once, on an empty slot,
// `load` and `destroy` only on a full one. Future's phases see to that.
@usableFromInline
struct OutcomeSlot {
    @usableFromInline typealias Words = (UInt, UInt, UInt, UInt)

    @usableFromInline var words: Words = (0, 0, 0, 0)

    @inlinable
    init() {}

    /// Whether values of a type are stored in the slot itself.
    @inlinable @inline(__always)
    static func isInline<T>(_ type: T.Type) -> Bool {
        MemoryLayout<T>.size <= MemoryLayout<Words>.size && MemoryLayout<T>.alignment <= MemoryLayout<Words>.alignment
    }

    /// Stores a value in the empty slot.
    @inlinable @inline(__always)
    mutating func store<T>(_ value: T) {
        if Self.isInline(T.self) {
            withUnsafeMutablePointer(to: &words) {
                _ = UnsafeMutableRawPointer($0).initializeMemory(as: T.self, to: value)
            }
        } else {
            storeElsewhere(value)
        }
    }

    /// Returns a copy of the value in the full slot.
    @inlinable @inline(__always)
    func load<T>(_ type: T.Type) -> T {
        guard Self.isInline(T.self) else { return elsewhere(T.self).pointee }
        return withUnsafePointer(to: words) { UnsafeRawPointer($0).assumingMemoryBound(to: T.self).pointee }
    }

    /// Destroys the value in the full slot, which is then empty.
    @inlinable @inline(__always)
    mutating func destroy<T>(_ type: T.Type) {
        if Self.isInline(T.self) {
            withUnsafeMutablePointer(to: &words) {
                _ = UnsafeMutableRawPointer($0).assumingMemoryBound(to: T.self).deinitialize(count: 1)
            }
        } else {
            destroyElsewhere(T.self)
        }
    }

    @usableFromInline @inline(never)
    mutating func storeElsewhere<T>(_ value: T) {
        let place = UnsafeMutablePointer<T>.allocate(capacity: 1)
        place.initialize(to: value)
        words.0 = UInt(bitPattern: place)
    }

    @usableFromInline @inline(never)
    func destroyElsewhere<T>(_ type: T.Type) {
        let place = elsewhere(T.self)
        place.deinitialize(count: 1)
        place.deallocate()
    }

    /// The address of a large value.
    @usableFromInline
    func elsewhere<T>(_ type: T.Type) -> UnsafeMutablePointer<T> {
        guard let place = UnsafeMutablePointer<T>(bitPattern: words.0) else {
            preconditionFailure("A future was asked for its outcome before it had one; ask `result`, which may be nil.")
        }
        return place
    }
}
