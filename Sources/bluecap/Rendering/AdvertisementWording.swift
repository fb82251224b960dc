import BlueCapKit
import Foundation

/// What we advertise, for people and for programs.
enum AdvertisementWording {
    /// "\"Desk\", Battery, 4 bytes of 0xFFFF"; a beacon by what it is.
    static func text(_ data: AdvertisingData) -> String {
        let beacons = Beacon.all(manufacturerData: data.manufacturerData, serviceData: data.serviceData)
        guard beacons.isEmpty else { return beacons.map(BeaconWording.text).joined(separator: ", ") }
        var parts: [String] = []
        if let name = data.localName { parts.append("\"\(DisplayText.safe(name))\"") }
        parts += data.serviceUUIDs.map(Wording.service)
        parts += data.solicitedServiceUUIDs.map { "looking for \(Wording.service($0))" }
        parts += data.manufacturerData.sorted { $0.key < $1.key }.map { "data of \(Wording.company($0.key))" }
        parts += data.serviceData.keys.sorted { $0.uuidString < $1.uuidString }
            .map { "data of \(Wording.service($0))" }
        if let appearance = data.appearance {
            parts.append(AssignedNumbers.appearanceName(appearance) ?? "appearance \(appearance)")
        }
        return parts.joined(separator: ", ")
    }

    static func object(_ data: AdvertisingData) -> JSONObject {
        var object = JSONObject()
        object.add("name", data.localName)
        object.add("services", data.serviceUUIDs.map(\.uuidString))
        object.add("solicitedServices", data.solicitedServiceUUIDs.map(\.uuidString))
        object.add("manufacturerData", Self.object(data.manufacturerData.map { (String($0.key), $0.value) }))
        object.add("serviceData", Self.object(data.serviceData.map { ($0.key.uuidString, $0.value) }))
        object.add("appearance", data.appearance.map { Int($0) })
        object.add("connectable", data.kind == .connectable)
        object.add("bytes", data.byteCount)
        object.add("scanResponseBytes", data.scanResponseByteCount)
        let beacons = Beacon.all(manufacturerData: data.manufacturerData, serviceData: data.serviceData)
        object.add("beacons", beacons.map(BeaconWording.object))
        return object
    }

    private static func object(_ members: [(key: String, value: Data)]) -> JSONObject {
        var object = JSONObject()
        for (key, value) in members.sorted(by: { $0.key < $1.key }) { object.add(key, ValueForm.hexadecimal(value)) }
        return object
    }
}
