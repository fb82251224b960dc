public import Foundation

/// Why something asked of a ``MutableService`` failed.
public enum MutableServiceError: Swift.Error, Hashable, Sendable {
    /// The service was not added to a ``PeripheralManager``.
    case unconfigured
}

/// Why something asked of a ``MutableCharacteristic`` failed.
public enum MutableCharacteristicError: Swift.Error, Hashable, Sendable {
    /// Its service was not added to a ``PeripheralManager``.
    case unconfigured
    /// The texts do not spell a value of the characteristic's profile.
    case notSerializable
    /// The characteristic neither notifies nor indicates.
    case notifyNotSupported
    /// As many updates as the queue takes wait to be sent to a subscribed central, and the policy is
    /// ``UpdateQueuePolicy/refuse``. It is not thrown while no central is subscribed.
    case updateQueueFull(limit: Int)
    /// The value has more bytes than an attribute can have, 512.
    case tooLong(count: Int, maximum: Int)
}

extension MutableServiceError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { description }
    public var description: String {
        switch self {
        case .unconfigured: "The service belongs to no manager: add it to a PeripheralManager first."
        }
    }
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
        }
    }
}
