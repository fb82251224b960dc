import BlueZ
import Foundation
import GATT

extension ScanRequest {
    /// Whether BlueZ's newest word on a device is one that was asked for.
    func accepts(_ device: borrowing Device1) -> Bool {
        if services == nil, rssiThreshold == nil, pattern == nil { return true }
        return accepts(
            services: device.uuids, rssi: device.rssi, name: device.name, address: device.address.description)
    }

    /// What BlueZ needs to be told of this request; what it reports beyond that is filtered by `accepts`.
    var filter: DiscoveryFilter {
        DiscoveryFilter(
            uuids: services.map(Array.init) ?? [], rssi: rssiThreshold.map(Int16.init), pattern: pattern,
            reportsDuplicateData: allowsDuplicates)
    }
}

extension PeripheralAdvertisements {
    init(_ device: borrowing Device1) {
        self.init(
            localName: device.name,
            manufacturerDataByCompany: device.manufacturerData.dictionary.mapValues { Data($0) },
            txPower: device.txPower.map { NSNumber(value: $0) },
            serviceUUIDs: device.uuids.isEmpty ? nil : device.uuids,
            serviceData: device.serviceData.isEmpty
                ? nil : device.serviceData.dictionary.mapValues { Data($0) })
    }
}
