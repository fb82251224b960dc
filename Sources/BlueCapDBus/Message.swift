import CBlueCapDBus
import Synchronization

/// One message of a bus: a call, its reply, or a signal.
///
/// It wraps one message of libdbus, also on the in-process bus, so that there is one reader, one writer and one
/// validation. Unchecked, because libdbus counts references atomically and a message does not change after the function
/// that created it has returned it. A connection changes a message that it sends (serial, "no reply expected") before any
/// other code can see the result.
package final class Message: @unchecked Sendable {
    package enum Kind: Sendable {
        case call, reply, error, signal
        /// Of a kind that this version of the protocol does not define. Such messages must be ignored.
        case unknown
    }

    let pointer: OpaquePointer
    /// Whether all descriptors could be added. If the process has no free descriptor, the message is not sent.
    let isComplete: Bool
    /// The heading of a received call or signal, which does not change any more.
    private let received: cdbus_heading?
    /// The copy of the wire form, after the first reading that needed it.
    private let wire = Atomic<UnsafeMutablePointer<CChar>?>(nil)

    /// Takes over one reference.
    init(owning pointer: OpaquePointer, isComplete: Bool = true) {
        self.pointer = pointer
        self.isComplete = isComplete
        received = nil
    }

    /// Takes over one reference to a message that was received.
    init(received pointer: OpaquePointer) {
        self.pointer = pointer
        isComplete = true
        // Replies are identified by their serial alone.
        let type = cdbus_message_type(pointer)
        received = type == 1 || type == 4 ? cdbus_message_heading(pointer) : nil
    }

    deinit {
        if let wire = wire.load(ordering: .acquiring) { cdbus_free(wire) }
        cdbus_message_unref(pointer)
    }

    package var kind: Kind {
        switch received?.type ?? cdbus_message_type(pointer) {
        case 1: .call
        case 2: .reply
        case 3: .error
        case 4: .signal
        default: .unknown
        }
    }

    /// The sender's number of this message; 0 before it is sent.
    package var serial: UInt32 { cdbus_message_serial(pointer) }
    /// The serial of the call to which this is the reply.
    package var replySerial: UInt32 { cdbus_message_reply_serial(pointer) }
    /// Whether the caller expects no reply.
    package var expectsNoReply: Bool { cdbus_message_no_reply(pointer) }

    /// The fields that distinguish messages, in place.
    var heading: cdbus_heading { received ?? cdbus_message_heading(pointer) }

    package var path: ObjectPath? { heading.path.map { ObjectPath(validated: String(cString: $0)) } }
    package var interface: String? { heading.interface.map { String(cString: $0) } }
    package var member: String? { heading.member.map { String(cString: $0) } }
    package var sender: String? { heading.sender.map { String(cString: $0) } }
    package var destination: String? { cdbus_message_destination(pointer).map { String(cString: $0) } }
    package var errorName: String? { cdbus_message_error_name(pointer).map { String(cString: $0) } }
    package var signature: String { cdbus_message_signature(pointer).map { String(cString: $0) } ?? "" }

    /// Reads the arguments from the first on.
    package var reader: MessageReader { MessageReader(self) }

    /// The error of an error message; nil for other kinds.
    package var error: DBusError? {
        guard kind == .error else { return nil }
        var reader = reader
        return DBusError(name: errorName ?? DBusError.Name.failed, message: reader.string() ?? "")
    }

    // MARK: Comparing in place

    package func isSignal(interface: StaticString, member: StaticString) -> Bool {
        kind == .signal && hasMember(member) && hasInterface(interface)
    }

    package func isCall(interface: StaticString, member: StaticString) -> Bool {
        kind == .call && hasMember(member) && hasInterface(interface)
    }

    package func hasInterface(_ name: StaticString) -> Bool { equal(heading.interface, name.cString) }
    func hasInterface(_ name: String) -> Bool { name.withCString { equal(heading.interface, $0) } }
    package func hasMember(_ name: StaticString) -> Bool { equal(heading.member, name.cString) }
    package func hasSender(_ name: StaticString) -> Bool { equal(heading.sender, name.cString) }
    package func hasSignature(_ text: StaticString) -> Bool { equal(cdbus_message_signature(pointer), text.cString) }

    /// Calls `body` with the bytes of the path, in place; nil if the message has none.
    package func withPath<R>(_ body: (UnsafeBufferPointer<UInt8>) throws -> R) rethrows -> R? {
        try heading.path.map { try body(bytes(of: $0)) }
    }

    // MARK: The wire form

    /// The arguments in wire form in libdbus's own memory, if libdbus reveals their position. A copy costs a twentieth of
    /// the processor time of a signal.
    var bodyInPlace: UnsafeRawPointer? { cdbus_message_body(pointer) }

    /// The arguments in wire form, in this machine's byte order; also empty if there was no memory for the copy.
    ///
    /// The copy is made at the first reading and kept as long as the message. If two threads read a message for the first
    /// time at once, each makes one, and one of the two is released.
    var body: UnsafeRawBufferPointer {
        guard let wire = wire.load(ordering: .acquiring) ?? makeWire() else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        var length = 0
        let start = cdbus_wire_body(wire, &length)
        return UnsafeRawBufferPointer(start: start, count: length)
    }

    private func makeWire() -> UnsafeMutablePointer<CChar>? {
        guard let made = cdbus_message_wire(pointer) else { return nil }
        let (isOurs, other) = wire.compareExchange(
            expected: nil, desired: made, successOrdering: .acquiringAndReleasing, failureOrdering: .acquiring)
        guard !isOurs else { return made }
        cdbus_free(made)
        return other
    }
}

/// Creating messages.
extension Message {
    /// Returns a method call. Traps if the destination, the interface or the member is not well-formed.
    package static func call(
        destination: String?, path: ObjectPath, interface: String, member: String,
        body: (inout MessageWriter) -> Void = { _ in }
    ) -> Message {
        if let destination { require(destination, cdbus_is_bus_name, "a bus name, such as org.bluez") }
        require(interface, cdbus_is_interface, "an interface name, such as org.bluez.Adapter1")
        require(member, cdbus_is_member, "a method name, such as StartDiscovery")
        return written(cdbus_message_new_call(destination, path.rawValue, interface, member), body: body)
    }

    /// Returns a method call with literal names and a path that is known to be well-formed, without checks and copies.
    package static func call(
        destination: StaticString, wellFormedPath path: UnsafePointer<CChar>, interface: StaticString,
        member: StaticString, body: (inout MessageWriter) -> Void = { _ in }
    ) -> Message {
        written(
            cdbus_message_new_call(destination.cString, path, interface.cString, member.cString), body: body)
    }

    /// Returns a signal. Traps if the interface or the member is not well-formed.
    package static func signal(
        path: ObjectPath, interface: String, member: String, body: (inout MessageWriter) -> Void = { _ in }
    ) -> Message {
        require(interface, cdbus_is_interface, "an interface name, such as org.bluez.Adapter1")
        require(member, cdbus_is_member, "a signal name, such as PropertiesChanged")
        return written(cdbus_message_new_signal(path.rawValue, interface, member), body: body)
    }

    /// Returns the reply to a received call.
    package static func reply(to call: Message, body: (inout MessageWriter) -> Void = { _ in }) -> Message {
        requireReceived(call)
        return written(cdbus_message_new_reply(call.pointer), body: body)
    }

    /// Returns the error reply to a received call. A name that is not well-formed becomes `…Error.Failed` with the name in
    /// its text.
    package static func error(to call: Message, _ error: DBusError) -> Message {
        requireReceived(call)
        guard isValid(error.name, cdbus_is_error_name) else {
            return .error(to: call, .failed(error.description))
        }
        return written(cdbus_message_new_error(call.pointer, error.name, error.message))
    }

    /// Returns a call of the bus itself.
    static func toBus(_ member: String, body: (inout MessageWriter) -> Void = { _ in }) -> Message {
        .call(
            destination: "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus",
            member: member, body: body)
    }

    /// Returns an error for the caller that a reply was meant for.
    static func error(insteadOf reply: Message, _ error: DBusError) -> Message {
        let message = Message.error(toSerial: reply.replySerial, error)
        cdbus_message_set_destination(message.pointer, reply.destination)
        return message
    }

    /// Returns an error for a call of which only the serial is known.
    static func error(toSerial serial: UInt32, _ error: DBusError) -> Message {
        let pointer = required(cdbus_message_new(3))
        cdbus_message_set_error_name(pointer, error.name)
        cdbus_message_set_reply_serial(pointer, serial)
        cdbus_message_set_no_reply(pointer, true)
        return written(pointer) { $0.string(error.message) }
    }

    /// Returns the same call with the flag that no reply is expected.
    package func withoutReply() -> Message {
        let copy = copied()
        cdbus_message_set_no_reply(copy.pointer, true)
        return copy
    }

    /// Returns a copy, which may still be changed.
    func copied() -> Message {
        Message(owning: Message.required(cdbus_message_copy(pointer)), isComplete: isComplete)
    }

    /// Sets the serial and the sender, as a bus does with the messages that it carries. Only for a message without other
    /// references.
    func sign(serial: UInt32, sender: String?) {
        cdbus_message_set_serial(pointer, serial)
        cdbus_message_set_sender(pointer, sender)
    }

    private static func written(
        _ pointer: OpaquePointer?, body: (inout MessageWriter) -> Void = { _ in }
    ) -> Message {
        let pointer = required(pointer)
        var writer = MessageWriter(appendingTo: pointer)
        body(&writer)
        return Message(owning: pointer, isComplete: writer.isComplete)
    }

    /// Checks a pointer that libdbus returns unless the memory is exhausted.
    private static func required(_ pointer: OpaquePointer?) -> OpaquePointer {
        guard let pointer else { preconditionFailure("The system has no memory left for a D-Bus message.") }
        return pointer
    }

    private static func require(_ text: String, _ check: (UnsafePointer<CChar>) -> Bool, _ expected: String) {
        precondition(isValid(text, check), "\"\(text)\" is not \(expected).")
    }

    private static func requireReceived(_ call: Message) {
        precondition(
            call.kind == .call && call.serial != 0, "Only a call that was received can be answered; this is \(call).")
    }
}

/// A form for logs and bug reports: the heading, then every argument.
extension Message: CustomStringConvertible {
    package var description: String {
        var text = "\(kind)"
        if let path { text += " \(path)" }
        if let interface { text += " \(interface)" }
        if let member { text += ".\(member)" }
        if let errorName { text += " \(errorName)" }
        if let sender { text += " from \(sender)" }
        if let destination { text += " to \(destination)" }
        var reader = reader
        return text + " (" + reader.describeAll() + ")"
    }
}

extension MessageReader {
    /// Returns a readable form of all remaining values, with at most 256 bytes of each array of bytes.
    package mutating func describeAll() -> String {
        var values: [String] = []
        while !isAtEnd { values.append(describe()) }
        return values.joined(separator: ", ")
    }

    private mutating func describe() -> String {
        switch type {
        case .byte: describe(byte())
        case .bool: describe(bool())
        case .int16: describe(int16())
        case .uint16: describe(uint16())
        case .int32: describe(int32())
        case .uint32: describe(uint32())
        case .int64: describe(int64())
        case .uint64: describe(uint64())
        case .double: describe(double())
        case .string: describe(string().map { "\"\($0)\"" })
        case .objectPath: describe(objectPath())
        case .signature: describe(signatureValue())
        case .descriptor: describe(descriptor().map { _ in "descriptor" })
        case .variant: "<" + (variant { $0.describeAll() } ?? "") + ">"
        case .structure: "(" + (structure { $0.describeAll() } ?? "") + ")"
        case .array: describeArray()
        default: describe(nil as String?)
        }
    }

    private mutating func describeArray() -> String {
        if elementType == .byte {
            return "0x"
                + (bytes() ?? []).prefix(256).map { $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16) }
                .joined()
        }
        var values: [String] = []
        if dictionary({ entry in values.append(entry.describe() + ": " + entry.describe()) }) {
            return "{" + values.joined(separator: ", ") + "}"
        }
        array { element in values.append(element.describe()) }
        return "[" + values.joined(separator: ", ") + "]"
    }

    /// A value that could not be read (a descriptor, if the process has no free one) is skipped.
    private mutating func describe<T>(_ value: T?) -> String {
        guard let value else {
            skip()
            return "?"
        }
        return "\(value)"
    }
}
