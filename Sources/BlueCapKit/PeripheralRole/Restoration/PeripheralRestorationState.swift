import BlueCapFutures
import Foundation
import BlueCapGATT

/// What a peripheral manager with a restore identifier keeps: what it offers, and what it advertises.
struct PeripheralRestorationState: KeptState {
    struct Descriptor: Codable, Equatable, Sendable {
        var uuid: CBUUID
        var permissions: UInt
        var value: Data?
    }

    struct Characteristic: Codable, Equatable, Sendable {
        var uuid: CBUUID
        var name: String
        var properties: UInt
        var permissions: UInt
        /// What it was when the service was added.
        var value: Data?
        var updatesOverBus: Bool?
        var writesOverSocket: Bool?
        var descriptors: [Descriptor]
    }

    struct Service: Codable, Equatable, Sendable {
        var uuid: CBUUID
        var name: String
        var isSecondary: Bool?
        var characteristics: [Characteristic]
    }

    struct Advertisement: Equatable, Sendable {
        var data: AdvertisingData
        /// Whether it is one of those that a manager has one of at a time.
        var isMain: Bool
    }

    static let folder = "peripheral"
    static let version = 1

    /// In the sequence in which they were added.
    var services: [Service] = []
    var advertisements: [Advertisement] = []
    /// The bonds that the manager has made, in ascending order; `nil` if there are none.
    var bonds: [RestorationState.Device]?

    /// The checks that `add` makes.
    var problem: String? { services.lazy.compactMap(\.made.problem).first.map { "\($0)" } }
}

extension PeripheralRestorationState.Service {
    /// The service as it is now. Any thread.
    init(_ service: MutableService) {
        uuid = service.uuid
        name = service.name
        isSecondary = service.isPrimary ? nil : true
        characteristics = service.characteristics.map { characteristic in
            .init(
                uuid: characteristic.uuid, name: characteristic.name, properties: characteristic.properties.rawValue,
                permissions: characteristic.permissions.rawValue, value: characteristic.value,
                updatesOverBus: characteristic.sendsUpdatesOverSocket ? nil : true,
                writesOverSocket: characteristic.takesWritesOverSocket ? true : nil,
                descriptors: characteristic.descriptors.map {
                    .init(uuid: $0.uuid, permissions: $0.permissions.rawValue, value: $0.value)
                })
        }
    }

    /// Another service that is as this one was.
    var made: MutableService {
        let service = MutableService(
            profile: ServiceProfile(uuid: uuid.uuidString, name: name), isPrimary: isSecondary != true)
        service.characteristics = characteristics.map { kept in
            let characteristic = MutableCharacteristic(
                profile: CharacteristicProfile(
                    uuid: kept.uuid.uuidString, name: kept.name,
                    permissions: CBAttributePermissions(rawValue: kept.permissions),
                    properties: CBCharacteristicProperties(rawValue: kept.properties), initialValue: kept.value))
            characteristic.sendsUpdatesOverSocket = kept.updatesOverBus != true
            characteristic.takesWritesOverSocket = kept.writesOverSocket == true
            characteristic.descriptors = kept.descriptors.map {
                MutableDescriptor(
                    uuid: $0.uuid, value: $0.value, permissions: CBAttributePermissions(rawValue: $0.permissions))
            }
            return characteristic
        }
        return service
    }
}

extension PeripheralRestorationState.Advertisement: Codable {
    private enum CodingKeys: String, CodingKey {
        case isMain, isBroadcast, localName, serviceUUIDs, solicitedServiceUUIDs, manufacturerData, serviceData
        case appearance, includesTxPower, txPower, interval, isHidden, timeout, duration, secondaryChannel
        case scanResponseServiceUUIDs, scanResponseManufacturerData, scanResponseServiceData
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        func encode<T: Encodable>(_ value: T?, _ key: CodingKeys) throws {
            try container.encodeIfPresent(value, forKey: key)
        }
        func encode(_ isSet: Bool, _ key: CodingKeys) throws { try encode(isSet ? true : nil, key) }
        func encode(_ uuids: [CBUUID], _ key: CodingKeys) throws { try encode(uuids.isEmpty ? nil : uuids, key) }
        func encode<Key>(_ data: [Key: Data], _ name: (Key) -> String, _ key: CodingKeys) throws {
            let entries = data.map { (name($0.key), $0.value) }
            try encode(entries.isEmpty ? nil : Dictionary(uniqueKeysWithValues: entries), key)
        }
        try container.encode(isMain, forKey: .isMain)
        try encode(data.kind == .broadcast, .isBroadcast)
        try encode(data.localName, .localName)
        try encode(data.serviceUUIDs, .serviceUUIDs)
        try encode(data.solicitedServiceUUIDs, .solicitedServiceUUIDs)
        try encode(data.manufacturerData, { "\($0)" }, .manufacturerData)
        try encode(data.serviceData, \.uuidString, .serviceData)
        try encode(data.scanResponse.serviceUUIDs, .scanResponseServiceUUIDs)
        try encode(data.scanResponse.manufacturerData, { "\($0)" }, .scanResponseManufacturerData)
        try encode(data.scanResponse.serviceData, \.uuidString, .scanResponseServiceData)
        try encode(data.appearance, .appearance)
        try encode(data.includesTxPower, .includesTxPower)
        try encode(data.txPower, .txPower)
        try encode(data.interval.map { [$0.lowerBound.seconds, $0.upperBound.seconds] }, .interval)
        try encode(!data.isDiscoverable, .isHidden)
        try encode(data.timeout?.components.seconds, .timeout)
        try encode(data.duration?.components.seconds, .duration)
        try encode(data.secondaryChannel?.rawValue, .secondaryChannel)
    }

    /// With the checks that `startAdvertising` makes.
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        func decode<T: Decodable>(_ key: CodingKeys) throws -> T? { try container.decodeIfPresent(T.self, forKey: key) }
        func decodeData<Key>(_ key: CodingKeys, _ name: (String) -> Key?, _ problem: String) throws -> [Key: Data] {
            let entries: [String: Data] = try decode(key) ?? [:]
            var data: [Key: Data] = [:]
            for (text, value) in entries.ordered(by: { $0.key < $1.key }) {
                guard let name = name(text) else { throw RestorationDamage.unreadable("\"\(text)\" is no \(problem).") }
                data[name] = value
            }
            return data
        }
        isMain = try container.decode(Bool.self, forKey: .isMain)
        data = AdvertisingData(localName: try decode(.localName), serviceUUIDs: try decode(.serviceUUIDs) ?? [])
        data.kind = try decode(.isBroadcast) == true ? .broadcast : .connectable
        data.solicitedServiceUUIDs = try decode(.solicitedServiceUUIDs) ?? []
        data.manufacturerData = try decodeData(.manufacturerData, { UInt16($0) }, "company identifier")
        data.serviceData = try decodeData(.serviceData, { CBUUID(validating: $0) }, "UUID")
        data.scanResponse.serviceUUIDs = try decode(.scanResponseServiceUUIDs) ?? []
        data.scanResponse.manufacturerData = try decodeData(
            .scanResponseManufacturerData, { UInt16($0) }, "company identifier")
        data.scanResponse.serviceData = try decodeData(.scanResponseServiceData, { CBUUID(validating: $0) }, "UUID")
        data.appearance = try decode(.appearance)
        data.includesTxPower = try decode(.includesTxPower) == true
        data.txPower = try decode(.txPower)
        if let interval: [TimeInterval] = try decode(.interval) {
            guard interval.count == 2, interval[0] <= interval[1], interval.allSatisfy({ abs($0) < 1e9 }) else {
                throw RestorationDamage.unreadable("\(interval) is no interval.")
            }
            // Of a double, no more than the nanoseconds are exact.
            let limits = interval.map { Duration.nanoseconds(Int64(($0 * 1e9).rounded())) }
            data.interval = limits[0]...limits[1]
        }
        data.isDiscoverable = try decode(.isHidden) != true
        data.timeout = try decode(.timeout).map { .seconds($0 as Int64) }
        data.duration = try decode(.duration).map { .seconds($0 as Int64) }
        data.secondaryChannel = try decode(.secondaryChannel).flatMap { AdvertisingData.SecondaryChannel(rawValue: $0) }
        try data.checkForAny()
    }
}

extension PeripheralAdvertisements {
    /// What was advertised, in the form of what a central receives.
    init(_ data: AdvertisingData) {
        self.init(
            localName: data.localName, manufacturerDataByCompany: data.manufacturerData,
            txPower: data.txPower.map { NSNumber(value: $0) },
            isConnectable: NSNumber(value: data.kind == .connectable),
            serviceUUIDs: data.serviceUUIDs.isEmpty ? nil : data.serviceUUIDs,
            serviceData: data.serviceData.isEmpty ? nil : data.serviceData)
        if !data.solicitedServiceUUIDs.isEmpty { solicitedServiceUUIDs = data.solicitedServiceUUIDs }
    }
}
