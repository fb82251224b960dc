public import Foundation
public import GATT

/// Why a request to a ``Peripheral`` failed.
public enum PeripheralError: Swift.Error, Hashable, Sendable {
    /// There is no link to the peripheral, or it was lost.
    case disconnected
    /// The application ended the link.
    case forcedDisconnect
    /// The link did not come up within the time-out.
    case connectionTimeout
    /// The services were not discovered within the time-out.
    case serviceDiscoveryTimeout
    /// The link is up, and BlueZ found no service on the peripheral.
    case noServices
    /// `bluetoothd` refused to connect, and would refuse again: pairing is missing or was refused, the adapter has as
    /// many links as it can, or the device is not connectable.
    case connectionFailed(BusFailure)
    /// BlueZ has no current signal strength of this peripheral.
    case rssiUnavailable
    /// The peripheral does not have the service with the requested identifier; `available` are the services that it
    /// has.
    case serviceNotFound(CBUUID, available: [CBUUID])
    /// The work of a run did not end within its time limit.
    case runTimeout
    /// A run was requested inside a run of the same peripheral, and would have waited for itself.
    case runInsideRun
    /// The run that this peripheral was passed to has ended.
    case runEnded
    /// An argument is out of its range; the text names the argument and the values that it takes.
    case invalidArgument(String)
}

extension PeripheralError {
    /// Returns why a stream cannot keep that many elements; `nil` if it can.
    static func refusal(ofCapacity capacity: Int) -> PeripheralError? {
        capacity >= 0 ? nil : .invalidArgument("A stream's capacity is zero or more elements, not \(capacity).")
    }
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
        case .connectionFailed(let failure):
            "bluetoothd refused to connect (\(failure)): pair the device first if it wants that "
                + "(`bluetoothctl pair`), or end other connections if there are many."
        case .rssiUnavailable:
            "BlueZ does not tell the signal strength of a connection, and the peripheral was not heard advertising "
                + "lately: scan with CBCentralManagerScanOptionAllowDuplicatesKey while it advertises."
        case .serviceNotFound(let uuid, let available):
            "The peripheral does not have the service \(uuid.named(AssignedNumbers.serviceName)): it has "
                + available.listed(AssignedNumbers.serviceName) + "."
                + (uuid.isExportedService ? "" : " bluetoothd keeps services of this kind to itself.")
        case .runTimeout:
            "The run did not end within its time-out."
        case .runInsideRun:
            "A run was asked for inside a run of the same peripheral and would wait for itself: "
                + "use the ConnectedPeripheral that the outer one was given."
        case .runEnded:
            "The run is over that this ConnectedPeripheral was given to: ask for another one with run()."
        case .invalidArgument(let text):
            text
        }
    }
}
