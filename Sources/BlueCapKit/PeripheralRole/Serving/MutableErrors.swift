public import Foundation

/// Why a request to a ``MutableService`` failed. A later version may add cases.
public enum MutableServiceError: Swift.Error, Hashable, Sendable {
    /// The service was not added to a ``PeripheralManager``.
    case unconfigured
}

/// Why a request to a ``MutableCharacteristic`` failed. A later version may add cases.
public enum MutableCharacteristicError: Swift.Error, Hashable, Sendable {
    /// Its service was not added to a ``PeripheralManager``.
    case unconfigured
    /// The texts are not a valid value of the characteristic's profile.
    case notSerializable
    /// The characteristic neither notifies nor indicates.
    case notifyNotSupported
    /// The queue of updates is full while a central is subscribed, and the policy is ``UpdateQueuePolicy/refuse``. It
    /// is not thrown while no central is subscribed.
    case updateQueueFull(limit: Int)
    /// The value has more bytes than an attribute can have, 512.
    case tooLong(count: Int, maximum: Int)
    /// BlueZ cannot send the update to these centrals alone. Nothing was sent.
    case directedUpdateRefused(DirectedUpdateError)
}

/// Why an update for some of the subscribed centrals cannot be sent. A later version may add cases.
public enum DirectedUpdateError: Swift.Error, Hashable, Sendable, CaseIterable {
    /// This `bluetoothd` sends each update to all subscribers: 5.76 is the first that can send to one.
    case notSupported
    /// One of the centrals is not among ``MutableCharacteristic/subscribers``, or no central was given.
    case notSubscribed
    /// One of the centrals is subscribed, and BlueZ has no socket open for it.
    ///
    /// Either ``MutableCharacteristic/sendsUpdatesOverSocket`` is `false`, or the central is bonded and its link has
    /// ended since, or BlueZ has closed its socket when another central left (bluez#1452). The central still receives
    /// updates for all. BlueZ opens a socket when the central unsubscribes and subscribes again.
    case noSocket
    /// The value has no bytes.
    case emptyValue
}

extension MutableServiceError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { description }
    public var description: String { "The service belongs to no manager: add it to a PeripheralManager first." }
}

extension MutableCharacteristicError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { description }

    public var description: String {
        switch self {
        case .unconfigured:
            "The characteristic belongs to no manager: add its service to a PeripheralManager first, "
                + "and wait until that has succeeded."
        case .notSerializable:
            "The texts do not spell a value of this characteristic: see its stringValues, "
                + "or give hexadecimal digits under its name."
        case .notifyNotSupported:
            "The characteristic sends no updates: its properties contain neither notify nor indicate."
        case .updateQueueFull(let limit):
            "\(limit) updates wait to be sent already: update slower, raise updateQueueLimit, "
                + "or let the oldest be dropped (updateQueuePolicy)."
        case .tooLong(let count, let maximum):
            "The value has \(count) bytes and an attribute at most \(maximum)."
        case .directedUpdateRefused(let refusal):
            refusal.description
        }
    }
}

extension DirectedUpdateError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { description }

    public var description: String {
        switch self {
        case .notSupported:
            "This bluetoothd sends each update to all subscribers: updates for one central need BlueZ 5.76 or later."
        case .notSubscribed:
            "The central is not subscribed: give one of the characteristic's subscribers."
        case .noSocket:
            "BlueZ has no socket open for the central, which receives only updates for all until it subscribes again."
        case .emptyValue:
            "BlueZ cannot send an update of no bytes to one central: send it to all."
        }
    }
}

/// The former name of ``DirectedUpdateError``.
@available(*, deprecated, renamed: "DirectedUpdateError")
public typealias DirectedUpdateRefusal = DirectedUpdateError
