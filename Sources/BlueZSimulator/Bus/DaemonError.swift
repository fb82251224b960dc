/// An error of `bluetoothd`, with the names and texts of its `src/error.c`.
public struct DaemonError: Error, Hashable, Sendable {
    /// The D-Bus error name, such as `org.bluez.Error.Failed`.
    public var name: String
    /// The text of the error.
    public var message: String

    /// Creates an error, such as one of a program or of another service.
    public init(name: String, message: String) {
        self.name = name
        self.message = message
    }

    /// The adapter is off.
    public static let notReady = bluez("NotReady", "Resource Not Ready")
    /// Busy; also the error for each failure of the kernel to start or stop a scan.
    public static let inProgress = bluez("InProgress", "Operation already in progress")
    /// The same error with the text that attributes and subscriptions have.
    public static let underWay = bluez("InProgress", "In Progress")
    /// An argument of the call has the wrong type or an impossible value.
    public static let invalidArguments = bluez("InvalidArguments", "Invalid arguments in method call")
    /// The object that the call names does not exist, or belongs to another client.
    public static let doesNotExist = bluez("DoesNotExist", "Does Not Exist")
    /// The client has registered such an object already, or the device is bonded already.
    public static let alreadyExists = bluez("AlreadyExists", "Already Exists")
    /// The adapter, the device or the attribute does not support the operation.
    public static let notSupported = bluez("NotSupported", "Operation is not supported")
    /// A client ends a scan that it has not started.
    public static let noDiscoveryStarted = failed("No discovery started")
    /// The device has no link.
    public static let notConnected = failed("Not connected")
    /// The attribute belongs to `bluetoothd` itself, or the peripheral has refused the request: insufficient authorization.
    public static let notAuthorized = bluez("NotAuthorized", "Operation Not Authorized")
    /// The adapter cannot be switched on because rfkill blocks it.
    public static let blocked = bluez("Blocked", "Blocked through rfkill")
    /// The bus itself refuses the call because of its policy.
    public static let accessDenied = dbus(
        "AccessDenied", "Rejected send message, 2 matched rules; type=\"method_call\", destination=\"org.bluez\"")

    /// `org.bluez.Error.Failed` with a text.
    public static func failed(_ message: String) -> DaemonError { bluez("Failed", message) }

    /// An `org.bluez.Error` of any name.
    public static func bluez(_ name: String, _ message: String) -> DaemonError {
        DaemonError(name: "org.bluez.Error." + name, message: message)
    }

    /// Returns the error for a code of the attribute protocol; 0 stands for no response.
    static func attribute(_ code: UInt8) -> DaemonError {
        switch code {
        case ATTError.readNotPermitted: return notPermitted("Read not permitted")
        case ATTError.writeNotPermitted: return notPermitted("Write not permitted")
        case ATTError.insufficientAuthentication, ATTError.insufficientEncryption, ATTError.insufficientKeySize:
            return notPermitted("Not paired")
        case ATTError.invalidOffset: return bluez("InvalidArguments", "Invalid offset")
        case ATTError.invalidLength: return bluez("InvalidArguments", "Invalid Length")
        case ATTError.insufficientAuthorization: return notAuthorized
        case ATTError.requestNotSupported: return notSupported
        case 0: return failed("Operation failed")
        default: return failed("Operation failed with ATT error: 0x" + Hexadecimal.text([code]))
        }
    }

    static func notPermitted(_ message: String) -> DaemonError { bluez("NotPermitted", message) }

    /// An `org.freedesktop.DBus.Error` of any name.
    private static func dbus(_ name: String, _ message: String) -> DaemonError {
        DaemonError(name: "org.freedesktop.DBus.Error." + name, message: message)
    }

    static func noSuchProperty(_ name: String) -> DaemonError { dbus("UnknownProperty", "No such property '\(name)'") }

    static func notWritable(_ name: String) -> DaemonError {
        dbus("PropertyReadOnly", "Property '\(name)' is not writable")
    }

    static func invalidSignature(_ name: String) -> DaemonError {
        dbus("InvalidSignature", "Invalid signature for '\(name)'")
    }

    /// The error of gdbus for an interface or a property that an object does not have.
    static func invalidArgs(_ message: String) -> DaemonError { dbus("InvalidArgs", message) }

    /// What libdbus replies: `UnknownObject`, or `UnknownMethod` for a method that an object does not have and for arguments
    /// of other types.
    static func unhandled(_ name: String, _ call: MethodCall) -> DaemonError {
        dbus(
            name,
            "Method \"\(call.member)\" with signature \"\(call.signature)\" on interface "
                + "\"\(call.interface ?? "(null)")\" doesn't exist\n")
    }
}
