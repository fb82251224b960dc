import BlueCapBlueZ
public import Foundation
import BlueCapGATT

/// Why a request to a ``PeripheralManager`` failed. A later version may add cases.
public enum PeripheralManagerError: Swift.Error, Hashable, Sendable {
    /// A name or a beacon region is being advertised already.
    case isAdvertising
    /// The kept state could not be restored; ``PeripheralManager/stateRestorationFailure`` is the reason.
    case restoreFailed
    /// BlueZ has not confirmed within the time-out that all advertisements have ended.
    case stopAdvertisingTimeout
    /// The manager was not `poweredOn` when the time-out passed; the value is its state at that time.
    case notPoweredOn(ManagerState)
    /// An option has a value of the wrong type or range; the text names the option and the values that it takes.
    case invalidOption(String)
    /// Another manager keeps its state under this restore identifier, in the file with this path.
    case restoreIdentifierInUse(String)
    /// The service, or one of its characteristics, belongs to another manager or service.
    case serviceInUse
    /// The service cannot be registered; the text is the reason.
    case invalidService(String)
    /// BlueZ would offer the service without the security that its permissions or properties require; the text names the
    /// characteristic and the version that is needed. The service is not offered.
    case securityNotEnforced(String)
    /// BlueZ or the bus refused the pairing agent, which ``PeripheralManager/pairingPolicy`` needs.
    case pairingAgentRefused(BusError)
    /// The service was removed before it was registered.
    case serviceRemoved
    /// `bluetoothd` refused to register the service.
    case serviceRefused(BusError)
    /// `bluetoothd` did not reply within the time-out to the request to register the service.
    case serviceTimeout
    /// The adapter cannot offer services, or `bluetoothd` does not permit it.
    case servicesNotSupported
    /// The advertisement does not fit: `field` is its longest part, and `by` the number of bytes that are too many.
    case advertisementTooLong(field: AdvertisingField, by: Int)
    /// The advertisement has a value that cannot be advertised; the text names it.
    case invalidAdvertisement(String)
    /// The adapter already has as many advertisements as it can, including those of other programs; 0 if BlueZ has not
    /// reported their number.
    case tooManyAdvertisements(Int)
    /// The adapter cannot advertise, or `bluetoothd` does not permit it.
    case advertisingNotSupported
    /// `bluetoothd` refused to advertise.
    case advertisementRefused(BusError)
    /// `bluetoothd` did not reply within the time-out to the request to advertise.
    case startAdvertisingTimeout
    /// `bluetoothd` did not report within the time-out what the adapter can advertise.
    case advertisingLimitsTimeout
    /// The advertisement was ended before it was sent.
    case advertisingStopped
    /// The manager has ended.
    case managerEnded

    /// Lets `case PeripheralManagerError.isAdvertising:` match in a `switch` over any error.
    public static func ~= (pattern: PeripheralManagerError, error: any Error) -> Bool {
        error as? PeripheralManagerError == pattern
    }
}

extension PeripheralManagerError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { description }

    public var description: String {
        switch self {
        case .isAdvertising:
            "This manager is advertising already: call stopAdvertising() first, "
                + "or start further advertisements with startAdvertising(AdvertisingData)."
        case .restoreFailed:
            "The kept state could not be restored, and the manager starts with an empty state: stateRestorationFailure "
                + "has the reason."
        case .stopAdvertisingTimeout:
            "bluetoothd did not confirm in time that nothing is advertised any more; it was asked to end it nevertheless."
        case .notPoweredOn(let state):
            "Bluetooth could not be used in time (\(state)): wait for whenStateChanges() to yield poweredOn, "
                + "or see stateExplanation."
        case .invalidOption(let text), .invalidService(let text), .invalidAdvertisement(let text),
            .securityNotEnforced(let text):
            text
        case .pairingAgentRefused(let failure):
            "BlueZ or the bus refused this program's pairing agent (\(failure)): centrals could not pair. "
                + "Set the manager's pairingPolicy to .reject to serve without pairing."
        case .restoreIdentifierInUse(let path):
            "Another manager that is running keeps its state in \(path): "
                + "give each manager a restore identifier of its own."
        case .serviceInUse:
            "The service or one of its characteristics belongs to another manager or service: "
                + "remove it there first, or make another one."
        case .serviceRemoved:
            "The service was removed before bluetoothd had registered it."
        case .serviceRefused(let failure):
            "bluetoothd refused to register the service (\(failure)): its log says more "
                + "(`journalctl -u bluetooth`). Generic Access (1800) and Generic Attribute (1801) are its own."
        case .serviceTimeout:
            "bluetoothd did not answer in time when it was asked to register the service: it may hang. "
                + Self.restart
        case .servicesNotSupported:
            "The adapter cannot offer services: its bluetoothd has no GattManager1."
        case .startAdvertisingTimeout:
            "bluetoothd did not answer in time when it was asked to advertise: it may hang. " + Self.restart
        case .advertisingLimitsTimeout:
            "bluetoothd did not answer in time what the adapter can advertise: it may hang. " + Self.restart
        case .advertisementTooLong(let field, let excess):
            "The advertisement has \(excess) bytes too many for its 31: shorten its \(field)."
        case .tooManyAdvertisements(let count):
            (count > 0
                ? "The adapter advertises \(count) advertisements already, which is all that it can: "
                : "The adapter advertises as many advertisements already as it can: ")
                + "end one, of this program or another."
        case .advertisingNotSupported:
            "The adapter cannot advertise: its controller, or its bluetoothd, has no LEAdvertisingManager1."
        case .advertisementRefused(let failure):
            "bluetoothd refused to advertise (\(failure))."
        case .advertisingStopped:
            "The advertisement was ended before it was on the air."
        case .managerEnded:
            "The PeripheralManager has ended: keep a reference to it for as long as it is to serve."
        }
    }

    private static let restart =
        "`systemctl restart bluetooth` restarts it, and `journalctl -u bluetooth` shows its log."
}

extension PeripheralManagerError: SessionError {
    /// Creates the error of an attribute with a flag that this daemon does not enforce.
    static func securityNotEnforced(by daemon: DaemonCapabilities, _ flag: String, of attribute: CBUUID) -> Self {
        let version = daemon.version.map { "BlueZ \($0)" } ?? "This BlueZ, whose version is not known,"
        let first = flag.hasSuffix("read") || flag.hasSuffix("write") ? "5.57" : "5.66"
        return .securityNotEnforced(
            "\(version) does not enforce \"\(flag)\" of the characteristic or descriptor \(attribute), "
                + "which needs BlueZ \(first) or later: the service was not registered.")
    }
}
