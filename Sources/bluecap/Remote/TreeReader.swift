import BlueCapKit
import Foundation

/// Takes down what a connected peripheral offers.
struct TreeReader: Sendable {
    let peripheral: Peripheral
    /// Seconds for the discovery, and for each value.
    let timeout: Double

    /// The characteristics that a tree's handles stand for.
    struct Directory: Sendable {
        var tree: AttributeTree
        var characteristics: [UInt32: Characteristic] = [:]
        var descriptors: [UInt32: Descriptor] = [:]
    }

    /// Discovers everything, and reads no value.
    func directory() async throws -> Directory {
        _ = try await peripheral.discoverAllServices(timeout: timeout).value
        var directory = Directory(tree: AttributeTree(peripheral))
        let discoveries: [Future<Service>] = peripheral.services.map {
            $0.discoverAllCharacteristics(timeout: timeout)
        }
        for discovery in discoveries {
            let service = try await discovery.value
            var entry = AttributeTree.Service(service)
            for characteristic in service.characteristics {
                entry.characteristics.append(AttributeTree.Characteristic(characteristic))
                directory.characteristics[characteristic.number] = characteristic
                for descriptor in characteristic.descriptors { directory.descriptors[descriptor.number] = descriptor }
            }
            directory.tree.services.append(entry)
        }
        return directory
    }

    /// Reads every value that can be read: all are asked for at once, and the library lets each have its turn.
    func readValues(into directory: Directory) async throws -> AttributeTree {
        var characteristics: [UInt32: Future<Characteristic>] = [:]
        var descriptors: [UInt32: Future<Descriptor>] = [:]
        for entry in directory.tree.services.flatMap(\.characteristics) {
            if let characteristic = directory.characteristics[entry.handle], characteristic.propertyEnabled(.read) {
                characteristics[entry.handle] = characteristic.read(timeout: timeout)
            }
            for entry in entry.descriptors {
                descriptors[entry.handle] = directory.descriptors[entry.handle]?.read(timeout: timeout)
            }
        }
        var tree = directory.tree
        for service in tree.services.indices {
            for place in tree.services[service].characteristics.indices {
                var entry = tree.services[service].characteristics[place]
                if let reading = characteristics[entry.handle] {
                    entry.reading = try await self.reading {
                        let characteristic = try await reading.value
                        return AttributeValue(characteristic.dataValue ?? Data(), profile: characteristic.profile)
                    }
                }
                for place in entry.descriptors.indices {
                    guard let reading = descriptors[entry.descriptors[place].handle] else { continue }
                    entry.descriptors[place].reading = try await self.reading {
                        AttributeValue(try await reading.value.dataValue ?? Data())
                    }
                }
                tree.services[service].characteristics[place] = entry
            }
        }
        return tree
    }

    private func reading(_ read: () async throws -> AttributeValue) async throws -> AttributeTree.Reading {
        do {
            return .value(try await read())
        } catch is CancellationError {
            throw CancellationError()
        } catch {
            return .failed(RemoteWording.brief(error))
        }
    }
}

extension AttributeTree {
    /// The peripheral without its services.
    init(_ peripheral: Peripheral) {
        self.init(
            identifier: peripheral.identifier, address: peripheral.address,
            addressType: peripheral.addressType.rawValue, name: peripheral.name == "Unknown" ? nil : peripheral.name,
            rssi: peripheral.rssi, mtu: peripheral.mtu, services: [])
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
