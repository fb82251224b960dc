import BlueCapFutures
import Glibc
import BlueCapReactor

/// Reads a message's values one after another, by the type that the caller expects, directly from the wire form.
///
/// If a value has another type, the result is nil (or false) and the value is not consumed, so that the caller can try
/// another type, or `skip`. No message from another peer makes these methods trap.
///
/// A `MessageParser` has validated the bytes (D-Bus specification, "Marshaling"), so that no step is checked again.
@usableFromInline
package struct MessageReader {
    /// The owner of the bytes and of the signature.
    let message: Message
    private let wire: UnsafeRawBufferPointer
    /// The offset after the last value, from the beginning of the body, to which the alignment refers too.
    var position = 0
    // The types of the remaining values at this level. Inside a container they are those of its contents.
    var types: UnsafePointer<UInt8>
    var typesEnd: UnsafePointer<UInt8>

    init(_ message: Message) {
        self.message = message.received
        let header = self.message.header
        wire = header.body
        types = header.signature.baseAddress ?? ("" as StaticString).utf8Start
        typesEnd = types + header.signature.count
    }

    /// The type of the next value; `.end` if there is none.
    package var type: ArgumentType { isAtEnd ? .end : ArgumentType(signatureCode: types.pointee) }
    package var isAtEnd: Bool { types == typesEnd }

    /// The type of the elements, if the next value is an array; else `.end`.
    @usableFromInline package var elementType: ArgumentType { isAt("a") ? ArgumentType(signatureCode: types[1]) : .end }

    /// The signature of the next value, empty at the end.
    package var signature: String {
        guard !isAtEnd else { return "" }
        return String(decoding: UnsafeBufferPointer(start: types, count: typeEnd(types) - types), as: UTF8.self)
    }

    /// Skips the next value, of any type.
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

    /// The bytes of a string or an object path, in place; they are valid only during `body`.
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

    /// Skips the next value if it is this string, compared in place; returns whether it is.
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

    /// An array of bytes, in place; they are valid only during `body`.
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

    // These functions are inlined into the caller's module. They enter and leave a container through functions without
    // generic parameters: generic ones would look up the type of the body's result at each call, which costs more than
    // reading the value.

    /// Calls `each` with the reader at each element of an array. `each` sees only that element and need not consume it.
    /// Returns false if the next value is not an array, or is one of dictionary entries (see `dictionary`).
    @discardableResult
    @inlinable
    package mutating func array(_ each: (inout MessageReader) throws -> Void) rethrows -> Bool {
        guard let elements = enterArray(ofEntries: false) else { return false }
        defer { exit(to: elements) }
        while goToNext(of: elements) { try each(&self) }
        return true
    }

    /// Calls `each` with the reader at the key of each entry of a dictionary, the value following it.
    @discardableResult
    @inlinable
    package mutating func dictionary(_ each: (inout MessageReader) throws -> Void) rethrows -> Bool {
        guard let entries = enterArray(ofEntries: true) else { return false }
        defer { exit(to: entries) }
        while goToNext(of: entries) { try each(&self) }
        return true
    }

    /// Reads the fields of a structure; nil if the next value is not a structure, or if the body returns nil.
    @discardableResult
    @inlinable
    package mutating func structure<R>(_ body: (inout MessageReader) throws -> R?) rethrows -> R? {
        guard let outside = enterStructure() else { return nil }
        defer { exit(to: outside) }
        return try body(&self)
    }

    /// Reads the content of a variant; nil if the next value is not a variant, or if the body returns nil, as the methods
    /// of this type do for a content of another type: `reader.variant { $0.int16() }`.
    @discardableResult
    @inlinable
    package mutating func variant<R>(_ body: (inout MessageReader) throws -> R?) rethrows -> R? {
        guard let outside = enterVariant() else { return nil }
        defer { exit(to: outside) }
        return try body(&self)
    }

    /// Every string of an array of strings; nil if the next value has another type.
    package mutating func strings() -> [String]? { texts { String(decoding: $0, as: UTF8.self) } }

    /// Every path of an array of object paths; nil if the next value has another type.
    package mutating func objectPaths() -> [ObjectPath]? {
        texts(of: .objectPath) { ObjectPath(validated: String(decoding: $0, as: UTF8.self)) }
    }

    /// What `convert` makes of the elements of an array of strings or of object paths, without those of which it makes
    /// nothing; nil if the next value has another type.
    @inlinable
    package mutating func texts<T>(
        of type: ArgumentType = .string, _ convert: (UnsafeBufferPointer<UInt8>) -> T?
    ) -> [T]? {
        guard elementType == type else { return nil }
        var values: [T] = []
        array { element in
            if let value = element.withString(convert) ?? nil { values.append(value) }
        }
        return values
    }
}

extension MessageReader {
    /// A duplicate of a descriptor; nil also if the process has no free descriptor for it.
    package mutating func descriptor() -> OwnedDescriptor? { try? duplicatedDescriptor() ?? nil }

    /// A duplicate of a descriptor; nil if the next value has another type.
    ///
    /// - Throws: `…Error.LimitsExceeded` if this process has no free descriptor for the duplicate, and
    ///   `…Error.InvalidArgs` if the message does not carry the descriptor to which its argument refers.
    package mutating func duplicatedDescriptor() throws(DBusError) -> OwnedDescriptor? {
        guard isAt("h") else { return nil }
        var next = self
        next.types += 1
        let index = Int(next.take() as UInt32)
        let all = message.descriptors
        guard index < all.count, let descriptor = all[index].rawValue else {
            throw .invalidArguments("The message does not carry the file descriptor that its argument names.")
        }
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw DBusError(.descriptors(errno)) }
        self = next
        return OwnedDescriptor(owning: copy)
    }
}

// The wire form. The signature describes the bytes, which were validated, so nothing is checked again, except that debug
// builds check the bounds of every access.

extension MessageReader {
    /// The types after a container that is being read.
    @usableFromInline
    struct Container {
        let types: UnsafePointer<UInt8>
        let typesEnd: UnsafePointer<UInt8>
    }

    /// An array that is being read: its end, the types of its elements, and the types after it.
    @usableFromInline
    struct Elements {
        let end: Int
        let types: UnsafePointer<UInt8>
        let typesEnd: UnsafePointer<UInt8>
        let areEntries: Bool
        let outside: Container
    }

    // MARK: Containers

    @usableFromInline
    mutating func enterStructure() -> Container? {
        guard isAt("(") else { return nil }
        return enterFields()
    }

    /// Enters a structure or a dictionary entry, which have the same form.
    private mutating func enterFields() -> Container {
        let end = typeEnd(types)
        defer {
            align(8)
            types += 1
            typesEnd = end - 1
        }
        return Container(types: end, typesEnd: typesEnd)
    }

    @usableFromInline
    mutating func enterVariant() -> Container? {
        guard isAt("v") else { return nil }
        let outside = Container(types: types + 1, typesEnd: typesEnd)
        let length = Int(take() as UInt8)
        let signature = slice(length + 1)
        position += signature.count
        if let start = signature.baseAddress {
            types = start
            typesEnd = start + length
        }
        return outside
    }

    /// Skips the rest of the container.
    @usableFromInline
    mutating func exit(to outside: Container) {
        while !isAtEnd { step() }
        types = outside.types
        typesEnd = outside.typesEnd
    }

    @usableFromInline
    mutating func enterArray(ofEntries areEntries: Bool) -> Elements? {
        guard isAt("a"), (types[1] == UInt8(ascii: "{")) == areEntries else { return nil }
        let element = types + 1
        let elementEnd = typeEnd(element)
        let length = Int(take() as UInt32)
        align(alignment(of: element.pointee))
        let outside = Container(types: elementEnd, typesEnd: typesEnd)
        defer {
            // `goToNext` sets the types of the first element.
            types = elementEnd
            typesEnd = elementEnd
        }
        return Elements(
            end: position + length, types: areEntries ? element + 1 : element,
            typesEnd: areEntries ? elementEnd - 1 : elementEnd, areEntries: areEntries, outside: outside)
    }

    /// Skips the rest of the current element. Returns false if there is no other element.
    @usableFromInline
    mutating func goToNext(of elements: Elements) -> Bool {
        while !isAtEnd { step() }
        guard position < elements.end else { return false }
        if elements.areEntries { align(8) }
        types = elements.types
        typesEnd = elements.typesEnd
        return true
    }

    /// Skips the rest of the array.
    @usableFromInline
    mutating func exit(to elements: Elements) {
        position = elements.end
        types = elements.outside.types
        typesEnd = elements.outside.typesEnd
    }

    // MARK: Bytes

    @inline(__always)
    func isAt(_ code: Unicode.Scalar) -> Bool { types != typesEnd && types.pointee == UInt8(ascii: code) }

    @inline(__always)
    mutating func align(_ size: Int) { position = (position + size - 1) & -size }

    /// Reads a number. Numbers are aligned to their own size.
    @inline(__always)
    mutating func take<T: BitwiseCopyable>() -> T {
        align(MemoryLayout<T>.size)
        defer { position += MemoryLayout<T>.size }
        return wire.loadUnaligned(fromByteOffset: position, as: T.self)
    }

    @inline(__always)
    func slice(_ length: Int) -> UnsafeBufferPointer<UInt8> {
        UnsafeRawBufferPointer(rebasing: wire[position..<position + length]).assumingMemoryBound(to: UInt8.self)
    }

    /// Skips one value; there must be one.
    mutating func step() {
        switch types.pointee {
        case UInt8(ascii: "s"), UInt8(ascii: "o"):
            _ = stringBytes()
        case UInt8(ascii: "v"):
            if let outside = enterVariant() { exit(to: outside) }
        case UInt8(ascii: "a"):
            let element = types + 1
            types = typeEnd(element)
            let length = Int(take() as UInt32)
            align(alignment(of: element.pointee))
            position += length
        case UInt8(ascii: "("), UInt8(ascii: "{"):
            let outside = enterFields()
            exit(to: outside)
        case UInt8(ascii: "g"):
            types += 1
            position += Int(take() as UInt8) + 1
        case let code:
            let size = alignment(of: code)
            align(size)
            position += size
            types += 1
        }
    }
}

/// The type of one value in a message: its code in signatures.
@usableFromInline
package struct ArgumentType: Hashable, Sendable, CustomStringConvertible {
    package let rawValue: UInt8

    private init(_ scalar: Unicode.Scalar) {
        rawValue = UInt8(ascii: scalar)
    }

    /// The end of the values.
    package static let end = ArgumentType("\0")
    package static let byte = ArgumentType("y")
    package static let bool = ArgumentType("b")
    package static let int16 = ArgumentType("n")
    package static let uint16 = ArgumentType("q")
    package static let int32 = ArgumentType("i")
    package static let uint32 = ArgumentType("u")
    package static let int64 = ArgumentType("x")
    package static let uint64 = ArgumentType("t")
    package static let double = ArgumentType("d")
    @usableFromInline package static let string = ArgumentType("s")
    package static let objectPath = ArgumentType("o")
    package static let signature = ArgumentType("g")
    package static let descriptor = ArgumentType("h")
    package static let array = ArgumentType("a")
    package static let variant = ArgumentType("v")
    package static let structure = ArgumentType("r")
    package static let dictionaryEntry = ArgumentType("e")

    /// Signatures write a structure and a dictionary entry with brackets, all other types with their code.
    init(signatureCode: UInt8) {
        rawValue =
            switch signatureCode {
            case UInt8(ascii: "("): UInt8(ascii: "r")
            case UInt8(ascii: "{"): UInt8(ascii: "e")
            default: signatureCode
            }
    }

    @usableFromInline package var description: String {
        self == .end ? "end" : String(Unicode.Scalar(rawValue))
    }

    var code: Int32 { Int32(rawValue) }
}

/// A file descriptor that this object closes when it is released, unless it was taken before.
package final class OwnedDescriptor: Sendable {
    private let held: Locked<Int32?>

    /// Takes over an open descriptor.
    package init(owning descriptor: Int32) {
        held = Locked(descriptor)
    }

    deinit {
        close()
    }

    /// The descriptor, which this object continues to own; nil after it was closed or taken.
    package var rawValue: Int32? { held.withLock { $0 } }

    /// Returns the descriptor, which the caller must close.
    package func take() -> Int32? { held.withLock { $0.take() } }

    /// Closes the descriptor now; a second call does nothing.
    package func close() {
        if let descriptor = take() { _ = Glibc.close(descriptor) }
    }
}
