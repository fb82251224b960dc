package import BlueCapReactor

/// An error of D-Bus: a name for programs and a sentence for people.
package struct DBusError: Error, Hashable, Sendable, CustomStringConvertible {
    package let name: String
    package let message: String

    package init(name: String, message: String) {
        self.name = name
        self.message = message
    }

    package var description: String { message.isEmpty ? name : "\(name): \(message)" }
}

extension DBusError {
    /// The names that the specification, libdbus and dbus-daemon use.
    package enum Name {
        package static let accessDenied = "org.freedesktop.DBus.Error.AccessDenied"
        package static let authFailed = "org.freedesktop.DBus.Error.AuthFailed"
        package static let disconnected = "org.freedesktop.DBus.Error.Disconnected"
        package static let failed = "org.freedesktop.DBus.Error.Failed"
        package static let inputOutput = "org.freedesktop.DBus.Error.IOError"
        package static let invalidArguments = "org.freedesktop.DBus.Error.InvalidArgs"
        package static let invalidSignature = "org.freedesktop.DBus.Error.InvalidSignature"
        package static let limitsExceeded = "org.freedesktop.DBus.Error.LimitsExceeded"
        package static let matchRuleNotFound = "org.freedesktop.DBus.Error.MatchRuleNotFound"
        package static let nameHasNoOwner = "org.freedesktop.DBus.Error.NameHasNoOwner"
        package static let noReply = "org.freedesktop.DBus.Error.NoReply"
        package static let noServer = "org.freedesktop.DBus.Error.NoServer"
        package static let propertyReadOnly = "org.freedesktop.DBus.Error.PropertyReadOnly"
        package static let unknownMethod = "org.freedesktop.DBus.Error.UnknownMethod"
        package static let unknownObject = "org.freedesktop.DBus.Error.UnknownObject"
        package static let unknownProperty = "org.freedesktop.DBus.Error.UnknownProperty"
    }

    /// A call without a reply in time. The peer may have executed the call nevertheless.
    package static let timedOut = DBusError(name: Name.noReply, message: "No answer came in time.")

    /// The connection was closed by this side.
    package static let closed = DBusError(name: Name.disconnected, message: "The connection was closed.")

    /// The connection was lost: the bus ended, or disconnected this process.
    package static let lost = DBusError(name: Name.disconnected, message: "The connection to the bus was lost.")

    /// The connection was lost before the bus accepted it: the bus does not know the user of this process. For the host's
    /// bus, the users of a container are unknown.
    static let notAdmitted = DBusError(
        name: Name.authFailed, message: "The bus closed the connection before it accepted this process.")

    /// The error of the calls without a reply when a connection ends.
    static func disconnected(because error: DBusError) -> DBusError {
        error.name == Name.disconnected ? error : DBusError(name: Name.disconnected, message: error.description)
    }

    /// A message with a descriptor that this bus or this process cannot send.
    static let cannotBeSent = DBusError(
        name: Name.limitsExceeded, message: "The message's file descriptors could not be sent.")

    /// This process, or the system, has reached a limit.
    package init(_ shortage: LoopShortage) {
        self.init(name: Name.limitsExceeded, message: "\(shortage)")
    }

    /// A reply with other types of arguments than the method returns.
    package static func unexpected(_ reply: Message, to method: String, instead expected: String) -> DBusError {
        DBusError(
            name: Name.invalidSignature,
            message: "The reply to \(method) has the signature \"\(reply.signature)\" instead of \"\(expected)\".")
    }

    package static func failed(_ message: String) -> DBusError {
        DBusError(name: Name.failed, message: message)
    }

    package static func invalidArguments(_ message: String) -> DBusError {
        DBusError(name: Name.invalidArguments, message: message)
    }
}
