import BlueCapKit
import Foundation

/// What a peripheral of ours is: its services, and what each characteristic does by itself. A value, out of a built-in
/// profile or of a file.
struct PeripheralModel: Sendable {
    /// The name that it advertises, where the command line gives none.
    var name: String
    /// What it looks like (Assigned Numbers, 2.6).
    var appearance: UInt16?
    var services: [Service]

    struct Service: Sendable {
        var uuid: CBUUID
        var name: String?
        var isPrimary = true
        var characteristics: [Characteristic]
    }

    struct Characteristic: Sendable {
        var uuid: CBUUID
        /// What is known of its values.
        var profile: CharacteristicProfile?
        var properties: CBCharacteristicProperties
        var value = Data()
        var descriptors: [Descriptor] = []
        var behaviour = Behaviour.keeps

        /// What people call it.
        var label: String { name ?? uuid.uuidString }

        /// By its profile, or else as its own description has it.
        var name: String? {
            if let name = profile?.name { return name }
            if let name = AssignedNumbers.characteristicName(uuid) { return name }
            let description = descriptors.first { $0.uuid == CBUUID(string: "2901") }
            return description.flatMap { String(validating: $0.value, as: UTF8.self) }
        }

        var isWritable: Bool { !properties.isDisjoint(with: [.write, .writeWithoutResponse]) }
        var isReadable: Bool { properties.contains(.read) }
        var sends: Bool { !properties.isDisjoint(with: [.notify, .indicate]) }

        /// Who may do what follows from what can be done.
        var permissions: CBAttributePermissions {
            var permissions: CBAttributePermissions = []
            if isReadable { permissions.insert(.readable) }
            if isWritable { permissions.insert(.writeable) }
            return permissions
        }
    }

    struct Descriptor: Sendable, Equatable {
        var uuid: CBUUID
        var value: Data
    }

    /// What a characteristic does. Others that it has to do with are of its own service.
    enum Behaviour: Sendable {
        /// Its value is what was written last.
        case keeps
        /// Its value changes by itself, every so many seconds.
        case changes(any ValueSource, every: Double)
        /// The same while the switch is on: as a SensorTag's sensors do. `period` holds hundredths of a second, `every` is
        /// for those that have no such characteristic.
        case measures(any ValueSource, enabled: CBUUID, period: CBUUID?, every: Double)
        /// Whatever is written is sent by another.
        case echoes(to: CBUUID)
        /// The one command of a heart rate's control point: count the energy from nothing again.
        case resets(CBUUID)
    }

    /// Several in one: the services of all, each once; the name of one alone, or `nil`.
    static func joined(_ models: [PeripheralModel]) -> (services: [Service], name: String?, appearance: UInt16?) {
        var services: [Service] = []
        for service in models.flatMap(\.services) where !services.contains(where: { $0.uuid == service.uuid }) {
            services.append(service)
        }
        return (services, models.count == 1 ? models[0].name : nil, models.first?.appearance)
    }
}

extension PeripheralModel.Service {
    /// A service of a profile, with its characteristics as the profile has them.
    init(
        _ profile: ServiceProfile, _ behaviours: [CBUUID: PeripheralModel.Behaviour] = [:], values: [CBUUID: Data] = [:]
    ) {
        self.init(
            uuid: profile.uuid, name: profile.name,
            characteristics: profile.characteristics.map { characteristic in
                PeripheralModel.Characteristic(
                    uuid: characteristic.uuid, profile: characteristic, properties: characteristic.properties,
                    value: values[characteristic.uuid] ?? characteristic.initialValue ?? Data(),
                    behaviour: behaviours[characteristic.uuid] ?? .keeps)
            })
    }

    /// What people call it.
    var label: String { name ?? uuid.uuidString }
}
