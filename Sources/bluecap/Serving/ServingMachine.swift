import BlueCapKit
import Foundation

/// Decides how the values of a served peripheral change, and what a write does to it: a value without clock and radio.
struct ServingMachine: Sendable {
    /// A characteristic by its place in the model.
    struct Key: Hashable, Sendable {
        var service: Int
        var characteristic: Int
    }

    enum Effect: Equatable, Sendable {
        /// The characteristic has this value from now on, and sends it to its subscribers.
        case value(Key, Data)
        /// Call ``due(_:round:at:)`` when so many seconds have passed.
        case wake(Key, round: Int, after: Double)
    }

    /// The response of a heart rate's control point to an unknown command (Heart Rate Service 1.0, 3.3).
    private static let controlPointNotSupported = CBATTError.Code(rawValue: 0x80) ?? .unlikelyError
    /// The unit of a SensorTag's period, in seconds.
    private static let periodUnit = 0.01
    /// The least number of seconds between two values: a period of 0 hundredths means as fast as possible.
    private static let shortestPeriod = 0.1

    /// The services, with the present values.
    private(set) var services: [PeripheralModel.Service]
    /// The number of wake-ups of each characteristic that were ordered; only the newest counts.
    private var rounds: [Key: Int] = [:]

    init(_ services: [PeripheralModel.Service]) {
        self.services = services
        for key in keys { settle(key) }
    }

    var keys: [Key] {
        services.enumerated().flatMap { service, model in
            model.characteristics.indices.map { Key(service: service, characteristic: $0) }
        }
    }

    /// The characteristic with its present value.
    private(set) subscript(_ key: Key) -> PeripheralModel.Characteristic {
        get { services[key.service].characteristics[key.characteristic] }
        set { services[key.service].characteristics[key.characteristic] = newValue }
    }

    // MARK: Events

    /// Starts the values that change.
    mutating func begin() -> [Effect] { keys.compactMap { wake($0) } }

    /// Handles a wake-up, `seconds` after the beginning.
    mutating func due(_ key: Key, round: Int, at seconds: Double) -> [Effect] {
        guard rounds[key] == round else { return [] }
        switch self[key].behaviour {
        case .keeps, .echoes, .resets: return []
        case .changes(let source, _), .measures(let source, _, _, _): self[key].value = source.value(at: seconds)
        }
        return [.value(key, self[key].value)] + [wake(key)].compactMap { $0 }
    }

    /// Handles a central's write; returns the response, and the effects.
    mutating func written(_ data: Data, to key: Key, at seconds: Double) -> (CBATTError.Code, [Effect]) {
        let characteristic = self[key]
        switch characteristic.behaviour {
        case .echoes(let uuid):
            self[key].value = data
            guard let target = sibling(of: key, uuid, usableFor: [.notify, .indicate]) else { return (.success, []) }
            self[target].value = data
            return (.success, [.value(target, data)])
        case .resets(let uuid):
            guard understands(data, characteristic.profile) else { return (Self.controlPointNotSupported, []) }
            if let target = sibling(of: key, uuid), case .changes(var source, let pace) = self[target].behaviour {
                source.reset(at: seconds)
                self[target].behaviour = .changes(source, every: pace)
            }
            return (.success, [])
        case .keeps, .changes, .measures:
            guard understands(data, characteristic.profile) else { return (.invalidAttributeValueLength, []) }
            self[key].value = data
            let restarted: [Effect] = followers(of: key).map {
                settle($0)
                return wake($0) ?? .value($0, self[$0].value)
            }
            return (.success, [.value(key, data)] + restarted)
        }
    }

    // MARK: Parts

    private func understands(_ data: Data, _ profile: CharacteristicProfile?) -> Bool {
        guard let profile, profile.understandsValues else { return true }
        return profile.stringValue(data) != nil
    }

    /// Returns the characteristic of the same service with this UUID; of several, the first that has one of the properties.
    private func sibling(of key: Key, _ uuid: CBUUID, usableFor wanted: CBCharacteristicProperties = []) -> Key? {
        let characteristics = services[key.service].characteristics
        let places = characteristics.indices.filter { characteristics[$0].uuid == uuid }
        let usable = places.first { !characteristics[$0].properties.isDisjoint(with: wanted) }
        return (usable ?? places.first).map { Key(service: key.service, characteristic: $0) }
    }

    /// Returns the sensors of which this is the switch or the period.
    private func followers(of key: Key) -> [Key] {
        let uuid = self[key].uuid
        return keys.filter { candidate in
            guard candidate.service == key.service,
                case .measures(_, let enabled, let period, _) = self[candidate].behaviour
            else { return false }
            return enabled == uuid || period == uuid
        }
    }

    private func isOn(_ key: Key, by enabled: CBUUID) -> Bool {
        guard let target = sibling(of: key, enabled), let first = self[target].value.first else { return false }
        return first != 0
    }

    /// Sets a sensor that is off to zeros.
    private mutating func settle(_ key: Key) {
        guard case .measures(let source, let enabled, _, _) = self[key].behaviour, !isOn(key, by: enabled) else {
            return
        }
        self[key].value = Data(count: source.value(at: 0).count)
    }

    /// Orders the next wake-up, which replaces any other; `nil` for a value that does not change now.
    private mutating func wake(_ key: Key) -> Effect? {
        let round = rounds[key, default: 0] + 1
        rounds[key] = round
        let pause: Double
        switch self[key].behaviour {
        case .keeps, .echoes, .resets: return nil
        case .changes(_, let every): pause = every
        case .measures(_, let enabled, let period, let every):
            guard isOn(key, by: enabled) else { return nil }
            let hundredths = period.flatMap { sibling(of: key, $0) }.flatMap { self[$0].value.first }
            pause = hundredths.map { max(Self.shortestPeriod, Double($0) * Self.periodUnit) } ?? every
        }
        return .wake(key, round: round, after: pause)
    }
}
