public import Foundation
public import BlueCapGATT

/// Why a request to a ``Peripheral`` failed. A later version may add cases.
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
    case connectionFailed(BusError)
    /// The peripheral or the adapter no longer has the keys of the bond, so no link can be used:
    /// ``PairingError/keyMissing(isCertain:)``.
    case pairing(PairingError)
    /// BlueZ has no current signal strength of this peripheral.
    case rssiUnavailable
    /// The peripheral does not have the service with the requested identifier; `available` are the services that it
    /// has.
    case serviceNotFound(CBUUID, available: [CBUUID])
    /// The peripheral has several services, or several characteristics, that the requested identifier can mean. An operation
    /// uses the one of several characteristics that has the property for it; this is the error if none or more than one has.
    ///
    /// Set the `handle` of the ``CharacteristicIdentifier``, or choose the object among ``Peripheral/services`` and
    /// ``Service/characteristics`` by its handle.
    case ambiguous(CBUUID, candidates: [AttributeCandidate])
    /// The work of a run did not end within its time limit.
    case runTimeout
    /// A run was requested inside a run of the same peripheral, and would have waited for itself.
    case runInsideRun
    /// The run that this peripheral was passed to has ended.
    case runEnded
    /// An argument is out of its range; the text names the argument and the values that it takes.
    case invalidArgument(String)
}

/// One of several attributes with the same UUID.
public struct AttributeCandidate: Hashable, Sendable {
    /// The handle of its declaration; `nil` if BlueZ does not export it.
    public let handle: UInt16?
    /// The properties of a characteristic; `nil` for a service.
    public let properties: CBCharacteristicProperties?
    /// The text of its descriptor 2901, if it has one that can be read.
    public let userDescription: String?
}

extension AttributeCandidate: CustomStringConvertible {
    /// `0x002b (read, notify, "Outdoor")`
    public var description: String {
        let details = (properties?.names ?? []) + (userDescription.map { ["\"\($0)\""] } ?? [])
        let name = handle.map { "0x" + String(format: "%04x", Int($0)) } ?? "one without a handle"
        return name + (details.isEmpty ? "" : " (\(details.joined(separator: ", ")))")
    }
}

extension [AttributeCandidate] {
    fileprivate var listed: String { map(\.description).joined(separator: ", ") }
}

extension PeripheralError {
    /// Returns why a stream cannot keep that many elements; `nil` if it can.
    static func refusal(ofCapacity capacity: Int) -> PeripheralError? {
        capacity >= 0 ? nil : .invalidArgument("A stream's capacity is zero or more elements, not \(capacity).")
    }

    static func refusal(ofConnectionTimeout timeout: TimeInterval) -> PeripheralError? {
        timeout > 0 ? nil : .invalidArgument("A connection's timeout is more than zero seconds, not \(timeout).")
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
            "The peripheral did not connect in time. Check that it is near, switched on, and not connected elsewhere."
        case .serviceDiscoveryTimeout:
            "The peripheral's services were not discovered in time: try again, or disconnect and connect again."
        case .noServices:
            "BlueZ found no services on the peripheral: disconnect and connect again."
        case .connectionFailed(let failure):
            "bluetoothd refused to connect (\(failure)): pair the device first if it requires that, "
                + "or end other connections if there are many."
        case .pairing(let error):
            error.description
        case .rssiUnavailable:
            "BlueZ does not report the signal strength of a connection, and has received no advertisement of the "
                + "peripheral recently: scan with ScanOptions.allowsDuplicates while it advertises."
        case .serviceNotFound(let uuid, let available):
            "The peripheral does not have the service \(uuid.named(AssignedNumbers.serviceName)): it has "
                + available.listed(AssignedNumbers.serviceName) + "."
                + (uuid.isExportedService ? "" : " bluetoothd does not export services of this kind.")
        case .ambiguous(let uuid, let candidates):
            if candidates.first?.properties == nil {
                "The peripheral has the service \(uuid.named(AssignedNumbers.serviceName)) \(candidates.count) times: "
                    + candidates.listed + ". Discover all services, and choose one by its handle."
            } else {
                "The peripheral has the characteristic \(uuid.named(AssignedNumbers.characteristicName)) "
                    + "\(candidates.count) times: " + candidates.listed
                    + ". Set the handle of the identifier to one of these."
            }
        case .runTimeout:
            "The run did not end within its time-out."
        case .runInsideRun:
            "A run inside a run of the same peripheral would wait for itself: "
                + "use the ConnectedPeripheral of the outer run."
        case .runEnded:
            "This ConnectedPeripheral's run has ended; call run() again."
        case .invalidArgument(let text):
            text
        }
    }
}
