public import Foundation
import BlueCapGATT

/// How `startScanning` scans: the same choices as the keys of its `[String: Any]` options, with their types.
///
/// ```swift
/// let stream = manager.startScanning(options: ScanOptions(allowsDuplicates: true, rssiThreshold: -70))
/// ```
public struct ScanOptions: Hashable, Sendable {
    /// Whether each report of a peripheral is delivered, and not only its discovery; `false` by default.
    ///
    /// The same as `CBCentralManagerScanOptionAllowDuplicatesKey`.
    public var allowsDuplicates = false
    /// The weakest signal to report, in dBm from -127 to 20; `nil`, the default, reports any strength.
    ///
    /// A report without a known strength is not delivered while a threshold is set. Another number makes the scan fail
    /// with ``CentralManagerError/invalidOption(_:)``. The same as ``CentralManagerScanOptionRSSIThresholdKey``.
    public var rssiThreshold: Int?
    /// A prefix of the name or of the address that a peripheral must have; `nil`, the default, and an empty text accept
    /// every peripheral.
    ///
    /// Names are compared with regard to case, addresses without. The same as ``CentralManagerScanOptionPatternKey``.
    public var pattern: String?
    /// The number of seconds without any report after which the discovery is restarted; 90 by default, 0 for never.
    ///
    /// A number that is negative or not finite makes the scan fail with ``CentralManagerError/invalidOption(_:)``. The
    /// same as ``CentralManagerScanOptionWatchdogKey``.
    public var watchdog: TimeInterval = 90

    /// Creates options; each has its default unless it is given.
    public init(
        allowsDuplicates: Bool = false, rssiThreshold: Int? = nil, pattern: String? = nil, watchdog: TimeInterval = 90
    ) {
        self.allowsDuplicates = allowsDuplicates
        self.rssiThreshold = rssiThreshold
        self.pattern = pattern
        self.watchdog = watchdog
    }

    /// Reads the documents' dictionary; throws `CentralManagerError.invalidOption` for a wrong value.
    init(_ options: [String: Any]?) throws {
        let options = OptionReader(options)
        allowsDuplicates = try options.bool(CBCentralManagerScanOptionAllowDuplicatesKey) ?? false
        rssiThreshold = try options.rssiThreshold(CentralManagerScanOptionRSSIThresholdKey)
        pattern = try options.string(CentralManagerScanOptionPatternKey)
        watchdog = try options.seconds(CentralManagerScanOptionWatchdogKey) ?? 90
    }

    /// Throws `CentralManagerError.invalidOption` for a value out of range.
    func check() throws {
        var values: [String: Any] = ["ScanOptions.watchdog": watchdog]
        values["ScanOptions.rssiThreshold"] = rssiThreshold
        let reader = OptionReader(values)
        _ = try reader.rssiThreshold("ScanOptions.rssiThreshold")
        _ = try reader.seconds("ScanOptions.watchdog")
    }
}
