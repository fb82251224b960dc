package import DBus

/// Why a call to `bluetoothd` failed: a cause to decide by, and the words of the bus as they came.
package struct BlueZError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What the name of a D-Bus error means to us. Names that are not in the table are `other`, and kept in ``name``.
    package enum Cause: Hashable, Sendable, CaseIterable {
        /// `org.bluez.Error.InProgress`: a session of ours is up already, or the kernel refused.
        case inProgress
        /// `org.bluez.Error.NotReady`: the adapter is off.
        case notReady
        /// `org.bluez.Error.Blocked`: rfkill keeps the adapter off.
        case blocked
        case failed
        case invalidArguments
        case notSupported
        case notAuthorized
        case notPermitted
        case notAvailable
        case alreadyExists
        case doesNotExist
        case alreadyConnected
        case notConnected
        /// The bus, not `bluetoothd`, forbids the call.
        case accessDenied
        /// The object is not there any more.
        case unknownObject
        /// The method is not known to this version of BlueZ.
        case unknownMethod
        /// No answer within the call's time.
        case noReply
        /// Nobody owns `org.bluez`.
        case serviceGone
        /// The bus itself is lost.
        case disconnected
        case other
    }

    package let cause: Cause
    /// The D-Bus name, such as `org.bluez.Error.InProgress`.
    package let name: String
    /// What the daemon added; may be empty.
    package let message: String

    package init(_ error: DBusError) {
        self.init(name: error.name, message: error.message)
    }

    package init(name: String, message: String = "") {
        cause = BlueZError.causes[name] ?? .other
        self.name = name
        self.message = message
    }

    package var description: String { message.isEmpty ? name : "\(name): \(message)" }

    private static let causes: [String: Cause] = [
        "org.bluez.Error.InProgress": .inProgress,
        "org.bluez.Error.NotReady": .notReady,
        "org.bluez.Error.Blocked": .blocked,
        "org.bluez.Error.Failed": .failed,
        "org.bluez.Error.InvalidArguments": .invalidArguments,
        "org.bluez.Error.NotSupported": .notSupported,
        "org.bluez.Error.NotAuthorized": .notAuthorized,
        "org.bluez.Error.NotPermitted": .notPermitted,
        "org.bluez.Error.NotAvailable": .notAvailable,
        "org.bluez.Error.AlreadyExists": .alreadyExists,
        "org.bluez.Error.DoesNotExist": .doesNotExist,
        "org.bluez.Error.AlreadyConnected": .alreadyConnected,
        "org.bluez.Error.NotConnected": .notConnected,
        "org.freedesktop.DBus.Error.AccessDenied": .accessDenied,
        "org.freedesktop.DBus.Error.AuthFailed": .accessDenied,
        "org.freedesktop.DBus.Error.UnknownObject": .unknownObject,
        "org.freedesktop.DBus.Error.UnknownMethod": .unknownMethod,
        "org.freedesktop.DBus.Error.UnknownInterface": .unknownMethod,
        "org.freedesktop.DBus.Error.NoReply": .noReply,
        "org.freedesktop.DBus.Error.Timeout": .noReply,
        "org.freedesktop.DBus.Error.TimedOut": .noReply,
        "org.freedesktop.DBus.Error.ServiceUnknown": .serviceGone,
        "org.freedesktop.DBus.Error.NameHasNoOwner": .serviceGone,
        "org.freedesktop.DBus.Error.Disconnected": .disconnected,
    ]
}
