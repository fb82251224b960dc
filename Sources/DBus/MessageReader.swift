/// Reads a message's values one after another, by the type that the caller expects, straight from the wire form.
///
/// A value of another type gives nil (or false) and is not consumed, so that a caller can try another type, or `skip`.
/// Nothing here traps, whatever the other side has sent.
///
/// libdbus receives and validates; reading is done here, on the bytes (D-Bus specification, "Marshaling"). Its own
/// iterators check and walk anew at every step, which costs more than all the rest that becomes of a signal.
package struct MessageReader {
    /// Kept alive, because it owns the bytes and the signature.
    let message: Message
    private(set) var wire: UnsafeRawBufferPointer
    /// Behind the last value that was read, from the body's beginning; alignment counts from there too.
    var position = 0
    // The types of what is left at this level. Inside a container the level is the container's.
    var types: UnsafePointer<UInt8>
    var typesEnd: UnsafePointer<UInt8>

    init(_ message: Message) {
        self.message = message
        let signature = message.signatureBytes
        types = signature.baseAddress ?? UnsafePointer(("" as StaticString).utf8Start)
        typesEnd = types + signature.count
        guard let start = message.bodyInPlace else {
            wire = message.body
            // Without its bytes (there was no memory for them) a message reads as one without arguments.
            if wire.isEmpty { typesEnd = types }
            return
        }
        wire = UnsafeRawBufferPointer(start: start, count: MessageReader.mostBytes)
        #if DEBUG
        // The length is in no field that libdbus shows. Only checks need it, and only debug builds check.
        let first = types
        while !isAtEnd { step() }
        wire = UnsafeRawBufferPointer(start: start, count: position)
        types = first
        position = 0
        #endif
    }

    /// No message is longer (D-Bus specification, "Message Format").
    private static let mostBytes = 1 << 27

    /// The type of the next value, `.end` where there is none.
    package var type: ArgumentType { isAtEnd ? .end : ArgumentType(signatureCode: types.pointee) }
    package var isAtEnd: Bool { types == typesEnd }

    /// Where the next value is an array, the type of its elements.
    package var elementType: ArgumentType { isAt("a") ? ArgumentType(signatureCode: types[1]) : .end }

    /// The signature of the next value, empty at the end.
    package var signature: String {
        guard !isAtEnd else { return "" }
        return String(decoding: UnsafeBufferPointer(start: types, count: typeEnd(types) - types), as: UTF8.self)
    }

    /// Steps over the next value, of whatever type.
    package mutating func skip() {
        if !isAtEnd { step() }
    }

    // MARK: Numbers

    package mutating func byte() -> UInt8? { number("y") }
    package mutating func int16() -> Int16? { number("n") }
    package mutating func uint16() -> UInt16? { number("q") }
    package mutating func int32() -> Int32? { number("i") }
    package mutating func uint32() -> UInt32? { number("u") }
    package mutating func int64() -> Int64? { number("x") }
    package mutating func uint64() -> UInt64? { number("t") }
    package mutating func double() -> Double? { number("d") }
    package mutating func bool() -> Bool? { (number("b") as UInt32?).map { $0 != 0 } }

    @inline(__always)
    private mutating func number<T: BitwiseCopyable>(_ code: Unicode.Scalar) -> T? {
        guard isAt(code) else { return nil }
        types += 1
        return .some(take())
    }

    // MARK: Texts

    package mutating func string() -> String? { isAt("s") ? withString { String(decoding: $0, as: UTF8.self) } : nil }

    package mutating func objectPath() -> ObjectPath? {
        guard isAt("o") else { return nil }
        return withString { ObjectPath(validated: String(decoding: $0, as: UTF8.self)) }
    }

    package mutating func signatureValue() -> String? {
        guard isAt("g") else { return nil }
        types += 1
        let length = Int(take() as UInt8)
        defer { position += length + 1 }
        return String(decoding: slice(length), as: UTF8.self)
    }

    /// The bytes of a string or an object path, in place; they must not be kept.
    @inlinable
    package mutating func withString<R>(_ body: (UnsafeBufferPointer<UInt8>) throws -> R) rethrows -> R? {
        guard let bytes = stringBytes() else { return nil }
        return try withExtendedLifetime(self) { try body(bytes) }
    }

    @usableFromInline
    mutating func stringBytes() -> UnsafeBufferPointer<UInt8>? {
        guard isAt("s") || isAt("o") else { return nil }
        types += 1
        let length = Int(take() as UInt32)
        defer { position += length + 1 }
        return slice(length)
    }

    /// Whether the next value is this very string, compared in place; consumed only if so.
    package mutating func skip(ifString expected: StaticString) -> Bool {
        guard isAt("s") else { return false }
        var next = self
        guard let text = next.stringBytes(), text.elementsEqual(expected.bytes) else { return false }
        self = next
        return true
    }

    // MARK: Arrays of bytes

    /// An array of bytes, in one copy.
    package mutating func bytes() -> [UInt8]? {
        withBytes { Array($0) }
    }

    /// An array of bytes, in place; they must not be kept.
    @inlinable
    package mutating func withBytes<R>(_ body: (UnsafeBufferPointer<UInt8>) throws -> R) rethrows -> R? {
        guard let bytes = arrayBytes() else { return nil }
        return try withExtendedLifetime(self) { try body(bytes) }
    }

    @usableFromInline
    mutating func arrayBytes() -> UnsafeBufferPointer<UInt8>? {
        guard isAt("a"), types[1] == UInt8(ascii: "y") else { return nil }
        types += 2
        let length = Int(take() as UInt32)
        defer { position += length }
        return slice(length)
    }

    // MARK: Containers

    // The ways in and out are functions without generic parameters, and what is called with a body is inlined into the
    // caller's module around them. As generic functions of this module they would look up the body's type at each call,
    // which costs more than reading the value.

    /// Calls `each` with the reader at each element of an array; it sees that element alone, and where it leaves the
    /// reader does not matter. False where the next value is no array (or one of dictionary entries: see `dictionary`).
    @discardableResult
    @inlinable
    package mutating func array(_ each: (inout MessageReader) throws -> Void) rethrows -> Bool {
        guard let elements = enterArray(ofEntries: false) else { return false }
        defer { leave(to: elements) }
        while goToNext(of: elements) { try each(&self) }
        return true
    }

    /// Calls `each` with the reader at the key of each entry of a dictionary, the value following it.
    @discardableResult
    @inlinable
    package mutating func dictionary(_ each: (inout MessageReader) throws -> Void) rethrows -> Bool {
        guard let entries = enterArray(ofEntries: true) else { return false }
        defer { leave(to: entries) }
        while goToNext(of: entries) { try each(&self) }
        return true
    }

    /// Reads the fields of a structure; nil where the next value is none, or where the body gives nil.
    @discardableResult
    @inlinable
    package mutating func structure<R>(_ body: (inout MessageReader) throws -> R?) rethrows -> R? {
        guard let outside = enterStructure() else { return nil }
        defer { leave(to: outside) }
        return try body(&self)
    }

    /// Reads what a variant holds; nil where the next value is no variant, or where the body gives nil, as it does by
    /// itself when the content is of another type: `reader.variant { $0.int16() }`.
    @discardableResult
    @inlinable
    package mutating func variant<R>(_ body: (inout MessageReader) throws -> R?) rethrows -> R? {
        guard let outside = enterVariant() else { return nil }
        defer { leave(to: outside) }
        return try body(&self)
    }

    /// Every string of an array of strings; nil where the next value is not that.
    package mutating func strings() -> [String]? {
        guard elementType == .string else { return nil }
        var strings: [String] = []
        array { element in
            if let string = element.string() { strings.append(string) }
        }
        return strings
    }

    /// Every path of an array of object paths; nil where the next value is not that.
    package mutating func objectPaths() -> [ObjectPath]? {
        guard elementType == .objectPath else { return nil }
        var paths: [ObjectPath] = []
        array { element in
            if let path = element.objectPath() { paths.append(path) }
        }
        return paths
    }
}
