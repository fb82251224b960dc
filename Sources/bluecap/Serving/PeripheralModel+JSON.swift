import BlueCapKit
import BlueZSimulator
import Foundation

/// A peripheral out of a JSON file. Its services are written as in a simulated room's file, so that what was tried out as
/// a peripheral of a room can be served, and the other way round:
///
/// ```json
/// { "name": "Greeter", "appearance": 833, "services": [ { "uuid": "180f", "characteristics": [
///     { "uuid": "2a19", "flags": ["read", "notify"], "value": "64",
///       "notifications": { "cycle": ["64", "63"], "every": 5 } } ] } ] }
/// ```
extension PeripheralModel {
    /// - Throws: ``ToolFailure``, whose text says what is wrong and where.
    static func contents(ofFile path: String) throws -> PeripheralModel {
        guard let data = FileManager.default.contents(atPath: path) else {
            let names = builtin.map(\.name).joined(separator: ", ")
            throw ToolFailure(
                "There is no profile \"\(path)\": it is neither a file that can be read nor one of \(names).")
        }
        return try decoded(from: data, source: path)
    }

    static func decoded(from data: Data, source: String) throws -> PeripheralModel {
        let file: File
        do {
            file = try JSONDecoder().decode(File.self, from: data)
        } catch let error as DecodingError {
            var sentence = sentence(for: error)
            if sentence.last == "." { sentence.removeLast() }
            throw ToolFailure("\(source) does not describe a peripheral: \(sentence).")
        } catch {
            throw ToolFailure("\(source) does not describe a peripheral: \(error.localizedDescription).")
        }
        let profiles = ProfileManager.ready
        let services = try file.services.map { service in
            let profile = profiles.service(CBUUID(string: service.uuid))
            return Service(
                uuid: CBUUID(string: service.uuid),
                name: profile?.name ?? AssignedNumbers.serviceName(CBUUID(string: service.uuid)),
                isPrimary: service.isPrimary,
                characteristics: try service.characteristics.map {
                    try characteristic($0, of: service, profile: profile, source: source)
                })
        }
        guard !services.isEmpty else { throw ToolFailure("\(source) describes a peripheral without any service.") }
        return PeripheralModel(name: file.name ?? "BlueCap", appearance: file.appearance, services: services)
    }

    private static func characteristic(
        _ characteristic: VirtualCharacteristic, of service: VirtualService, profile: ServiceProfile?, source: String
    ) throws -> Characteristic {
        let uuid = CBUUID(string: characteristic.uuid)
        var model = Characteristic(
            uuid: uuid, profile: profile?.characteristic(uuid), properties: properties(characteristic.flags),
            value: Data(characteristic.value),
            descriptors: characteristic.descriptors.map {
                Descriptor(uuid: CBUUID(string: $0.uuid), value: Data($0.value))
            })
        let place = "\(source) does not describe a peripheral: characteristic \(characteristic.uuid)"
        if let echo = characteristic.echo {
            guard let target = CBUUID(validating: echo),
                service.characteristics.contains(where: { CBUUID(string: $0.uuid) == target })
            else { throw ToolFailure("\(place) echoes to \"\(echo)\", which its service does not have.") }
            model.behaviour = .echoes(to: target)
        }
        switch characteristic.notifications {
        case nil: break
        case .cycle(let values, let pace):
            guard pace >= shortestPace else { throw tooFast(place, pace) }
            model.behaviour = .changes(CycleSource(values: values.map { Data($0) }, pace: pace), every: pace)
        case .counter(let size, let pace):
            guard pace >= shortestPace else { throw tooFast(place, pace) }
            guard (1...512).contains(size) else {
                throw ToolFailure("\(place) counts in \(size) bytes, and a value has 1 to 512.")
            }
            model.behaviour = .changes(CounterSource(size: size, pace: pace), every: pace)
        }
        return model
    }

    /// Seconds between two values: what a fast link can carry.
    private static let shortestPace = 0.001

    private static func tooFast(_ place: String, _ pace: Double) -> ToolFailure {
        ToolFailure("\(place) changes every \(pace) s: it takes \(shortestPace) and more.")
    }

    private static func properties(_ flags: Set<CharacteristicFlag>) -> CBCharacteristicProperties {
        let pairs: [(CharacteristicFlag, CBCharacteristicProperties)] = [
            (.broadcast, .broadcast), (.read, .read), (.writeWithoutResponse, .writeWithoutResponse), (.write, .write),
            (.notify, .notify), (.indicate, .indicate), (.authenticatedSignedWrites, .authenticatedSignedWrites),
            (.extendedProperties, .extendedProperties),
        ]
        return pairs.reduce(into: []) { if flags.contains($1.0) { $0.insert($1.1) } }
    }

    // MARK: The file

    private struct File: Decodable {
        enum Key: String, CodingKey, CaseIterable { case name, appearance, services }

        /// Any key, known or not.
        struct AnyKey: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }
            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }

        var name: String?
        var appearance: UInt16?
        var services: [VirtualService]

        init(from decoder: any Decoder) throws {
            // A mistyped key must be said, or the file would quietly mean less than it says.
            let present = try decoder.container(keyedBy: AnyKey.self).allKeys.map(\.stringValue)
            if let stranger = present.sorted().first(where: { Key(rawValue: $0) == nil }) {
                let list = Key.allCases.map(\.rawValue).joined(separator: ", ")
                throw DecodingError.dataCorrupted(
                    .init(codingPath: [], debugDescription: "unknown key \"\(stranger)\"; there are: \(list)"))
            }
            let container = try decoder.container(keyedBy: Key.self)
            name = try container.decodeIfPresent(String.self, forKey: .name)
            appearance = try container.decodeIfPresent(UInt16.self, forKey: .appearance)
            services = try container.decode([VirtualService].self, forKey: .services)
        }
    }

    private static func sentence(for error: DecodingError) -> String {
        switch error {
        case .keyNotFound(let key, let context): "\(place(context.codingPath)) lacks \"\(key.stringValue)\""
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            "\(place(context.codingPath)): \(context.debugDescription)"
        @unknown default: "\(error)"
        }
    }

    /// `services[2].uuid`.
    private static func place(_ path: [any CodingKey]) -> String {
        guard !path.isEmpty else { return "the file" }
        return path.reduce(into: "") { text, key in
            if let index = key.intValue {
                text += "[\(index)]"
            } else {
                text += (text.isEmpty ? "" : ".") + key.stringValue
            }
        }
    }
}
