public import Foundation
public import BlueCapGATT

/// Why a request to a ``Service`` failed. A later version may add cases.
///
/// If the link is the reason, the error is ``PeripheralError/disconnected`` or ``PeripheralError/forcedDisconnect``.
public enum ServiceError: Swift.Error, Hashable, Sendable {
    /// The characteristics were not discovered within the time-out.
    case characteristicDiscoveryTimeout
    /// Not thrown: a discovery that is requested while another one is under way shares the result of that one. One
    /// revision of the original documents has this error.
    case characteristicDiscoveryInProgress
    /// The service belongs to no peripheral.
    case unconfigured
    /// The peripheral has changed its services, and no longer has this one.
    case invalidated
    /// The service does not have the characteristic with the requested identifier; `available` are those that it has.
    case characteristicNotFound(CBUUID, service: CBUUID, available: [CBUUID])
}

extension ServiceError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { description }

    public var description: String {
        switch self {
        case .characteristicDiscoveryTimeout:
            "The service's characteristics were not discovered in time: try again, or disconnect and connect again."
        case .characteristicDiscoveryInProgress:
            "The service's characteristics are being discovered already: wait for that discovery."
        case .unconfigured:
            "This service belongs to no peripheral: add it to a PeripheralManager first."
        case .invalidated:
            "The peripheral has changed its services and no longer has this one: discover its services again."
        case .characteristicNotFound(let uuid, let service, let available):
            "The service \(service.named(AssignedNumbers.serviceName)) does not have the characteristic "
                + "\(uuid.named(AssignedNumbers.characteristicName)): it has "
                + available.listed(AssignedNumbers.characteristicName) + "."
        }
    }
}
