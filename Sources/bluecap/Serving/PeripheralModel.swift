import BlueCapKit
import BlueZSimulator
import Foundation

/// A peripheral to serve: its services, and how each characteristic behaves. A value, from a built-in profile or a file.
struct PeripheralModel: Sendable {
    /// The name that it advertises unless the command line has another.
    var name: String?
    /// Its appearance (Assigned Numbers, 2.6).
    var appearance: UInt16?
    var services: [Service]
    /// What of a file is for the simulator only, or of several profiles is served once.
    var omissions: [String] = []

    struct Service: Named, Sendable {
        var uuid: CBUUID
        var name: String?
        var isPrimary = true
        var characteristics: [Characteristic]
    }

    struct Characteristic: Named, Sendable {
        var uuid: CBUUID
        var profile: CharacteristicProfile?
        var properties: CBCharacteristicProperties
        var value = Data()
        var descriptors: [Descriptor] = []
        var behaviour = Behaviour.keeps

        /// The name in its profile, its assigned name, or the one in its description.
        var name: String? {
            let description = descriptors.first { $0.uuid == CBUUID(string: "2901") }
            return profile?.name ?? AssignedNumbers.characteristicName(uuid)
                ?? description.flatMap { String(validating: $0.value, as: UTF8.self) }
        }

        /// The security of the link that reading and writing need; its properties have that of subscriptions.
        var protection: CBAttributePermissions = []

        var permissions: CBAttributePermissions {
            var permissions = protection
            if properties.contains(.read) { permissions.insert(.readable) }
            if !properties.isDisjoint(with: [.write, .writeWithoutResponse]) { permissions.insert(.writeable) }
            return permissions
        }

        /// The same characteristic, whose operations need an encrypted link at least.
        var secured: Characteristic {
            var characteristic = self
            if permissions.contains(.readable) { characteristic.protection.insert(.readEncryptionRequired) }
            if permissions.contains(.writeable) { characteristic.protection.insert(.writeEncryptionRequired) }
            characteristic.properties = properties.requiring(.encrypted)
            return characteristic
        }

        fileprivate var isProtected: Bool {
            !protection.isEmpty || properties.rawValue > 0xFF
                || descriptors.contains { !$0.permissions.isSubset(of: [.readable, .writeable]) }
        }
    }

    struct Descriptor: Sendable, Equatable {
        var uuid: CBUUID
        var value: Data
        var permissions: CBAttributePermissions = .readable
    }

    /// How a characteristic behaves. Other characteristics that are named belong to its own service.
    enum Behaviour: Sendable {
        /// Its value is the one that was written last.
        case keeps
        /// Its value changes every so many seconds.
        case changes(ValueSource, every: Double)
        /// Its value changes while the switch is on, as a SensorTag's sensors do. `period` contains hundredths of a second;
        /// `every` is for sensors that have no such characteristic.
        case measures(ValueSource, enabled: CBUUID, period: CBUUID?, every: Double)
        /// A value that is written is sent by another characteristic.
        case echoes(to: CBUUID)
        /// The one command of a heart rate's control point: count the energy from zero again.
        case resets(CBUUID)
    }

    /// Whether an operation needs security, so that centrals have to pair.
    var isProtected: Bool { services.contains { $0.characteristics.contains(where: \.isProtected) } }

    /// The same peripheral, with characteristics that need an encrypted link.
    var secured: PeripheralModel {
        var model = self
        for index in services.indices {
            model.services[index].characteristics = services[index].characteristics.map(\.secured)
        }
        return model
    }

    /// Joins several models: their services, without those that an earlier one has; the name if there is one model only.
    static func joined(_ models: [PeripheralModel]) -> PeripheralModel {
        var joined = PeripheralModel(
            name: models.count == 1 ? models[0].name : nil, appearance: models.first?.appearance, services: [])
        for model in models {
            let known = Set(joined.services.map(\.uuid))
            joined.services += model.services.filter { !known.contains($0.uuid) }
            joined.omissions += model.omissions
            joined.omissions += model.services.filter { known.contains($0.uuid) }
                .map { "\($0.label), which an earlier profile has" }
        }
        return joined
    }
}

/// The values of a characteristic over time. They depend on the time alone, so that every run is the same.
struct ValueSource: Sendable {
    /// The value at so many seconds since the service began, and since the last reset.
    private let formula: @Sendable (_ seconds: Double, _ sinceReset: Double) -> Data
    private var resetTime = 0.0

    private init(formula: @escaping @Sendable (Double, Double) -> Data) { self.formula = formula }

    init(_ formula: @escaping @Sendable (_ seconds: Double) -> Data) { self.init { seconds, _ in formula(seconds) } }

    /// Returns the value at so many seconds since the service began.
    func value(at seconds: Double) -> Data { formula(seconds, max(0, seconds - resetTime)) }

    /// Makes the counts of the values begin at zero.
    mutating func reset(at seconds: Double) { resetTime = seconds }

    /// A heart at rest: between 60 and 90 beats a minute, with the small variation of breathing. A body at rest uses 0.1 kJ a
    /// second.
    static let heartRate = ValueSource { seconds, sinceReset in
        let rate = 75 + 10 * sin(seconds / 20) + 4 * sin(seconds * 1.3)
        return BluetoothSIG.HeartRateService.Measurement(
            beatsPerMinute: UInt16(rate.rounded()), isInContact: true,
            energyExpended: UInt16(min(sinceReset * 0.1, 65_535)),
            intervals: [UInt16((60 * 1024 / rate).rounded())]
        ).serialize()
    }

    /// A battery that begins full, loses one percent every `pace` seconds, and is replaced at 5 %.
    static func battery(pace: Double) -> ValueSource {
        ValueSource { seconds in Data([UInt8(100 - Int(seconds / pace) % 96)]) }
    }

    /// What a virtual peripheral notifies.
    init(_ source: NotificationSource) {
        // A timer may fire slightly early.
        self.init { Data(source.value(at: max(0, Int(($0 / source.interval + 1e-6).rounded(.down))))) }
    }
}
