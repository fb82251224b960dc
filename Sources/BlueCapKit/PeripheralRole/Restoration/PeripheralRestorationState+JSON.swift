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

            init(_ kept: PeripheralRestorationState.Advertisement) {
                let data = kept.data
                isMain = kept.isMain
                isBroadcast = data.kind == .broadcast ? true : nil
                localName = data.localName
                serviceUUIDs = data.serviceUUIDs.isEmpty ? nil : data.serviceUUIDs
                solicitedServiceUUIDs = data.solicitedServiceUUIDs.isEmpty ? nil : data.solicitedServiceUUIDs
                if !data.manufacturerData.isEmpty {
                    manufacturerData = Dictionary(
                        uniqueKeysWithValues: data.manufacturerData.map { ("\($0.key)", Hexadecimal($0.value)) })
                }
                if !data.serviceData.isEmpty {
                    serviceData = Dictionary(
                        uniqueKeysWithValues: data.serviceData.map { ($0.key.uuidString, Hexadecimal($0.value)) })
                }
                appearance = data.appearance
                includesTxPower = data.includesTxPower ? true : nil
                txPower = data.txPower
                interval = data.interval.map { [$0.lowerBound, $0.upperBound] }
                isHidden = data.isDiscoverable ? nil : true
                timeout = data.timeout
                duration = data.duration
                secondaryChannel = data.secondaryChannel?.rawValue
            }

            /// Through the same checks as a program's own words.
            var advertisement: PeripheralRestorationState.Advertisement {
                get throws {
                    var data = AdvertisingData(localName: localName, serviceUUIDs: serviceUUIDs ?? [])
                    data.kind = isBroadcast == true ? .broadcast : .connectable
                    data.solicitedServiceUUIDs = solicitedServiceUUIDs ?? []
                    for (key, value) in (manufacturerData ?? [:]).sorted(by: { $0.key < $1.key }) {
                        guard let company = UInt16(key) else {
                            throw RestorationDamage.unreadable("\"\(key)\": a company?")
                        }
                        data.manufacturerData[company] = value.data
                    }
                    for (key, value) in (serviceData ?? [:]).sorted(by: { $0.key < $1.key }) {
                        guard let uuid = CBUUID(validating: key) else {
                            throw RestorationDamage.unreadable("\"\(key)\" is not a UUID.")
                        }
                        data.serviceData[uuid] = value.data
                    }
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
                    try data.check()
                    return .init(data: data, isMain: isMain)
                }
            }
        }

        var services: [Service]
        var advertisements: [Advertisement]
    }
}
