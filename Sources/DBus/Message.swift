import CDBus
import Synchronization

/// One message of a bus: a call, its answer, or a signal.
///
/// It wraps one message of libdbus, also on the in-process bus, so that there is one reader, one writer and one
/// validation. Unchecked, because libdbus counts references atomically and a message does not change once it is out of
/// the function that made it; what the connections do to it when they send it (serial, "no reply expected") happens
/// before anybody else can see the result.
package final class Message: @unchecked Sendable {
    package enum Kind: Sendable {
        case call, reply, error, signal
        /// Of a kind that this version of the protocol does not know; such messages are to be ignored.
        case unknown
    }

    let pointer: OpaquePointer
    /// False where a descriptor could not be put into it (the process has no more of them): such a message is not sent.
    let isComplete: Bool
    /// What its header says, of a message that was received: that header does not change any more.
    private let received: cdbus_heading?
    /// Its wire form, once somebody has read from it.
    let wire = Atomic<UnsafeMutablePointer<CChar>?>(nil)

    /// Takes over one reference.
    init(owning pointer: OpaquePointer, isComplete: Bool = true) {
        self.pointer = pointer
        self.isComplete = isComplete
        received = nil
    }

    /// Takes over a message that has come from outside.
    init(received pointer: OpaquePointer) {
        self.pointer = pointer
        isComplete = true
        received = cdbus_message_heading(pointer)
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

    /// The sender's number for it, 0 while it is not sent.
    package var serial: UInt32 { cdbus_message_serial(pointer) }
    /// The number of the call that it answers.
    package var replySerial: UInt32 { cdbus_message_reply_serial(pointer) }
    /// Whether the caller waits for no answer.
    package var expectsNoReply: Bool { cdbus_message_no_reply(pointer) }

    /// The fields by which messages are told apart, in place.
    var heading: cdbus_heading { received ?? cdbus_message_heading(pointer) }

    package var path: ObjectPath? { heading.path.map { ObjectPath(validated: String(cString: $0)) } }
    package var interface: String? { heading.interface.map { String(cString: $0) } }
    package var member: String? { heading.member.map { String(cString: $0) } }
    package var destination: String? { string(cdbus_message_destination) }
    package var sender: String? { heading.sender.map { String(cString: $0) } }
    package var errorName: String? { string(cdbus_message_error_name) }
    package var signature: String { string(cdbus_message_signature) ?? "" }

    private func string(_ field: (OpaquePointer) -> UnsafePointer<CChar>?) -> String? {
        field(pointer).map { String(cString: $0) }
    }

    /// Reads the arguments from the first on.
    package var reader: MessageReader { MessageReader(self) }

    /// An error message as a value; nil for other kinds.
    package var error: DBusError? {
        guard kind == .error else { return nil }
        var reader = reader
        return DBusError(name: errorName ?? DBusError.Name.failed, message: reader.string() ?? "")
    }

    // MARK: Comparing in place

    package func isSignal(interface: StaticString, member: StaticString) -> Bool {
        kind == .signal && isAbout(interface, member)
    }

    package func isCall(interface: StaticString, member: StaticString) -> Bool {
        kind == .call && isAbout(interface, member)
    }

    private func isAbout(_ interface: StaticString, _ member: StaticString) -> Bool {
        let heading = heading
        return equal(heading.member, member.cString) && equal(heading.interface, interface.cString)
    }

    package func hasPath(_ path: StaticString) -> Bool { equal(heading.path, path.cString) }
    package func hasInterface(_ name: StaticString) -> Bool { equal(heading.interface, name.cString) }
    func hasInterface(_ name: String) -> Bool { name.withCString { equal(heading.interface, $0) } }
    package func hasMember(_ name: StaticString) -> Bool { equal(heading.member, name.cString) }
    package func hasSender(_ name: StaticString) -> Bool { equal(heading.sender, name.cString) }
    package func hasSignature(_ text: StaticString) -> Bool { equal(cdbus_message_signature(pointer), text.cString) }

    /// The path's bytes, in place; nil where the message has none.
    package func withPath<R>(_ body: (UnsafeBufferPointer<UInt8>) throws -> R) rethrows -> R? {
        guard let text = heading.path else { return nil }
        return try body(bytes(of: text))
    }

    /// The sender's bytes, in place; nil where the message has none.
    package func withSender<R>(_ body: (UnsafeBufferPointer<UInt8>) throws -> R) rethrows -> R? {
        guard let text = heading.sender else { return nil }
        return try body(bytes(of: text))
    }
}

extension StaticString {
    /// The text for C, which a literal always ends with a zero byte for.
    var cString: UnsafePointer<CChar> {
        UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self)
    }

    var bytes: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount) }
}
