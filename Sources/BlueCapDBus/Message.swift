import BlueCapFutures
import CBlueCapDBus
import Glibc
import Synchronization

/// One message of a bus: a call, its reply, or a signal.
///
/// A message that this process creates is one of libdbus, which sends it. A received message is its bytes, which a
/// `MessageParser` has validated; so is what another end of an in-process bus receives. If a created message is read, it is
/// brought into that form first.
///
/// Unchecked, because a message does not change after the function that created it has returned it, except for the serial,
/// which libdbus sets when it sends the message. The object of a received message becomes another one when nothing else
/// retains it.
@usableFromInline
package final class Message: @unchecked Sendable {
    package enum Kind: Sendable {
        case call, reply, error, signal
        /// Of a kind that this version of the protocol does not define. Such messages must be ignored.
        case unknown
    }

    /// libdbus's message; nil if this one was received.
    private let created: OpaquePointer?
    /// Whether all descriptors could be added. If the process has no free descriptor, the message is not sent.
    let isComplete: Bool
    let descriptors: [OwnedDescriptor]
    // These two change only while nothing else retains the message, so the runtime need not check the accesses.
    /// The memory of a received message.
    @exclusivity(unchecked) private var slab: Slab?
    @exclusivity(unchecked) private var receivedHeader: MessageHeader
    /// The form of a created message in which it is read, after the first reading.
    private let readable = AtomicLazyReference<Message>()

    /// Takes over one reference to a message of libdbus.
    init(owning pointer: OpaquePointer, _ descriptors: [OwnedDescriptor] = [], isComplete: Bool = true) {
        created = pointer
        self.isComplete = isComplete
        self.descriptors = descriptors
        slab = nil
        var header = MessageHeader()
        header.type = UInt8(truncatingIfNeeded: cdbus_message_type(pointer))
        receivedHeader = header
    }

    init(_ received: ReceivedMessage) {
        created = nil
        isComplete = true
        descriptors = received.descriptors
        slab = received.slab
        receivedHeader = received.header
    }

    /// Releases the memory of a received message, which must not be read any more.
    func releaseMemory() { slab = nil }

    /// Makes this the message that was received, which has no descriptors. Only for a message that nothing else retains, and
    /// that has none either.
    func become(_ received: consuming ReceivedMessage) { (slab, receivedHeader) = (received.slab, received.header) }

    deinit {
        if let created { cdbus_message_unref(created) }
    }

    /// libdbus's message. Traps if this one was received: it cannot be sent.
    var pointer: OpaquePointer {
        guard let created else {
            preconditionFailure("Only a message that this process created can be sent, not \(self).")
        }
        return created
    }

    package var kind: Kind {
        switch receivedHeader.type {
        case 1: .call
        case 2: .reply
        case 3: .error
        case 4: .signal
        default: .unknown
        }
    }

    /// The sender's number of this message; 0 before it is sent.
    package var serial: UInt32 { created.map(cdbus_message_serial) ?? receivedHeader.serial }
    /// The serial of the call to which this is the reply.
    package var replySerial: UInt32 { header.replySerial }
    /// Whether the caller expects no reply.
    package var expectsNoReply: Bool { header.flags & 1 != 0 }

    /// The header, in place.
    var header: MessageHeader { created == nil ? receivedHeader : received.receivedHeader }

    /// The signature, in place.
    var signatureText: WireText {
        guard let created else { return receivedHeader.signature }
        return cdbus_message_signature(created).map(bytes(of:)) ?? WireText(start: nil, count: 0)
    }

    package var path: ObjectPath? { string(header.path).map(ObjectPath.init(validated:)) }
    package var interface: String? { string(header.interface) }
    package var member: String? { string(header.member) }
    package var sender: String? { string(header.sender) }
    package var destination: String? { string(header.destination) }
    package var errorName: String? { string(header.errorName) }
    package var signature: String { string(signatureText) ?? "" }

    private func string(_ text: WireText) -> String? { text.isEmpty ? nil : String(decoding: text, as: UTF8.self) }

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

    package func hasInterface(_ name: StaticString) -> Bool { equal(header.interface, name.bytes) }
    func hasInterface(_ name: String) -> Bool { name.utf8.elementsEqual(header.interface) }
    package func hasMember(_ name: StaticString) -> Bool { equal(header.member, name.bytes) }
    package func hasSender(_ name: StaticString) -> Bool { equal(header.sender, name.bytes) }
    package func hasSignature(_ text: StaticString) -> Bool { equal(signatureText, text.bytes) }

    /// Calls `body` with the bytes of the path, in place; nil if the message has none.
    // Inlinable, so that it is specialised for the result.
    @inlinable
    package func withPath<R>(_ body: (UnsafeBufferPointer<UInt8>) throws -> R) rethrows -> R? {
        let path = pathText
        return path.isEmpty ? nil : try body(path)
    }

    @usableFromInline var pathText: UnsafeBufferPointer<UInt8> { header.path }

    // MARK: The form in which a message is read

    /// This message, if it was received, or as if it had been.
    var received: Message {
        guard created != nil else { return self }
        // If two threads read a message for the first time at once, one of the two results is released.
        return readable.load() ?? readable.storeIfNil(carried(serial: max(serial, 1), sender: nil))
    }

    /// Returns the message as the bus delivers it that gives it this serial and sender.
    ///
    /// - Parameters:
    ///   - serial: The sender's number of the message.
    ///   - sender: The unique name of the sender.
    ///   - destination: The receiver; nil for that of this message.
    func carried(serial: UInt32, sender: String?, to destination: String? = nil) -> Message {
        let copy = Message.required(cdbus_message_copy(pointer))
        defer { cdbus_message_unref(copy) }
        cdbus_message_set_serial(copy, serial)
        cdbus_message_set_sender(copy, sender)
        if let destination { cdbus_message_set_destination(copy, destination) }
        var bytes: UnsafeMutablePointer<CChar>?
        var count: Int32 = 0
        guard cdbus_message_marshal(copy, &bytes, &count), let bytes else { Message.noMemory() }
        defer { cdbus_free(bytes) }
        let slab = Slab(capacity: Int(count))
        memcpy(slab.start, bytes, slab.capacity)
        do {
            return Message(try ReceivedMessage(slab.start, slab.capacity, of: slab) { _ in descriptors })
        } catch {
            preconditionFailure("libdbus has created a message that is not valid: \(error).")
        }
    }
}

/// The contents of a message that was received and is valid.
struct ReceivedMessage {
    let header: MessageHeader
    /// The owner of the bytes.
    let slab: Slab
    let descriptors: [OwnedDescriptor]

    /// Parses a message.
    ///
    /// - Parameters:
    ///   - start: Its bytes.
    ///   - length: Their number.
    ///   - slab: The owner of the bytes.
    ///   - descriptors: Returns the descriptors that the message names.
    init(
        _ start: UnsafeMutableRawPointer, _ length: Int, of slab: Slab,
        descriptors: (Int) throws(MalformedMessage) -> [OwnedDescriptor]
    ) throws(MalformedMessage) {
        // A call is kept until its reply is sent.
        let isCall = start.load(fromByteOffset: 1, as: UInt8.self) == 1
        self.slab = isCall ? Slab(capacity: length) : slab
        if isCall { memcpy(self.slab.start, start, length) }
        let bytes = UnsafeMutableRawBufferPointer(start: isCall ? self.slab.start : start, count: length)
        header = try MessageParser.parse(bytes)
        self.descriptors = header.descriptors == 0 ? [] : try descriptors(Int(header.descriptors))
    }
}

/// Creating messages.
extension Message {
    /// Returns a method call. Traps if the destination, the interface or the member is not well-formed.
    package static func call(
        destination: String?, path: ObjectPath, interface: String, member: String,
        body: (inout MessageWriter) -> Void = { _ in }
    ) -> Message {
        if let destination { require(destination, Syntax.isBusName, "a bus name, such as org.bluez") }
        require(interface, Syntax.isInterface, "an interface name, such as org.bluez.Adapter1")
        require(member, Syntax.isMember, "a method name, such as StartDiscovery")
        return written(cdbus_message_new_call(destination, path.rawValue, interface, member), body: body)
    }

    /// Returns a signal. Traps if the interface or the member is not well-formed.
    package static func signal(
        path: ObjectPath, interface: String, member: String, body: (inout MessageWriter) -> Void = { _ in }
    ) -> Message {
        require(interface, Syntax.isInterface, "an interface name, such as org.bluez.Adapter1")
        require(member, Syntax.isMember, "a signal name, such as PropertiesChanged")
        return written(cdbus_message_new_signal(path.rawValue, interface, member), body: body)
    }

    /// Returns the reply to a received call.
    package static func reply(to call: Message, body: (inout MessageWriter) -> Void = { _ in }) -> Message {
        requireReceived(call)
        return answer(2, toSerial: call.serial, of: call.sender, body: body)
    }

    /// Returns the error reply to a received call. A name that is not well-formed becomes `…Error.Failed` with the name in
    /// its text.
    package static func error(to call: Message, _ error: DBusError) -> Message {
        requireReceived(call)
        guard isValid(error.name, Syntax.isInterface) else {
            return .error(to: call, .failed(error.description))
        }
        return .error(toSerial: call.serial, of: call.sender, error)
    }

    /// Returns a call of the bus itself.
    static func toBus(_ member: String, body: (inout MessageWriter) -> Void = { _ in }) -> Message {
        .call(
            destination: "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus",
            member: member, body: body)
    }

    /// Returns an error for the caller that a reply was meant for.
    static func error(insteadOf reply: Message, _ error: DBusError) -> Message {
        .error(toSerial: reply.replySerial, of: reply.destination, error)
    }

    /// Returns an error for a call of which only the serial and the caller are known.
    static func error(toSerial serial: UInt32, of caller: String?, _ error: DBusError) -> Message {
        answer(3, name: error.name, toSerial: serial, of: caller) { $0.string(error.message) }
    }

    private static func answer(
        _ type: Int32, name: String? = nil, toSerial serial: UInt32, of caller: String?,
        body: (inout MessageWriter) -> Void
    ) -> Message {
        let pointer = required(cdbus_message_new(type))
        if let name { cdbus_message_set_error_name(pointer, name) }
        cdbus_message_set_reply_serial(pointer, serial)
        cdbus_message_set_no_reply(pointer, true)
        cdbus_message_set_destination(pointer, caller)
        return written(pointer, body: body)
    }

    /// Returns the same call with the flag that no reply is expected.
    package func withoutReply() -> Message {
        let copy = copied()
        cdbus_message_set_no_reply(copy.pointer, true)
        return copy
    }

    /// Returns a copy without a serial.
    func copied() -> Message {
        Message(owning: Message.required(cdbus_message_copy(pointer)), descriptors, isComplete: isComplete)
    }

    fileprivate static func written(
        _ pointer: OpaquePointer?, body: (inout MessageWriter) -> Void = { _ in }
    ) -> Message {
        let pointer = required(pointer)
        var writer = MessageWriter(appendingTo: pointer)
        body(&writer)
        return Message(owning: pointer, writer.descriptors, isComplete: writer.isComplete)
    }

    /// Checks a pointer that libdbus returns unless the memory is exhausted.
    private static func required(_ pointer: OpaquePointer?) -> OpaquePointer {
        guard let pointer else { noMemory() }
        return pointer
    }

    private static func noMemory() -> Never {
        preconditionFailure("The system has no memory left for a D-Bus message.")
    }

    private static func require(_ text: String, _ check: (WireText) -> Bool, _ expected: String) {
        precondition(isValid(text, check), "\"\(text)\" is not \(expected).")
    }

    private static func requireReceived(_ call: Message) {
        precondition(
            call.kind == .call && call.serial != 0, "Only a call that was received can be answered; this is \(call).")
    }
}

/// The method calls that differ only in their paths, and in what is appended to their bodies. Copying it takes a quarter of the
/// time of creating a message.
///
/// libdbus takes longer to set the path than to do everything else, so the last calls are kept with their paths: a program
/// mostly repeats calls of a few objects.
package struct CallTemplate: Sendable {
    /// A call that is not sent, with its path.
    private struct Kept {
        let path: [CChar]
        let message: Message
    }

    /// How many calls are kept at most, each at a place that depends on its path.
    private static let places = 128

    /// A call without a path, which cannot be sent.
    private let message: Message
    private let kept = Locked<[Kept?]>([])

    /// Creates the template. The names must be well-formed.
    package init(
        destination: StaticString, interface: StaticString, member: StaticString,
        body: (inout MessageWriter) -> Void = { _ in }
    ) {
        message = .written(
            cdbus_message_new_call(destination.cString, "/", interface.cString, member.cString), body: body)
        requireMemory(cdbus_message_set_path(message.pointer, nil))
    }

    /// Returns a call of the object at a path that is known to be well-formed.
    package func call(_ path: UnsafePointer<CChar>, body: (inout MessageWriter) -> Void = { _ in }) -> Message {
        let length = strlen(path)
        let place = Self.place(UnsafeBufferPointer(start: path, count: length))
        let copy = kept.withLock { kept in
            if kept.isEmpty { kept = Array(repeating: nil, count: Self.places) }
            if let known = kept[place], strcmp(known.path, path) == 0 {
                return cdbus_message_copy(known.message.pointer)
            }
            let message = message.copied()
            requireMemory(cdbus_message_set_path(message.pointer, path))
            kept[place] = Kept(path: Array(UnsafeBufferPointer(start: path, count: length + 1)), message: message)
            return cdbus_message_copy(message.pointer)
        }
        requireMemory(copy != nil)
        return .written(copy, body: body)
    }

    /// The end of a path differs most.
    private static func place(_ path: UnsafeBufferPointer<CChar>) -> Int {
        let end = path.suffix(4).reduce(0) { $0 << 8 | UInt32(UInt8(bitPattern: $1)) }
        return Int((end &* 0x9E37_79B9) >> 25)
    }
}

/// A form for logs and bug reports: the heading, then every argument.
extension Message: CustomStringConvertible {
    @usableFromInline package var description: String {
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
