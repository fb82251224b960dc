import GATT
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

/// Why a connection did not come up: what decides whether another attempt makes sense.
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
    /// The time of an attempt to connect was up; the attempt has been called off.
    static func connectTimedOut(after seconds: Double) -> BlueZError {
        BlueZError(
            name: "org.freedesktop.DBus.Error.NoReply", message: "The device did not answer within \(seconds) seconds.")
    }

    /// The attempt was called off for the sake of others that waited.
    static let turnEnded = BlueZError(
        name: "org.freedesktop.DBus.Error.NoReply",
        message: "The device did not answer, and others waited to be connected.")

    /// The attempt was called off by this process.
    static let connectCancelled = BlueZError(
        name: "org.bluez.Error.Canceled", message: "The attempt to connect was cancelled.")

    /// The ATT error with which the peer, or `bluetoothd` for it, refused a read, a write or a subscription; `nil` where
    /// it was another failure, or where BlueZ has put several codes under one name (0x05, 0x0C and 0x0F are "Not paired").
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

    /// What the error means as an answer to `Device1.Connect`.
    package var connectCause: ConnectCause {
        switch cause {
        case .notReady, .blocked: return .adapterOff
        case .inProgress: return .busy
        case .unknownObject, .doesNotExist, .unknownMethod: return .notFound
        case .noReply, .notConnected, .alreadyConnected: return .transient
        case .notAuthorized, .notPermitted, .accessDenied: return .authentication
        case .failed: return BlueZError.connectCause(ofText: message)
        case .other:
            if name == BlueZError.connectCancelled.name { return .cancelled }
            if name == "org.bluez.Error.ConnectionAttemptFailed" { return .transient }
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
    private static let connectCauses: [String: ConnectCause] = [
        "abort-by-local": .transient,
        "abort-by-remote": .transient,
        "aborted-by-local": .transient,
        "aborted-by-remote": .transient,
        "adapter-not-powered": .adapterOff,
        "already-connected": .transient,
        "bad-socket": .transient,
        "busy": .busy,
        // Also of a link that falls while it comes up. Whether this process has called the attempt off, it knows itself.
        "canceled": .transient,
        "concurrent-connection-limit": .outOfSlots,
        "create-socket": .transient,
        "gatt-browsing": .transient,
        "invalid-argument": .other,
        "invalid-arguments": .other,
        "key-missing": .authentication,
        "link-layer-protocol-error": .transient,
        "lmp-protocol-error": .transient,
        "memory-allocation": .other,
        "not-supported": .other,
        "page-timeout": .transient,
        "profile-unavailable": .other,
        "refused": .transient,
        "sdp-search": .transient,
        "timeout": .transient,
        "unknown": .transient,
    ]

    /// What there was before the names, and what has none: the texts of `strerror`.
    private static let plainTexts: [String: ConnectCause] = [
        "Connection refused": .transient,
        "Connection reset by peer": .transient,
        "Connection timed out": .transient,
        "Device or resource busy": .busy,
        "Function not implemented": .transient,
        "Host is down": .transient,
        "Input/output error": .transient,
        "Not Powered": .adapterOff,
        "Operation already in progress": .busy,
        "Operation canceled": .transient,
        "Operation now in progress": .busy,
        "Resource Not Ready": .adapterOff,
        "Software caused connection abort": .transient,
        "Too many links": .outOfSlots,
        "Transport endpoint is not connected": .transient,
    ]
}
