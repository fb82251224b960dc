import CDBus

extension Message {
    /// A method call. Traps where the destination, the interface or the member is not well-formed.
    package static func call(
        destination: String?, path: ObjectPath, interface: String, member: String,
        body: (inout MessageWriter) -> Void = { _ in }
    ) -> Message {
        if let destination { require(destination, cdbus_is_bus_name, "a bus name, such as org.bluez") }
        require(interface, cdbus_is_interface, "an interface name, such as org.bluez.Adapter1")
        require(member, cdbus_is_member, "a method name, such as StartDiscovery")
        return written(cdbus_message_new_call(destination, path.rawValue, interface, member), body: body)
    }

    /// A method call whose names are literals and whose path was made by rule: nothing is checked, nothing is copied twice.
    package static func call(
        destination: StaticString, wellFormedPath path: UnsafePointer<CChar>, interface: StaticString,
        member: StaticString, body: (inout MessageWriter) -> Void = { _ in }
    ) -> Message {
        written(
            cdbus_message_new_call(destination.cString, path, interface.cString, member.cString), body: body)
    }

    /// A signal. Traps where the interface or the member is not well-formed.
    package static func signal(
        path: ObjectPath, interface: String, member: String, body: (inout MessageWriter) -> Void = { _ in }
    ) -> Message {
        require(interface, cdbus_is_interface, "an interface name, such as org.bluez.Adapter1")
        require(member, cdbus_is_member, "a signal name, such as PropertiesChanged")
        return written(cdbus_message_new_signal(path.rawValue, interface, member), body: body)
    }

    /// The answer to a received call.
    package static func reply(to call: Message, body: (inout MessageWriter) -> Void = { _ in }) -> Message {
        requireReceived(call)
        return written(cdbus_message_new_reply(call.pointer), body: body)
    }

    /// The refusal of a received call. A name that is not well-formed goes as `…Error.Failed` with the name in its text.
    package static func error(to call: Message, _ error: DBusError) -> Message {
        requireReceived(call)
        guard isValid(error.name, cdbus_is_error_name) else {
            return .error(to: call, .failed(error.description))
        }
        return written(cdbus_message_new_error(call.pointer, error.name, error.message), body: { _ in })
    }

    /// A call of the bus itself.
    static func toBus(_ member: String, body: (inout MessageWriter) -> Void = { _ in }) -> Message {
        .call(
            destination: "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus",
            member: member, body: body)
    }

    /// An error for the caller that a reply was meant for.
    static func error(insteadOf reply: Message, _ error: DBusError) -> Message {
        let message = Message.error(toSerial: reply.replySerial, error)
        cdbus_message_set_destination(message.pointer, reply.destination)
        return message
    }

    /// An error for a call of which only its serial is known.
    static func error(toSerial serial: UInt32, _ error: DBusError) -> Message {
        let pointer = required(cdbus_message_new(3))
        cdbus_message_set_error_name(pointer, error.name)
        cdbus_message_set_reply_serial(pointer, serial)
        cdbus_message_set_no_reply(pointer, true)
        return written(pointer) { $0.string(error.message) }
    }

    /// The same call, telling the peer not to answer.
    package func withoutReply() -> Message {
        let copy = copied()
        cdbus_message_set_no_reply(copy.pointer, true)
        return copy
    }

    /// A copy of its own, which may still be changed.
    func copied() -> Message {
        Message(owning: required(cdbus_message_copy(pointer)), isComplete: isComplete)
    }

    private static func written(_ pointer: OpaquePointer?, body: (inout MessageWriter) -> Void) -> Message {
        let pointer = required(pointer)
        var writer = MessageWriter(appendingTo: pointer)
        body(&writer)
        return Message(owning: pointer, isComplete: writer.isComplete)
    }

    private static func require(_ text: String, _ check: (UnsafePointer<CChar>) -> Bool, _ expected: String) {
        precondition(isValid(text, check), "\"\(text)\" is not \(expected).")
    }

    private static func requireReceived(_ call: Message) {
        precondition(
            call.kind == .call && call.serial != 0, "Only a call that was received can be answered; this is \(call).")
    }
}

/// What libdbus gives unless there is no memory left.
func required(_ pointer: OpaquePointer?) -> OpaquePointer {
    guard let pointer else { preconditionFailure("The system has no memory left for a D-Bus message.") }
    return pointer
}
