public import Foundation

/// Why something asked of a ``Peripheral`` failed.
public enum PeripheralError: Swift.Error, Hashable, Sendable {
    /// There is no link to the peripheral, or it was lost.
    case disconnected
    /// The application ended the link.
    case forcedDisconnect
    /// The link did not come up within the time-out.
    case connectionTimeout
    /// The services were not known within the time-out.
    case serviceDiscoveryTimeout
    /// The link is up, and BlueZ found no service on it.
    case noServices
}

extension PeripheralError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { description }

    public var description: String {
        switch self {
        case .disconnected:
            "The peripheral is not connected: call connect() and wait for its connect event."
        case .forcedDisconnect:
            "The application has ended the connection."
        case .connectionTimeout:
            "The peripheral did not connect in time: is it near, switched on, and free for a connection?"
        case .serviceDiscoveryTimeout:
            "The peripheral's services were not known in time: try again, or disconnect and connect anew."
        case .noServices:
            "BlueZ found no services on the peripheral: disconnect and connect anew."
        }
    }
}
