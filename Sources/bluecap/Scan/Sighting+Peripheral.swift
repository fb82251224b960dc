import BlueCapKit
import Foundation

extension Sighting {
    /// What the kit knows of the peripheral now, with the names that the assigned numbers give to things.
    init(_ peripheral: Peripheral) {
        let advertisements = peripheral.advertisements
        self.init(
            identifier: peripheral.identifier,
            address: peripheral.address,
            addressType: peripheral.addressType.rawValue,
            name: Self.name(of: peripheral, advertisements),
            rssi: peripheral.rssi,
            txPower: advertisements.txPower?.intValue,
            services: Self.services(advertisements.serviceUUIDs ?? []),
            makers: Self.makers(advertisements.manufacturerDataByCompany),
            serviceData: Dictionary(
                uniqueKeysWithValues: (advertisements.serviceData ?? [:]).map { ($0.key.uuidString, $0.value) }),
            isConnectable: advertisements.isConnectable?.boolValue)
    }

    /// The kit says "Unknown" where there is no name; a device may also call itself so.
    private static func name(of peripheral: Peripheral, _ advertisements: PeripheralAdvertisements) -> String? {
        let name = peripheral.name
        return name == "Unknown" ? advertisements.localName : name
    }

    /// Short UUIDs, which have names, before long ones; each kind in ascending order, so that lines can be compared.
    static func services(_ uuids: [CBUUID]) -> [Service] {
        uuids.map { Service(uuid: $0.uuidString, name: AssignedNumbers.serviceName($0)) }
            .sorted { ($0.uuid.utf8.count, $0.uuid) < ($1.uuid.utf8.count, $1.uuid) }
    }

    static func makers(_ data: [UInt16: Data]) -> [Maker] {
        data.map { Maker(company: $0.key, name: AssignedNumbers.companyName($0.key), data: $0.value) }
            .sorted { $0.company < $1.company }
    }
}
