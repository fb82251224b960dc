public import Foundation

/// Why a request to a ``Characteristic`` or a ``Descriptor`` failed. A later version may add cases.
///
/// If the link is the reason, the error is ``PeripheralError/disconnected`` or ``PeripheralError/forcedDisconnect``.
public enum CharacteristicError: Swift.Error, Hashable, Sendable {
    /// The peripheral did not reply to the read within the time-out.
    case readTimeout
    /// The peripheral did not reply to the write within the time-out.
    case writeTimeout
    /// The text values do not form a value of the characteristic's profile.
    case notSerializable
    /// The bytes that were read do not form a value of the requested type.
    case notDeserializable(Data)
    /// The characteristic cannot be read.
    case readNotSupported
    /// The characteristic cannot be written, or not with the requested type of write.
    case writeNotSupported
    /// The characteristic neither notifies nor indicates.
    case notifyNotSupported
    /// The characteristic belongs to no peripheral.
    case unconfigured
    /// The peripheral has changed its services, and no longer has the characteristic.
    case invalidated
    /// The value has more bytes than one write can have.
    case valueTooLong(count: Int, maximum: Int)
    /// The peripheral, or `bluetoothd` on its behalf, refused the read.
    case readFailed(BusError)
    /// The peripheral, or `bluetoothd` on its behalf, refused the write.
    case writeFailed(BusError)
    /// The peripheral, or `bluetoothd` on its behalf, refused the subscription.
    case notifyFailed(BusError)
    /// The value needs a pairing, and the manager's ``PairingPolicy`` makes none on demand, or the peripheral is paired
    /// already without a passkey.
    case pairingRequired(RequiredSecurity, BusError)
    /// The value needs a pairing, and the one that the operation began has failed.
    case pairingFailed(PairingError)
    /// The application has closed the writer, or `bluetoothd` has closed the writer's socket while the link stayed up.
    case writerClosed
    /// Another program uses this characteristic's notifications exclusively, or exclusive use was requested while
    /// another program is subscribed.
    case acquiredByOther(BusError)
    /// The subscription was not confirmed in time.
    case notifyTimeout
    /// Values may have been missed at this point: the subscription was interrupted, and continues.
    case notificationsInterrupted
}

extension CharacteristicError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { description }

    public var description: String {
        switch self {
        case .readTimeout:
            "The peripheral did not respond to the read in time."
        case .writeTimeout:
            "The peripheral did not respond to the write in time, but may have executed it."
        case .notSerializable:
            "The texts are not a value of this characteristic: see its stringValues, "
                + "or write hexadecimal digits under its name."
        case .notDeserializable(let data):
            "The \(data.count) bytes that were read are not a value of the requested type: "
                + data.prefix(64).map { String(format: "%02X", $0) }.joined() + "."
        case .readNotSupported:
            "This characteristic cannot be read: its properties do not contain read."
        case .writeNotSupported:
            "This characteristic cannot be written in this way: "
                + "withResponse requires the property write, withoutResponse requires writeWithoutResponse."
        case .notifyNotSupported:
            "This characteristic does not send notifications: its properties contain neither notify nor indicate."
        case .unconfigured:
            "This characteristic belongs to no manager: add its service to a PeripheralManager first."
        case .invalidated:
            "The peripheral has changed its services and no longer has this characteristic: "
                + "discover its services and characteristics again."
        case .valueTooLong(let count, let maximum):
            "The value has \(count) bytes, and "
                + (maximum < 512
                    ? "this link takes at most \(maximum) in a write without response: transfer(_:) sends it in parts, "
                        + "and maximumWriteValueLength(for:) has the limit."
                    : "a value has at most \(maximum): write it in parts.")
        case .readFailed(let failure):
            "The read was refused (\(failure)).\(failure.advice)"
        case .writeFailed(let failure):
            "The write was refused (\(failure)).\(failure.advice)"
        case .notifyFailed(let failure):
            "The subscription was refused (\(failure)).\(failure.advice)"
        case .pairingRequired(.encryption, let failure):
            "The value needs an encrypted link (\(failure)). Pair with the peripheral first: peripheral.pair(), "
                + "or a pairing policy other than .reject."
        case .pairingRequired(.authentication, let failure), .pairingRequired(.secureConnections, let failure):
            "The value needs a pairing with a passkey or a comparison of numbers (\(failure)). The peripheral is paired "
                + "without: peripheral.unpair(), then pair() with the pairing policy .ask."
        case .pairingFailed(let error):
            "The value needs a pairing, which failed: \(error)"
        case .writerClosed:
            "The writer is closed: get another one with acquireWriter()."
        case .acquiredByOther(let failure):
            "Another program uses this characteristic (\(failure)): end it, or try again later; "
                + "over signals several programs can be subscribed."
        case .notifyTimeout:
            "The peripheral did not confirm the subscription in time."
        case .notificationsInterrupted:
            "The subscription was interrupted and has been resumed; values may have been missed."
        }
    }
}

extension BusError {
    /// What the caller can do about the error, as a sentence to follow another; empty if there is no advice.
    fileprivate var advice: String {
        if attError == .insufficientAuthorization {
            return
                " The peripheral does not allow it, or the service is one that bluetoothd uses itself (Generic Access, "
                + "Human Interface Device, LE Audio): from BlueZ 5.80 on programs can read those and not write them, "
                + "unless main.conf has ExportClaimedServices = read-write."
        }
        switch (name, message) {
        case ("org.bluez.Error.InProgress", _), ("org.bluez.Error.NotPermitted", "Write acquired"),
            ("org.bluez.Error.NotPermitted", "Notify acquired"):
            return " Another program uses this characteristic."
        default:
            return ""
        }
    }
}
