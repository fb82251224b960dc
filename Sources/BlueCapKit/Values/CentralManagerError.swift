public import Foundation

/// Why a request to a ``CentralManager`` failed. A later version may add cases.
public enum CentralManagerError: Swift.Error, Hashable, Sendable {
    /// A scan is running already; a manager runs one at a time.
    case isScanning
    /// Beacons are being ranged already; a manager ranges for one stream at a time.
    case isRanging
    /// The adapter is off, or it is not known yet whether it is on.
    case isPoweredOff
    /// The kept state could not be restored; ``CentralManager/stateRestorationFailure`` is the reason.
    case restoreFailed
    /// Another manager keeps its state under this restore identifier, in the file with this path.
    case restoreIdentifierInUse(String)
    /// The scan's time-out passed before a peripheral was discovered; the scan has stopped.
    case peripheralScanTimeout
    /// There is no bus, no `bluetoothd` on it, or no adapter.
    case unsupported
    /// The bus does not permit this process to communicate with `bluetoothd`.
    case unauthorized
    /// An option has a value of the wrong type or range; the text names the option and the values that it takes.
    case invalidOption(String)
    /// `bluetoothd` refused to scan, even after the documented retries.
    case scanFailed(BusError)

    /// The latest revision's name for ``peripheralScanTimeout``.
    public static var serviceScanTimeout: CentralManagerError { .peripheralScanTimeout }

    /// Makes `case CentralManagerError.serviceScanTimeout:` match in a `switch` over any error, although it is no case.
    public static func ~= (pattern: CentralManagerError, error: any Error) -> Bool {
        error as? CentralManagerError == pattern
    }
}

extension CentralManagerError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { description }

    public var description: String {
        switch self {
        case .isScanning:
            "This manager is scanning already: call stopScanning() first, or use a second CentralManager."
        case .isRanging:
            "This manager ranges beacons already: call stopRangingBeacons() first, or use a second CentralManager."
        case .isPoweredOff:
            "The Bluetooth adapter is not powered on: wait for whenStateChanges() to yield poweredOn, "
                + "or switch it on with `bluetoothctl power on`."
        case .restoreFailed:
            "The kept state could not be restored, and the manager starts with an empty state: stateRestorationFailure "
                + "has the reason."
        case .restoreIdentifierInUse(let path):
            "Another running manager saves its state in \(path): "
                + "give each manager a restore identifier of its own."
        case .peripheralScanTimeout:
            "The scan discovered no peripheral before its time-out, and has stopped."
        case .unsupported:
            "There is no Bluetooth here: no system bus, no bluetoothd on it, or no adapter. "
                + "Check `systemctl status bluetooth` and `bluetoothctl list`."
        case .unauthorized:
            "The system bus does not allow this process to call bluetoothd: check the D-Bus policy for org.bluez."
        case .invalidOption(let text):
            text
        case .scanFailed(let failure):
            "bluetoothd refused to scan (\(failure)): another program may hold the adapter; "
                + "try again, or restart the bluetooth service."
        }
    }
}
