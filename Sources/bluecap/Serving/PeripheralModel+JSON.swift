import BlueCapKit
import BlueZSimulator
import Foundation

/// A peripheral from a JSON file. Its services are written as in a simulator's file, so that a virtual peripheral can be
/// served, and the other way round:
///
/// ```json
/// { "name": "Greeter", "appearance": 833, "services": [ { "uuid": "180f", "characteristics": [
///     { "uuid": "2a19", "flags": ["read", "notify"], "value": "64",
///       "notifications": { "cycle": ["64", "63"], "every": 5 } } ] } ] }
/// ```
extension PeripheralModel {
    /// Returns the built-in peripheral of that name, or the peripheral of the file.
    ///
    /// - Throws: As ``contents(ofFile:)``.
    static func named(_ name: String) throws -> PeripheralModel {
        try builtin.first { $0.name == name.lowercased() }?.model ?? contents(ofFile: name)
    }

    /// - Throws: ``ToolFailure`` with what is wrong and where.
    static func contents(ofFile path: String) throws -> PeripheralModel {
        guard let data = FileManager.default.contents(atPath: path) else {
            let names = builtin.map(\.name).joined(separator: ", ")
            throw ToolFailure(
                "There is no profile \"\(path)\": use one of \(names), or a JSON file that can be read.")
        }
        return try decoded(from: data, source: path)
    }

    static func decoded(from data: Data, source: String) throws -> PeripheralModel {
        let file: File
        do {
            file = try DescriptionFile.decode(File.self, from: data)
        } catch {
            throw ToolFailure("\(source), \(error.description).")
        }
        let profiles = ProfileManager.ready
        let services = try file.services.map { service in
            let uuid = CBUUID(string: service.uuid)
            let profile = profiles.service(uuid)
            return Service(
                uuid: uuid, name: profile?.name ?? AssignedNumbers.serviceName(uuid),
                isPrimary: service.isPrimary,
                characteristics: try service.characteristics.map {
                    try characteristic($0, of: service, profile: profile, source: source)
                })
        }
        return PeripheralModel(
            name: file.name, appearance: file.appearance, services: services,
            omissions: file.services.flatMap { omissions(of: $0) })
    }

    /// Returns what of a service only the simulator can have.
    private static func omissions(of service: VirtualService) -> [String] {
        let members = [
            ("includes", !service.includes.isEmpty), ("handle", service.handle != nil),
            ("appearsAfter", service.appearsAfter != 0), ("isAnnounced", !service.isAnnounced),
        ]
        return members.filter(\.1).map { "\"\($0.0)\" of the service \(service.uuid)" }
            + service.characteristics.flatMap { characteristic in
                CharacteristicFlag.allCases.filter {
                    characteristic.flags.contains($0) && CBCharacteristicProperties(names: [$0.rawValue]).isEmpty
                }.map { "the flag \($0.rawValue) of the characteristic \(characteristic.uuid)" }
            }
    }

    private static func characteristic(
        _ characteristic: VirtualCharacteristic, of service: VirtualService, profile: ServiceProfile?, source: String
    ) throws -> Characteristic {
        let uuid = CBUUID(string: characteristic.uuid)
        var model = Characteristic(
            uuid: uuid, profile: profile?.characteristic(uuid),
            properties: CBCharacteristicProperties(names: characteristic.flags.map(\.rawValue))
                .requiring(characteristic.security.subscribe),
            value: Data(characteristic.value),
            descriptors: characteristic.descriptors.map {
                let reading: CBAttributePermissions = $0.flags.contains(.read) ? .readable : []
                let protection: CBAttributePermissions =
                    $0.flags.contains(.write) ? [.writeable, .init($0.security)] : .init(reading: $0.security.read)
                return Descriptor(
                    uuid: CBUUID(string: $0.uuid), value: Data($0.value), permissions: [reading, protection])
            },
            protection: .init(characteristic.security))
        let place = "\(source) does not describe a peripheral: characteristic \(characteristic.uuid)"
        if let echo = characteristic.echo {
            let target = CBUUID(string: echo)
            guard service.characteristics.contains(where: { CBUUID(string: $0.uuid) == target }) else {
                throw ToolFailure("\(place) echoes to \"\(echo)\", which its service does not have.")
            }
            model.behaviour = .echoes(to: target)
        }
        if let source = characteristic.notifications {
            model.behaviour = .changes(ValueSource(source), every: source.interval)
        }
        return model
    }

    private struct File: Decodable {
        enum Key: String, CodingKey, CaseIterable { case name, appearance, services }

        var name: String?
        var appearance: UInt16?
        var services: [VirtualService]

        init(from decoder: any Decoder) throws {
            let container = try decoder.strictContainer(keyedBy: Key.self)
            name = try container.decodeIfPresent(String.self, forKey: .name)
            appearance = try container.number(0...UInt16.max, forKey: .appearance)
            guard try container.nestedUnkeyedContainer(forKey: .services).count != 0 else {
                throw container.failure(.services, "there is no service in it")
            }
            services = try container.services(forKey: .services)
        }
    }
}

extension LinkSecurity {
    /// Returns the one of three sets, for links from encrypted to secure, that this security requires; an empty set for none.
    fileprivate func requirement<Values: SetAlgebra>(_ sets: Values...) -> Values {
        self == .none ? [] : sets[rawValue - 1]
    }
}

extension CBAttributePermissions {
    fileprivate init(_ security: AttributeSecurity) {
        let writing: Self = security.write.requirement(
            .writeEncryptionRequired, .writeAuthenticationRequired, .writeSecureConnectionRequired)
        self = Self(reading: security.read).union(writing)
    }

    fileprivate init(reading security: LinkSecurity) {
        self = security.requirement(
            .readEncryptionRequired, .readAuthenticationRequired, .readSecureConnectionRequired)
    }
}

extension CBCharacteristicProperties {
    /// Returns the properties with those of subscriptions that need security.
    func requiring(_ security: LinkSecurity) -> CBCharacteristicProperties {
        let notifying: Self = security.requirement(
            .notifyEncryptionRequired, .notifyAuthenticationRequired, .notifySecureConnectionRequired)
        let indicating: Self = security.requirement(
            .indicateEncryptionRequired, .indicateAuthenticationRequired, .indicateSecureConnectionRequired)
        return union(contains(.notify) ? notifying : []).union(contains(.indicate) ? indicating : [])
    }
}
