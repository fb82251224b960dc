import Foundation
import BlueCapGATT

/// How `startScanning` scans.
///
/// ```swift
/// let stream = manager.startScanning(options: ScanOptions(allowsDuplicates: true, rssiThreshold: -70))
/// ```
public struct ScanOptions: Hashable, Sendable {
    /// Whether each report of a peripheral is delivered, and not only its discovery; `false` by default.
    public var allowsDuplicates: Bool
    /// The weakest signal to report, in dBm from -127 to 20; `nil`, the default, reports any strength.
    ///
    /// A report without a known strength is not delivered while a threshold is set. Another number makes the scan fail
    /// with ``CentralManagerError/invalidOption(_:)``.
    public var rssiThreshold: Int?
    /// A prefix of the name or of the address that a peripheral must have; `nil`, the default, and an empty text accept
    /// every peripheral.
    ///
    /// Names are compared with regard to case, addresses without.
    public var pattern: String?
    /// The time without any report after which the discovery is restarted; 90 seconds by default, `nil` or zero for never.
    ///
    /// A negative time makes the scan fail with ``CentralManagerError/invalidOption(_:)``.
    public var watchdog: Duration?

    /// Creates options; each has its default unless it is given.
    public init(
        allowsDuplicates: Bool = false, rssiThreshold: Int? = nil, pattern: String? = nil,
        watchdog: Duration? = .seconds(90)
    ) {
        self.allowsDuplicates = allowsDuplicates
        self.rssiThreshold = rssiThreshold
        self.pattern = pattern
        self.watchdog = watchdog
    }

    /// Reads the documents' dictionary; throws `CentralManagerError.invalidOption` for a wrong value.
    init(_ options: [String: Any]?) throws(CentralManagerError) {
        let (read, problem) = Self.reading(options)
        if let problem { throw .invalidOption(problem) }
        self = read
    }
}

extension ScanOptions: OptionSettable {
    package static let standard = Self()
    package static let rules: [OptionRule<Self>] = [
        OptionRule("allowsDuplicates", CBCentralManagerScanOptionAllowDuplicatesKey, \.allowsDuplicates, .bool),
        OptionRule(
            "rssiThreshold", "CentralManagerScanOptionRSSIThresholdKey", \.rssiThreshold, .integer(-127...20, "dBm")),
        OptionRule("pattern", "CentralManagerScanOptionPatternKey", \.pattern, .text),
        OptionRule("watchdog", "CentralManagerScanOptionWatchdogKey", \.watchdog, .seconds),
    ]
}
