public import Foundation

/// One report of a scan: a peripheral with the data that were valid when the report was received.
///
/// A ``Peripheral`` is a handle and reads the newest data, whichever report they came with. A report is a value and does
/// not change.
public struct ScanReport: Sendable {
    /// The peripheral: the same object as in ``CentralManager/peripherals``.
    public let peripheral: Peripheral
    /// When the report was received.
    public let date: Date
    /// The signal strength in dBm; `nil` if BlueZ did not report one. It is that of this report, or, if BlueZ reported only
    /// other data, the last one before.
    public let rssi: Int?
    /// What was advertised, as of this report.
    ///
    /// BlueZ merges what a peripheral sends in several packets: fields that this report did not bring have the value of an
    /// earlier one.
    public let advertisements: PeripheralAdvertisements
}

extension ScanReport: CustomStringConvertible {
    public var description: String {
        let name = advertisements.localName ?? "Unknown"
        return "ScanReport(\(name), \(peripheral.address), RSSI \(rssi.map(String.init) ?? "unknown"), \(date))"
    }
}
