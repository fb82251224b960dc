public import Foundation

/// One report of a scan: a peripheral and the data that were valid when the report was received.
///
/// A ``Peripheral`` returns the newest data, whichever report contained them. A report is a value and does not change.
public struct ScanReport: Sendable {
    /// The peripheral: the same object as in ``CentralManager/peripherals``.
    public let peripheral: Peripheral
    /// When the report was received.
    public let date: Date
    /// The signal strength in dBm; `nil` if BlueZ did not report one. It is the strength of this report or, if BlueZ
    /// reported only other data, of the last report that had one.
    public let rssi: Int?
    /// The advertised data at the time of this report.
    ///
    /// BlueZ merges the data that a peripheral sends in several packets: fields that this report did not contain have
    /// the value of an earlier report.
    public let advertisements: PeripheralAdvertisements

    /// The measurements that sensors advertised, such as temperatures, decoded with `AdvertisementDecoders.standard` at each
    /// access; empty for most peripherals. ``PeripheralAdvertisements/sensorReadings(address:decoders:)`` takes other decoders.
    /// A report repeats earlier measurements if BlueZ reported only other data, such as the signal strength.
    public var sensorReadings: [SensorReading] { advertisements.sensorReadings(address: peripheral.bluetoothAddress) }

    init?(_ sighting: Scans.Stream.Sighting) {
        guard case .report(let advertisements, let rssi, let date)? = sighting.data else { return nil }
        (peripheral, self.date, self.rssi, self.advertisements) = (sighting.peripheral, date, rssi, advertisements)
    }
}

extension ScanReport: CustomStringConvertible {
    public var description: String {
        let name = advertisements.localName ?? "Unknown"
        return "ScanReport(\(name), \(peripheral.address), RSSI \(rssi.map(String.init) ?? "unknown"), \(date))"
    }
}
