import CBlueCapDBus
package import Foundation

/// Writes a message's values one after another, directly into its wire form.
///
/// The types must be those for which the surrounding array, dictionary or variant was opened. If they are not, which is a
/// mistake in the program, libdbus ends the process with a message. A text ends at its first zero byte, which D-Bus does
/// not allow.
package struct MessageWriter {
    private var iterator = cdbus_iter()
    /// Whether all descriptors could be duplicated.
    private(set) var isComplete = true
    /// Duplicates of the descriptors, for those who read the message in this process.
    private(set) var descriptors: [OwnedDescriptor] = []

    init(appendingTo pointer: OpaquePointer) {
        cdbus_iter_init_append(pointer, &iterator)
    }

    // MARK: Numbers

    package mutating func byte(_ value: UInt8) { append(.byte, value) }
    package mutating func int16(_ value: Int16) { append(.int16, value) }
    package mutating func uint16(_ value: UInt16) { append(.uint16, value) }
    package mutating func int32(_ value: Int32) { append(.int32, value) }
    package mutating func uint32(_ value: UInt32) { append(.uint32, value) }
    package mutating func int64(_ value: Int64) { append(.int64, value) }
    package mutating func uint64(_ value: UInt64) { append(.uint64, value) }
    package mutating func double(_ value: Double) { append(.double, value) }
    package mutating func bool(_ value: Bool) { append(.bool, UInt32(value ? 1 : 0)) }

    /// Adds a duplicate of the descriptor to the message; the caller keeps the original.
    package mutating func descriptor(_ descriptor: Int32) {
        var value = descriptor
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        if copy >= 0 { descriptors.append(OwnedDescriptor(owning: copy)) }
        if copy < 0 || !cdbus_iter_append(&iterator, ArgumentType.descriptor.code, &value) { isComplete = false }
    }

    private mutating func append<T: BitwiseCopyable>(_ type: ArgumentType, _ value: T) {
        var value = value
        requireMemory(cdbus_iter_append(&iterator, type.code, &value))
    }

    // MARK: Texts

    package mutating func string(_ value: String) {
        requireMemory(cdbus_iter_append_string(&iterator, ArgumentType.string.code, value))
    }

    package mutating func string(static value: StaticString) {
        requireMemory(cdbus_iter_append_string(&iterator, ArgumentType.string.code, value.cString))
    }

    package mutating func objectPath(_ value: ObjectPath) {
        requireMemory(cdbus_iter_append_string(&iterator, ArgumentType.objectPath.code, value.rawValue))
    }

    /// Traps if the text is not a signature.
    package mutating func signature(_ value: String) {
        precondition(isValid(value, Syntax.isSignature), "\"\(value)\" is not a signature, such as a{sv}.")
        requireMemory(cdbus_iter_append_string(&iterator, ArgumentType.signature.code, value))
    }

    // MARK: Arrays

    /// An array of bytes, in one copy.
    package mutating func bytes(_ value: some ContiguousBytes) {
        value.withUnsafeBytes { raw in
            let bytes = raw.bindMemory(to: UInt8.self)
            requireMemory(cdbus_iter_append_bytes(&iterator, bytes.baseAddress, bytes.count))
        }
    }

    /// An array of strings.
    package mutating func strings(_ values: some Sequence<String>) {
        array(of: "s") { array in
            for value in values { array.string(value) }
        }
    }

    /// An array of object paths.
    package mutating func objectPaths(_ values: some Sequence<ObjectPath>) {
        array(of: "o") { array in
            for value in values { array.objectPath(value) }
        }
    }

    /// An array. The body writes the elements, each of the given signature.
    package mutating func array(of signature: String, _ body: (inout MessageWriter) -> Void) {
        container(.array, signature, body)
    }

    /// A dictionary. The body writes it with `entry`.
    package mutating func dictionary(
        key: String, value: String, _ body: (inout MessageWriter) -> Void
    ) {
        container(.array, "{" + key + value + "}", body)
    }

    /// A dictionary of strings and variants, as the last argument of most calls.
    package mutating func options(_ body: (inout MessageWriter) -> Void) {
        let signature: StaticString = "{sv}"
        container(.array, signature.cString, body)
    }

    /// One entry: the body writes the key, then the value.
    package mutating func entry(_ body: (inout MessageWriter) -> Void) {
        container(.dictionaryEntry, nil, body)
    }

    /// One entry of the common `a{sv}` kind.
    package mutating func entry(
        _ key: String, variant signature: String, _ body: (inout MessageWriter) -> Void
    ) {
        entry { entry in
            entry.string(key)
            entry.variant(signature, body)
        }
    }

    // MARK: Structures and variants

    package mutating func structure(_ body: (inout MessageWriter) -> Void) {
        container(.structure, nil, body)
    }

    /// A variant. The body writes one value of the given signature.
    package mutating func variant(_ signature: String, _ body: (inout MessageWriter) -> Void) {
        container(.variant, signature, body)
    }

    /// A variant with a literal signature.
    mutating func variant(static signature: StaticString, _ body: (inout MessageWriter) -> Void) {
        container(.variant, signature.cString, body)
    }

    private mutating func container(
        _ type: ArgumentType, _ signature: UnsafePointer<CChar>?, _ body: (inout MessageWriter) -> Void
    ) {
        var outside = iterator
        requireMemory(cdbus_iter_open(&outside, type.code, signature, &iterator))
        body(&self)
        requireMemory(cdbus_iter_close(&outside, &iterator))
        iterator = outside
    }
}

func requireMemory(_ succeeded: Bool) {
    precondition(succeeded, "The system has no memory left for a D-Bus message.")
}
