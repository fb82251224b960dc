import BlueCapKit
import Foundation

/// What a peripheral offers, as a value: all that is printed of it.
///
/// Handles up to 0xFFFF are those of the peripheral's attribute table; BlueZ reports the values of the others in other ways.
struct AttributeTree: Equatable, Sendable {
    struct Service: TreeAttribute, Equatable, Sendable {
        var handle: UInt32
        var uuid: CBUUID
        var name: String?
        var isPrimary = true
        /// The handles of the services that it includes.
        var includes: [UInt32] = []
        var characteristics: [Characteristic] = []
    }

    struct Characteristic: TreeAttribute, Equatable, Sendable {
        /// That of the declaration.
        var handle: UInt32
        var uuid: CBUUID
        var name: String?
        var properties: CBCharacteristicProperties
        /// Whether a profile decodes its values.
        var isDecoded = false
        var reading = Reading.none
        var descriptors: [Descriptor] = []

        /// The handles by which the characteristic is known: that of the declaration, and that of the value, which follows it
        /// immediately (Core Specification 5.4, volume 3, part G, 3.3.2).
        var handles: [UInt32] { handle < 0xFFFF ? [handle, handle + 1] : [handle] }

        /// Whether it notifies or indicates.
        var canSend: Bool { !properties.isDisjoint(with: [.notify, .indicate]) }
    }

    struct Descriptor: TreeAttribute, Equatable, Sendable {
        var handle: UInt32
        var uuid: CBUUID
        var name: String?
        var reading = Reading.none
    }

    enum Reading: Equatable, Sendable {
        /// The value was not read: it is not readable, or values were not requested.
        case none
        case value(AttributeValue)
        /// Why the value could not be read.
        case failed(String)

        var hasFailed: Bool { if case .failed = self { true } else { false } }

        init(_ result: Result<AttributeValue, any Error>) {
            switch result {
            case .success(let value): self = .value(value)
            case .failure(let error): self = .failed(RemoteFailure.brief(error))
            }
        }
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

extension AttributeTree {
    enum Attribute: Equatable, Sendable {
        case service(Service)
        case characteristic(Characteristic)
        case descriptor(Descriptor)
    }

    /// All attributes in their order, each with the handle of the one above it.
    private var attributes: [(handle: UInt32, attribute: Attribute, parent: UInt32?)] {
        services.flatMap { service in
            [(service.handle, .service(service), nil)]
                + service.characteristics.flatMap { entry in
                    [(entry.handle, .characteristic(entry), service.handle)]
                        + entry.descriptors.map { ($0.handle, .descriptor($0), entry.handle) }
                }
        }
    }

    /// The handles of all attributes except those in folded services.
    func handles(folded: Set<UInt32>) -> [UInt32] {
        services.flatMap { service in
            let entries = folded.contains(service.handle) ? [] : service.characteristics
            return [service.handle] + entries.flatMap { [$0.handle] + $0.descriptors.map(\.handle) }
        }
    }

    func attribute(_ handle: UInt32) -> Attribute? { attributes.first { $0.handle == handle }?.attribute }

    func parent(of handle: UInt32) -> UInt32? { attributes.first { $0.handle == handle }?.parent }

    /// The handles of all attributes that can be read.
    var readable: [UInt32] {
        attributes.compactMap { handle, attribute, _ in
            switch attribute {
            case .service: nil
            case .characteristic(let entry): entry.properties.contains(.read) ? handle : nil
            case .descriptor: handle
            }
        }
    }

    /// The result of reading a characteristic or a descriptor; ``Reading/none`` of any other handle.
    subscript(readingOf handle: UInt32) -> Reading {
        get { place(of: handle).map { self[keyPath: $0] } ?? .none }
        set { if let place = place(of: handle) { self[keyPath: place] = newValue } }
    }

    private func place(of handle: UInt32) -> WritableKeyPath<AttributeTree, Reading>? {
        for (service, content) in services.enumerated() {
            for (place, entry) in content.characteristics.enumerated() {
                if entry.handle == handle { return \.services[service].characteristics[place].reading }
                guard let descriptor = entry.descriptors.firstIndex(where: { $0.handle == handle }) else { continue }
                return \.services[service].characteristics[place].descriptors[descriptor].reading
            }
        }
        return nil
    }
}

protocol TreeAttribute: Named {
    var handle: UInt32 { get }
}

/// The ready-made profiles that apply to a peripheral.
///
/// A 16-bit UUID that the Bluetooth SIG has not assigned does not say whose service it is: FFE0 is that of the keys of TI's
/// SensorTag, and of many serial modules. Its profile applies only beside a long UUID of the same vendor.
struct KnownProfiles: Sendable {
    private static let ready = ProfileManager.ready

    private let vendors: Set<String>

    /// - Parameter services: The UUIDs of the peripheral's services.
    init(of services: [CBUUID]) {
        vendors = Set(services.filter { $0.assignedNumber == nil }.compactMap { Self.ready.service($0)?.tag })
    }

    func service(_ uuid: CBUUID) -> ServiceProfile? {
        guard let profile = Self.ready.service(uuid) else { return nil }
        guard uuid.assignedNumber != nil, AssignedNumbers.serviceName(uuid) == nil else { return profile }
        return vendors.contains(profile.tag) ? profile : nil
    }
}

/// The attributes of a connected peripheral: as a value, and the library's objects by their handles.
struct AttributeDirectory: Sendable {
    typealias Reader = @Sendable (_ timeout: Double) async throws -> AttributeValue

    var tree: AttributeTree
    private(set) var characteristics: [UInt32: (target: Characteristic, profile: CharacteristicProfile?)] = [:]
    private(set) var readers: [UInt32: Reader] = [:]

    /// Discovers everything, and reads no value.
    ///
    /// - Parameter timeout: In seconds, for the discovery of the services, and for that of each one's characteristics.
    init(of peripheral: Peripheral, timeout: Double) async throws {
        _ = try await peripheral.discoverAllServices(timeout: timeout).value
        tree = AttributeTree(
            identifier: peripheral.identifier, address: peripheral.address,
            addressType: peripheral.addressType.rawValue, name: peripheral.knownName,
            rssi: peripheral.rssi, mtu: peripheral.mtu, isPaired: peripheral.isPaired, isBonded: peripheral.isBonded,
            services: [])
        let known = KnownProfiles(of: peripheral.services.map(\.uuid))
        let discoveries: [Future<Service>] = peripheral.services.map {
            $0.discoverAllCharacteristics(timeout: timeout)
        }
        for discovery in discoveries {
            let service = try await discovery.value
            let profile = known.service(service.uuid)
            tree.services.append(
                .init(
                    handle: service.number, uuid: service.uuid,
                    name: profile?.name ?? Formats.serviceName(service.uuid), isPrimary: service.isPrimary,
                    includes: service.includedServices.map(\.number),
                    characteristics: service.characteristics.map { add($0, profile?.characteristic($0.uuid)) }))
        }
    }

    private mutating func add(
        _ characteristic: Characteristic, _ profile: CharacteristicProfile?
    ) -> AttributeTree.Characteristic {
        characteristics[characteristic.number] = (characteristic, profile)
        readers[characteristic.number] = { timeout in
            AttributeValue(try await characteristic.read(from: 0, timeout: timeout).value, profile: profile)
        }
        return .init(
            handle: characteristic.number, uuid: characteristic.uuid,
            name: profile?.name ?? Formats.current.names[characteristic.uuid]
                ?? AssignedNumbers.characteristicName(characteristic.uuid),
            properties: characteristic.properties, isDecoded: profile?.understandsValues == true,
            descriptors: characteristic.descriptors.map { descriptor in
                readers[descriptor.number] = { timeout in
                    let read: Descriptor = try await descriptor.read(timeout: timeout).value
                    return AttributeValue(read.dataValue ?? Data())
                }
                return .init(
                    handle: descriptor.number, uuid: descriptor.uuid,
                    name: AssignedNumbers.descriptorName(descriptor.uuid))
            })
    }

    /// Reads every value that can be read into the tree, one after the other in the order of their handles.
    ///
    /// BlueZ often reports nothing if the link lacks the security that a value needs: the link ends, or BlueZ sends nothing else
    /// while it waits for a pairing. Such a value is not read again, and the rest is read over a new link.
    ///
    /// - Returns: The first failure that may be due to a lack of security; `nil` if there is none.
    mutating func readValues(over remote: Remote) async throws -> (any Error)? {
        var reader = ValueReader(remote: remote, readers: readers)
        for handle in tree.readable { tree[readingOf: handle] = try await reader.read(handle) }
        return reader.failure
    }
}

/// Reads values one by one, and replaces the link if one of them has made it unusable.
private struct ValueReader {
    /// How many values in succession may cost the link. Then the peripheral is likely to be away, or to protect everything.
    private static let mostLosses = 3

    let remote: Remote
    /// Those of the present link.
    var readers: [UInt32: AttributeDirectory.Reader]
    /// The first failure that may be due to a lack of security.
    var failure: (any Error)?
    var losses = 0

    mutating func read(_ handle: UInt32) async throws -> AttributeTree.Reading {
        guard losses < Self.mostLosses else { return .failed("not read") }
        // The peripheral may have changed its services.
        guard let read = readers[handle] else { return .none }
        do {
            let value = try await read(remote.timeout)
            losses = 0
            return .value(value)
        } catch {
            try Task.checkCancellation()
            if RemoteFailure.mayLackSecurity(error) {
                failure = failure ?? error
                try await replaceLink(after: error)
            }
            return .failed(RemoteFailure.brief(error))
        }
    }

    private mutating func replaceLink(after error: any Error) async throws {
        let isBlocked = if case CharacteristicError.readTimeout = error { true } else { false }
        guard isBlocked || remote.peripheral.state != .connected else { return }
        losses += 1
        guard losses < Self.mostLosses else { return }
        do {
            try await remote.replaceLink()
            readers = try await remote.discover().readers
        } catch {
            try Task.checkCancellation()
            losses = Self.mostLosses
        }
    }
}
