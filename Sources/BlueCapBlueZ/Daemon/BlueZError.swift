import BlueCapGATT
package import BlueCapDBus

/// Receives the result of a call to `bluetoothd`.
package typealias BlueZCompletion<Success> = @Sendable (Result<Success, BlueZError>) -> Void

/// The error of a call to `bluetoothd`: its cause, and the name and the message of the D-Bus error.
package struct BlueZError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The meaning of a D-Bus error's name. Names that are not in the table are `other`, and kept in ``name``.
    package enum Cause: String, Hashable, Sendable, CaseIterable {
        /// A session of this process exists already, or the kernel has refused.
        case inProgress = "org.bluez.Error.InProgress"
        /// The adapter is off.
        case notReady = "org.bluez.Error.NotReady"
        /// rfkill keeps the adapter off.
        case blocked = "org.bluez.Error.Blocked"
        case failed = "org.bluez.Error.Failed"
        case invalidArguments = "org.bluez.Error.InvalidArguments"
        case notSupported = "org.bluez.Error.NotSupported"
        case notAuthorized = "org.bluez.Error.NotAuthorized"
        case notPermitted = "org.bluez.Error.NotPermitted"
        case notAvailable = "org.bluez.Error.NotAvailable"
        case alreadyExists = "org.bluez.Error.AlreadyExists"
        case doesNotExist = "org.bluez.Error.DoesNotExist"
        case alreadyConnected = "org.bluez.Error.AlreadyConnected"
        case notConnected = "org.bluez.Error.NotConnected"
        /// A pairing was cancelled, or its link was lost.
        case authenticationCanceled = "org.bluez.Error.AuthenticationCanceled"
        /// A pairing has failed; BlueZ does not report why.
        case authenticationFailed = "org.bluez.Error.AuthenticationFailed"
        /// The kernel has another pairing or connection of the device.
        case authenticationRejected = "org.bluez.Error.AuthenticationRejected"
        case authenticationTimeout = "org.bluez.Error.AuthenticationTimeout"
        /// The device that was to be paired was not reached.
        case connectionAttemptFailed = "org.bluez.Error.ConnectionAttemptFailed"
        /// The bus, not `bluetoothd`, forbids the call.
        case accessDenied = "org.freedesktop.DBus.Error.AccessDenied"
        /// The object does not exist any more.
        case unknownObject = "org.freedesktop.DBus.Error.UnknownObject"
        /// This version of BlueZ does not have the method.
        case unknownMethod = "org.freedesktop.DBus.Error.UnknownMethod"
        /// There was no reply within the call's time limit.
        case noReply = "org.freedesktop.DBus.Error.NoReply"
        /// `org.bluez` has no owner.
        case serviceGone = "org.freedesktop.DBus.Error.ServiceUnknown"
        /// The connection to the bus is lost.
        case disconnected = "org.freedesktop.DBus.Error.Disconnected"
        case other

        fileprivate init(name: String) { self = Cause(rawValue: name) ?? Cause.otherNames[name] ?? .other }

        /// The further names of some causes.
        private static let otherNames: [String: Cause] = [
            "org.freedesktop.DBus.Error.AuthFailed": .accessDenied,
            "org.freedesktop.DBus.Error.UnknownInterface": .unknownMethod,
            "org.freedesktop.DBus.Error.Timeout": .noReply,
            "org.freedesktop.DBus.Error.TimedOut": .noReply,
            "org.freedesktop.DBus.Error.NameHasNoOwner": .serviceGone,
        ]
    }

    package let cause: Cause
    /// The D-Bus name, such as `org.bluez.Error.InProgress`.
    package let name: String
    /// The daemon's text; may be empty.
    package let message: String

    package init(_ error: DBusError) {
        self.init(name: error.name, message: error.message)
    }

    package init(name: String, message: String = "") {
        cause = Cause(name: name)
        self.name = name
        self.message = message
    }

    package var description: String { message.isEmpty ? name : "\(name): \(message)" }
}

/// Why a connection failed, which decides whether another attempt is made.
package enum ConnectCause: Hashable, Sendable, CaseIterable {
    /// Often cured by trying again: lost packets, a peer that was just out of reach, a link that fell while it came up.
    case transient
    /// BlueZ does not know the device (any more).
    case notFound
    /// The adapter is off.
    case adapterOff
    /// Another attempt to connect is under way, or the controller is occupied.
    case busy
    /// The controller can hold no more links.
    case outOfSlots
    /// The peer or this machine lacks a key, or refuses the other.
    case authentication
    /// This process has cancelled the attempt.
    case cancelled
    /// No attempt would change it.
    case other
}

extension BlueZError {
    /// The time limit of an attempt to connect has passed, and the attempt was cancelled.
    static func connectTimedOut(after seconds: Double) -> BlueZError {
        BlueZError(
            name: "org.freedesktop.DBus.Error.NoReply", message: "The device did not answer within \(seconds) seconds.")
    }

    /// The attempt was cancelled because others waited.
    static let turnEnded = BlueZError(
        name: "org.freedesktop.DBus.Error.NoReply",
        message: "The device did not answer, and others waited to be connected.")

    /// This process has cancelled the attempt.
    static let connectCancelled = BlueZError(
        name: "org.bluez.Error.Canceled", message: "The attempt to connect was cancelled.")

    /// The ATT error with which the peer, or `bluetoothd` for it, refused a read, a write or a subscription; `nil` for
    /// another failure, or if BlueZ uses one name for several codes (0x05, 0x0C and 0x0F are "Not paired").
    ///
    /// See `create_gatt_dbus_error` in `src/gatt-client.c`; the codes are those of the Core Specification, Vol 3, Part F,
    /// 3.4.1.1.
    package var attCode: UInt8? {
        switch name {
        case "org.bluez.Error.Failed":
            let prefix = "Operation failed with ATT error: 0x"
            guard message.hasPrefix(prefix) else { return nil }
            return UInt8(message.dropFirst(prefix.count).prefix { $0.isHexDigit }, radix: 16)
        case "org.bluez.Error.NotPermitted":
            return ["Read not permitted": 0x02, "Write not permitted": 0x03][message]
        case "org.bluez.Error.NotAuthorized":
            return 0x08
        case "org.bluez.Error.NotSupported":
            return message == "Request not supported" || message == "Operation is not supported" ? 0x06 : nil
        case "org.bluez.Error.InvalidOffset":
            return 0x07
        case "org.bluez.Error.InvalidValueLength":
            return 0x0D
        case "org.bluez.Error.InvalidArguments":
            return ["Invalid offset": 0x07, "Invalid Length": 0x0D][message]
        default:
            return nil
        }
    }

    /// The meaning of the error as a reply to `Device1.Connect`.
    package var connectCause: ConnectCause {
        switch cause {
        case .notReady, .blocked: return .adapterOff
        case .inProgress: return .busy
        case .unknownObject, .doesNotExist, .unknownMethod: return .notFound
        case .noReply, .notConnected, .alreadyConnected, .connectionAttemptFailed: return .transient
        case .notAuthorized, .notPermitted, .accessDenied, .authenticationCanceled, .authenticationFailed,
            .authenticationRejected, .authenticationTimeout:
            return .authentication
        case .failed: return BlueZError.connectCause(ofText: message)
        case .other:
            if name == BlueZError.connectCancelled.name { return .cancelled }
            return name.hasPrefix("org.bluez.Error.Authentication") ? .authentication : .other
        case .invalidArguments, .notSupported, .notAvailable, .alreadyExists, .serviceGone, .disconnected:
            return .other
        }
    }

    private static func connectCause(ofText text: String) -> ConnectCause {
        for bearer in ["le-connection-", "br-connection-"] where text.hasPrefix(bearer) {
            return connectCauses[String(text.dropFirst(bearer.count))] ?? .other
        }
        return plainTexts[text] ?? .other
    }

    /// The texts of `src/error.c`, 5.62 and later, without their `le-connection-` or `br-connection-`, which write some of
    /// them differently.
    private static let connectCauses = byText([
        .transient: [
            "abort-by-local", "abort-by-remote", "aborted-by-local", "aborted-by-remote", "already-connected",
            "bad-socket", "create-socket", "gatt-browsing", "link-layer-protocol-error", "lmp-protocol-error",
            "page-timeout", "refused", "sdp-search", "timeout", "unknown",
            // Also of a link that fails while it comes up. This process knows which attempts it has cancelled.
            "canceled",
        ],
        .adapterOff: ["adapter-not-powered"],
        .busy: ["busy"],
        .outOfSlots: ["concurrent-connection-limit"],
        .authentication: ["key-missing"],
    ])

    /// The texts of `strerror`, which earlier versions send, and later ones for errors without a name.
    private static let plainTexts = byText([
        .transient: [
            BlueZError.noLink.message, "Connection refused", "Connection reset by peer", "Connection timed out",
            "Function not implemented", "Host is down", "Input/output error", "Operation canceled",
            "Software caused connection abort",
            "Transport endpoint is not connected",
        ],
        .adapterOff: ["Not Powered", "Resource Not Ready"],
        .busy: ["Device or resource busy", "Operation already in progress", "Operation now in progress"],
        .outOfSlots: ["Too many links"],
    ])

    private static func byText(_ texts: [ConnectCause: [String]]) -> [String: ConnectCause] {
        Dictionary(uniqueKeysWithValues: texts.flatMap { cause, texts in texts.map { ($0, cause) } })
    }
}
