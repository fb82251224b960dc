import Foundation
import GATT

extension PeripheralRestorationState: KeptState {
    static var folder: String { "peripheral" }
    static let format = "bluecap peripheral state"
    static let version = 1

    var contents: Contents {
        Contents(
            services: services.map(Contents.Service.init),
            advertisements: advertisements.map(Contents.Advertisement.init))
    }

    init(_ contents: Contents) throws {
        self.init(
            services: try contents.services.map { try $0.service },
            advertisements: try contents.advertisements.map { try $0.advertisement })
    }
}

/// Bytes as people read them.
struct Hexadecimal: Codable {
    var data: Data

    init(_ data: Data) { self.data = data }

    init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        guard let data = Data(hexadecimal: text) else {
            throw RestorationDamage.unreadable("\"\(text)\" is not hexadecimal.")
        }
        self.data = data
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(data.hexadecimal)
    }
}

extension PeripheralRestorationState {
    /// The file, in its own words: what has its usual value is left out.
    struct Contents: Codable {
        struct Descriptor: Codable {
            var uuid: CBUUID
            var permissions: UInt
            var value: Hexadecimal?
        }

        struct Characteristic: Codable {
            var uuid: CBUUID
            var name: String
            var properties: UInt
            var permissions: UInt
            var value: Hexadecimal?
            var updatesOverBus: Bool?
            var writesOverSocket: Bool?
            var descriptors: [Descriptor]
        }

        struct Service: Codable {
            var uuid: CBUUID
            var name: String
            var isSecondary: Bool?
            var characteristics: [Characteristic]

            init(_ service: PeripheralRestorationState.Service) {
                uuid = service.uuid
                name = service.name
                isSecondary = service.isPrimary ? nil : true
                characteristics = service.characteristics.map { kept in
                    Characteristic(
                        uuid: kept.uuid, name: kept.name, properties: kept.properties.rawValue,
                        permissions: kept.permissions.rawValue, value: kept.value.map(Hexadecimal.init),
                        updatesOverBus: kept.sendsUpdatesOverSocket ? nil : true,
                        writesOverSocket: kept.takesWritesOverSocket ? true : nil,
                        descriptors: kept.descriptors.map {
                            Descriptor(
                                uuid: $0.uuid, permissions: $0.permissions.rawValue,
                                value: $0.value.map(Hexadecimal.init))
                        })
                }
            }

            var service: PeripheralRestorationState.Service {
                get throws {
                    var service = PeripheralRestorationState.Service(uuid: uuid, name: name)
                    service.isPrimary = isSecondary != true
                    service.characteristics = characteristics.map { kept in
                        .init(
                            uuid: kept.uuid, name: kept.name,
                            properties: CBCharacteristicProperties(rawValue: kept.properties),
                            permissions: CBAttributePermissions(rawValue: kept.permissions), value: kept.value?.data,
                            sendsUpdatesOverSocket: kept.updatesOverBus != true,
                            takesWritesOverSocket: kept.writesOverSocket == true,
                            descriptors: kept.descriptors.map {
                                .init(
                                    uuid: $0.uuid, permissions: CBAttributePermissions(rawValue: $0.permissions),
                                    value: $0.value?.data)
                            })
                    }
                    return service
                }
            }
        }

        struct Advertisement: Codable {
            var isMain: Bool
            var isBroadcast: Bool?
            var localName: String?
            var serviceUUIDs: [CBUUID]?
            var solicitedServiceUUIDs: [CBUUID]?
            var manufacturerData: [String: Hexadecimal]?
            var serviceData: [String: Hexadecimal]?
            var appearance: UInt16?
            var includesTxPower: Bool?
            var txPower: Int?
            var interval: [TimeInterval]?
            var isHidden: Bool?
            var timeout: Int?
            var duration: Int?
            var secondaryChannel: String?
            var scanResponseServiceUUIDs: [CBUUID]?
            var scanResponseManufacturerData: [String: Hexadecimal]?
            var scanResponseServiceData: [String: Hexadecimal]?

            init(_ kept: PeripheralRestorationState.Advertisement) {
                let data = kept.data
                isMain = kept.isMain
                isBroadcast = data.kind == .broadcast ? true : nil
                localName = data.localName
                serviceUUIDs = data.serviceUUIDs.isEmpty ? nil : data.serviceUUIDs
                solicitedServiceUUIDs = data.solicitedServiceUUIDs.isEmpty ? nil : data.solicitedServiceUUIDs
                manufacturerData = Self.kept(data.manufacturerData)
                serviceData = Self.kept(data.serviceData)
                let response = data.scanResponse
                scanResponseServiceUUIDs = response.serviceUUIDs.isEmpty ? nil : response.serviceUUIDs
                scanResponseManufacturerData = Self.kept(response.manufacturerData)
                scanResponseServiceData = Self.kept(response.serviceData)
                appearance = data.appearance
                includesTxPower = data.includesTxPower ? true : nil
                txPower = data.txPower
                interval = data.interval.map { [$0.lowerBound, $0.upperBound] }
                isHidden = data.isDiscoverable ? nil : true
                timeout = data.timeout
                duration = data.duration
                secondaryChannel = data.secondaryChannel?.rawValue
            }

            private static func kept(_ data: [UInt16: Data]) -> [String: Hexadecimal]? {
                guard !data.isEmpty else { return nil }
                return Dictionary(uniqueKeysWithValues: data.map { ("\($0.key)", Hexadecimal($0.value)) })
            }

            private static func kept(_ data: [CBUUID: Data]) -> [String: Hexadecimal]? {
                guard !data.isEmpty else { return nil }
                return Dictionary(uniqueKeysWithValues: data.map { ($0.key.uuidString, Hexadecimal($0.value)) })
            }

            private static func manufacturerData(_ kept: [String: Hexadecimal]?) throws -> [UInt16: Data] {
                var data: [UInt16: Data] = [:]
                for (key, value) in (kept ?? [:]).sorted(by: { $0.key < $1.key }) {
                    guard let company = UInt16(key) else {
                        throw RestorationDamage.unreadable("\"\(key)\": a company?")
                    }
                    data[company] = value.data
                }
                return data
            }

            private static func serviceData(_ kept: [String: Hexadecimal]?) throws -> [CBUUID: Data] {
                var data: [CBUUID: Data] = [:]
                for (key, value) in (kept ?? [:]).sorted(by: { $0.key < $1.key }) {
                    guard let uuid = CBUUID(validating: key) else {
                        throw RestorationDamage.unreadable("\"\(key)\" is not a UUID.")
                    }
                    data[uuid] = value.data
                }
                return data
            }

            /// Through the same checks as a program's own words.
            var advertisement: PeripheralRestorationState.Advertisement {
                get throws {
                    var data = AdvertisingData(localName: localName, serviceUUIDs: serviceUUIDs ?? [])
                    data.kind = isBroadcast == true ? .broadcast : .connectable
                    data.solicitedServiceUUIDs = solicitedServiceUUIDs ?? []
                    data.manufacturerData = try Self.manufacturerData(manufacturerData)
                    data.serviceData = try Self.serviceData(serviceData)
                    data.scanResponse.serviceUUIDs = scanResponseServiceUUIDs ?? []
                    data.scanResponse.manufacturerData = try Self.manufacturerData(scanResponseManufacturerData)
                    data.scanResponse.serviceData = try Self.serviceData(scanResponseServiceData)
                    data.appearance = appearance
                    data.includesTxPower = includesTxPower == true
                    data.txPower = txPower
                    if let interval {
                        guard interval.count == 2, interval[0] <= interval[1] else {
                            throw RestorationDamage.unreadable("\(interval) is no interval.")
                        }
                        data.interval = interval[0]...interval[1]
                    }
                    data.isDiscoverable = isHidden != true
                    data.timeout = timeout
                    data.duration = duration
                    data.secondaryChannel = secondaryChannel.flatMap { AdvertisingData.SecondaryChannel(rawValue: $0) }
                    try data.checkForAny()
                    return .init(data: data, isMain: isMain)
                }
            }
        }

        var services: [Service]
        var advertisements: [Advertisement]
    }
}
