public import BlueCapKit
import Foundation

/// A peripheral that a scan has found, as it was when it was heard.
public struct ScanDiscovery {
    /// What `Bluejay.connect` takes.
    public let peripheralIdentifier: PeripheralIdentifier
    /// What it advertised, under the keys of Core Bluetooth (`CBAdvertisementDataLocalNameKey` and so on).
    public let advertisementPacket: [String: Any]
    /// What it advertised, as values with types.
    public let advertisements: PeripheralAdvertisements
    /// The strength of the signal in dBm; 127 where it is not known.
    public let rssi: Int
    /// How long a connection to it may take, where a ``ScanAction`` says so.
    var connectionTimeout = Timeout.none

    init(_ peripheral: Peripheral) {
        peripheralIdentifier = PeripheralIdentifier(peripheral)
        advertisements = peripheral.advertisements
        advertisementPacket = advertisements.packet
        rssi = peripheral.RSSI
    }
}

extension PeripheralAdvertisements {
    fileprivate var packet: [String: Any] {
        var packet: [String: Any] = [:]
        packet[CBAdvertisementDataLocalNameKey] = localName
        packet[CBAdvertisementDataManufacturerDataKey] = manufacturerData
        packet[CBAdvertisementDataServiceUUIDsKey] = serviceUUIDs
        packet[CBAdvertisementDataServiceDataKey] = serviceData
        packet[CBAdvertisementDataTxPowerLevelKey] = txPower
        packet[CBAdvertisementDataIsConnectable] = isConnectable
        packet[CBAdvertisementDataSolicitedServiceUUIDsKey] = solicitedServiceUUIDs
        return packet
    }
}
