import BlueCapKit
import Foundation

/// What a peripheral offers, as a value: all that is printed of it.
///
/// Handles up to 0xFFFF are those of the peripheral's attribute table; BlueZ reports the values of the others in other ways.
struct AttributeTree: Equatable, Sendable {
    struct Service: Equatable, Sendable {
        var handle: UInt32
        var uuid: CBUUID
        var name: String?
        var isPrimary = true
        /// The handles of the services that it includes.
        var includes: [UInt32] = []
        var characteristics: [Characteristic] = []
    }

        /// The name, or else the UUID.
        var label: String { name ?? uuid.uuidString }

    struct Characteristic: Equatable, Sendable {
        var handle: UInt32
        /// That of the declaration.
        var uuid: CBUUID
        var name: String?
        var properties: CBCharacteristicProperties
        var reading = Reading.none
        var descriptors: [Descriptor] = []

        /// The name, or else the UUID.
        var label: String { name ?? uuid.uuidString }
    }

        /// The handles by which the characteristic is known: that of the declaration, and that of the value, which follows it
        /// immediately (Core Specification 5.4, volume 3, part G, 3.3.2).
        var handles: [UInt32] { handle < 0xFFFF ? [handle, handle + 1] : [handle] }

    struct Descriptor: Equatable, Sendable {
        var handle: UInt32
        var uuid: CBUUID
        var name: String?
        var reading = Reading.none
    }

        /// The name, or else the UUID.
        var label: String { name ?? uuid.uuidString }

    enum Reading: Equatable, Sendable {
        /// The value was not read: it is not readable, or values were not requested.
        case none
        case value(AttributeValue)
        /// Why the value could not be read.
        case failed(String)
    }

    var identifier: UUID
    var address: String
    /// `public` or `random`.
    var addressType: String
    var name: String?
    /// In dBm, of the newest sighting; `nil` if it is not known.
    var rssi: Int?
    /// In bytes; `nil` if BlueZ does not report it.
    var mtu: Int?
    /// Whether links to it can be encrypted, or this one is.
    var isPaired = false
    /// Whether BlueZ stores its keys.
    var isBonded = false
    /// In the order of their handles.
    var services: [Service]
}

// MARK: From the library's objects

extension AttributeTree {
    /// The peripheral without its services.
    init(_ peripheral: Peripheral) {
        self.init(
            identifier: peripheral.identifier, address: peripheral.address,
            addressType: peripheral.addressType.rawValue, name: peripheral.knownName,
            rssi: peripheral.rssi, mtu: peripheral.mtu, isPaired: peripheral.isPaired, isBonded: peripheral.isBonded,
            services: [])
    }
}

extension AttributeTree.Service {
    /// The service without its characteristics.
    init(_ service: Service) {
        self.init(
            handle: service.number, uuid: service.uuid, name: service.name == "Unknown" ? nil : service.name,
            isPrimary: service.isPrimary, includes: service.includedServices.map(\.number))
    }
}

extension AttributeTree.Characteristic {
    init(_ characteristic: Characteristic) {
        let name = characteristic.name == "Unknown" ? nil : characteristic.name
        self.init(
            handle: characteristic.number, uuid: characteristic.uuid,
            name: name ?? AssignedNumbers.characteristicName(characteristic.uuid),
            properties: characteristic.properties,
            descriptors: characteristic.descriptors.map {
                .init(handle: $0.number, uuid: $0.uuid, name: AssignedNumbers.descriptorName($0.uuid))
            })
    }
}

/// The attributes of a connected peripheral: as a value, and the library's objects by their handles.
struct AttributeDirectory: Sendable {
    var tree: AttributeTree
    private(set) var characteristics: [UInt32: Characteristic] = [:]
    private var descriptors: [UInt32: Descriptor] = [:]

    /// Discovers everything, and reads no value.
    ///
    /// - Parameter timeout: In seconds, for the discovery of the services, and for that of each one's characteristics.
    init(of peripheral: Peripheral, timeout: Double) async throws {
        _ = try await peripheral.discoverAllServices(timeout: timeout).value
        tree = AttributeTree(peripheral)
        let discoveries: [Future<Service>] = peripheral.services.map {
            $0.discoverAllCharacteristics(timeout: timeout)
        }
        for discovery in discoveries {
            let service = try await discovery.value
            var entry = AttributeTree.Service(service)
            for characteristic in service.characteristics {
                entry.characteristics.append(AttributeTree.Characteristic(characteristic))
                characteristics[characteristic.number] = characteristic
                for descriptor in characteristic.descriptors { descriptors[descriptor.number] = descriptor }
            }
            tree.services.append(entry)
        }
    }

    /// Reads every value that can be read into the tree. All reads are started together; the library performs them one after
    /// the other.
    mutating func readValues(timeout: Double) async throws {
        let readable = characteristics.filter { $0.value.propertyEnabled(.read) }
        let values: [UInt32: Future<Characteristic>] = readable.mapValues { $0.read(timeout: timeout) }
        let descriptorValues: [UInt32: Future<Descriptor>] = descriptors.mapValues { $0.read(timeout: timeout) }
        for service in tree.services.indices {
            for place in tree.services[service].characteristics.indices {
                var entry = tree.services[service].characteristics[place]
                if let value = values[entry.handle] {
                    entry.reading = try await reading {
                        let characteristic = try await value.value
                        return AttributeValue(characteristic.dataValue ?? Data(), profile: characteristic.profile)
                    }
                }
                for place in entry.descriptors.indices {
                    guard let value = descriptorValues[entry.descriptors[place].handle] else { continue }
                    entry.descriptors[place].reading = try await reading {
                        AttributeValue(try await value.value.dataValue ?? Data())
                    }
                }
                tree.services[service].characteristics[place] = entry
            }
        }
    }

    private func reading(_ read: () async throws -> AttributeValue) async throws -> AttributeTree.Reading {
        do {
            return .value(try await read())
        } catch let error as CancellationError {
            throw error
        } catch {
            return .failed(RemoteFailure.brief(error))
        }
    }
}
