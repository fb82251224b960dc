import Foundation
import GATT

/// What a peripheral manager with a restore identifier keeps: what it offers, and what it advertises.
struct PeripheralRestorationState: Equatable, Sendable {
    struct Descriptor: Equatable, Sendable {
        var uuid: CBUUID
        var permissions: CBAttributePermissions
        var value: Data?
    }

    struct Characteristic: Equatable, Sendable {
        var uuid: CBUUID
        var name: String
        var properties: CBCharacteristicProperties
        var permissions: CBAttributePermissions
        /// What it was when the service was added.
        var value: Data?
        var sendsUpdatesOverSocket = true
        var takesWritesOverSocket = false
        var descriptors: [Descriptor] = []
    }

    struct Service: Equatable, Sendable {
        var uuid: CBUUID
        var name: String
        var isPrimary = true
        var characteristics: [Characteristic] = []
    }

    struct Advertisement: Equatable, Sendable {
        var data: AdvertisingData
        /// Whether it is the one of which there is but one.
        var isMain: Bool
    }

    /// In the order in which they were added.
    var services: [Service] = []
    var advertisements: [Advertisement] = []

    var isEmpty: Bool { services.isEmpty && advertisements.isEmpty }
}

extension PeripheralRestorationState.Service {
    /// The service as it is now. Any thread.
    init(_ service: MutableService) {
        uuid = service.uuid
        name = service.name
        isPrimary = service.isPrimary
        characteristics = service.characteristics.map { characteristic in
            PeripheralRestorationState.Characteristic(
                uuid: characteristic.uuid, name: characteristic.name, properties: characteristic.properties,
                permissions: characteristic.permissions, value: characteristic.value,
                sendsUpdatesOverSocket: characteristic.sendsUpdatesOverSocket,
                takesWritesOverSocket: characteristic.takesWritesOverSocket,
                descriptors: characteristic.descriptors.map {
                    .init(uuid: $0.uuid, permissions: $0.permissions, value: $0.value)
                })
        }
    }

    /// The service once more.
    var made: MutableService {
        let service = MutableService(
            profile: ServiceProfile(uuid: uuid.fullUUIDString, name: name), isPrimary: isPrimary)
        service.characteristics = characteristics.map { kept in
            let characteristic = MutableCharacteristic(
                profile: CharacteristicProfile(
                    uuid: kept.uuid.fullUUIDString, name: kept.name, permissions: kept.permissions,
                    properties: kept.properties, initialValue: kept.value))
            characteristic.sendsUpdatesOverSocket = kept.sendsUpdatesOverSocket
            characteristic.takesWritesOverSocket = kept.takesWritesOverSocket
            characteristic.descriptors = kept.descriptors.map {
                MutableDescriptor(uuid: $0.uuid, value: $0.value, permissions: $0.permissions)
            }
            return characteristic
        }
        return service
    }
}

extension PeripheralAdvertisements {
    /// What was advertised, in the words of those who hear it.
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
