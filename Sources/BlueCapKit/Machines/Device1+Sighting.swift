import BlueCapBlueZ
import Foundation
import BlueCapGATT

extension ScanRequest {
    /// Returns whether this request asks for what BlueZ reports of the device now.
    func accepts(_ device: borrowing Device1) -> Bool {
        if services == nil, rssiThreshold == nil, pattern == nil { return true }
        return accepts(
            services: device.uuids, rssi: device.rssi, name: device.name, address: device.address.description)
    }

    /// The discovery filter that BlueZ receives for this request; `accepts` filters what BlueZ reports beyond that.
    var filter: DiscoveryFilter {
        DiscoveryFilter(
            uuids: services ?? [], rssi: rssiThreshold.map(Int16.init), pattern: pattern,
            reportsDuplicateData: allowsDuplicates)
    }
}

extension PackedData<UInt8> {
    /// The UUIDs under the types for solicited services, which have 2, 4 or 16 bytes each, the lowest first (Core
    /// Specification Supplement, part A, 1.10). `nil` if there is none.
    var solicitedServices: [CBUUID]? {
        var uuids: [CBUUID] = []
        for (type, width) in [(0x14, 2), (0x1F, 4), (0x15, 16)] as [(UInt8, Int)] {
            guard let list = self[type] else { continue }
            for start in stride(from: 0, through: list.count - width, by: width) {
                if let uuid = CBUUID(validating: Data(list[start..<start + width].reversed())) { uuids.append(uuid) }
            }
        }
        return uuids.isEmpty ? nil : uuids
    }
}

/// What a sighting has besides the peripheral, for a scan that requests it.
enum SightingData: Equatable {
    case report(PeripheralAdvertisements, rssi: Int?, Date)
    case beacon(RangedBeacon, Date)
}
