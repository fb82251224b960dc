public import BlueCapKit
public import Foundation

/// How the values of a characteristic are decoded.
public enum ValueFormat: Hashable, Sendable, CustomStringConvertible {
    /// A format without a profile.
    case simple(Simple)
    /// The profile with a name; `nil` for that of the characteristic's UUID, if the library has one.
    case profile(String?)

    /// Formats without a profile. Numbers are little-endian, as in the Bluetooth specifications.
    public enum Simple: String, Hashable, Sendable, CaseIterable {
        case raw, text, uint8, int8, uint16, int16, uint32, int32, float32
    }

    /// Reads the name of a simple format or, for any other text, of a profile; `nil` for a text of 0 or more than 100 bytes.
    public init?(_ text: String) {
        guard (1...100).contains(text.utf8.count) else { return nil }
        self = Simple(rawValue: text).map { .simple($0) } ?? .profile(text)
    }

    /// The format as it is written in the configuration.
    public var description: String {
        switch self {
        case .simple(let simple): simple.rawValue
        case .profile(let name): name ?? "the profile of the UUIDs"
        }
    }
}

/// Decodes the values of one characteristic.
public struct ValueDecoder: Sendable {
    private enum Form: Sendable {
        case simple(ValueFormat.Simple)
        case profile(CharacteristicProfile, isText: Bool)
    }

    private let form: Form

    /// A part of a value.
    public struct Part: Hashable, Sendable {
        /// The value: a number if the text of the profile is one.
        public var value: PayloadValue
        /// The unit, such as `%`; `nil` if there is none.
        public var unit: String?
    }

    /// Creates the decoder of a characteristic; `nil` if there is no profile for it.
    public init?(service: CBUUID, characteristic: CBUUID, format: ValueFormat = .profile(nil)) {
        switch format {
        case .simple(let simple): form = .simple(simple)
        case .profile(let name):
            let found =
                if let name {
                    Self.named[name.lowercased()]
                } else {
                    Self.profiles.service(service)?.characteristic(characteristic)
                        ?? Self.all.first { $0.uuid == characteristic && characteristic.assignedNumber != nil }
                }
            guard let profile = found else { return nil }
            // A profile of text returns any text as it is; other profiles refuse this one.
            let probe = "a~b"
            form = .profile(profile, isText: profile.stringValue(Data(probe.utf8))?.values.contains(probe) ?? false)
        }
    }

    /// Returns the parts of a value by their names, or `nil` if the bytes are no value of the format.
    public func decode(_ data: Data) -> [String: Part]? {
        switch form {
        case .simple(.raw): return nil
        case .simple(.text):
            return String(data: data, encoding: .utf8).map { ["text": Part(value: PayloadValue($0))] }
        case .simple(let simple): return Self.number(data, simple).map { ["number": Part(value: $0)] }
        case .profile(let profile, let isText):
            return profile.stringValue(data)?.mapValues { isText ? Part(value: PayloadValue($0)) : Self.part($0) }
        }
    }

    /// The names of the one part of a format without a profile.
    static let unnamed: Set<String> = ["number", "text"]

    /// The names of the library's profiles of characteristics, from A to Z.
    public static var profileNames: [String] { Set(all.map(\.name)).sorted() }

    static func hasProfile(named name: String) -> Bool { named[name.lowercased()] != nil }

    private static let profiles = ProfileManager.ready
    private static let all: [CharacteristicProfile] = profiles.services.values
        .sorted { $0.uuid.fullUUIDString < $1.uuid.fullUUIDString }.flatMap(\.characteristics)
    private static let named = Dictionary(
        all.map { ($0.name.lowercased(), $0) }, uniquingKeysWith: { first, _ in first })

    private static func number(_ data: Data, _ simple: ValueFormat.Simple) -> PayloadValue? {
        func whole<Number: FixedWidthInteger>(_: Number.Type) -> PayloadValue? {
            guard data.count == Number.bitWidth / 8 else { return nil }
            let number = data.reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
            return PayloadValue(Double(Number(truncatingIfNeeded: number)))
        }
        return switch simple {
        case .raw, .text: nil
        case .uint8: whole(UInt8.self)
        case .int8: whole(Int8.self)
        case .uint16: whole(UInt16.self)
        case .int16: whole(Int16.self)
        case .uint32: whole(UInt32.self)
        case .int32: whole(Int32.self)
        case .float32:
            data.count != 4
                ? nil
                : PayloadValue(
                    Double(Float(bitPattern: data.reversed().reduce(0 as UInt32) { $0 << 8 | UInt32($1) })))
        }
    }

    /// A text of a profile as a number with its unit, if it is one, such as `21.37 °C`.
    private static func part(_ text: String) -> Part {
        let words = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = words.first, isNumber(first), let number = Double(first), let value = PayloadValue(number)
        else { return Part(value: PayloadValue(text)) }
        guard words.count == 2 else { return Part(value: value) }
        let unit = String(words[1])
        guard !unit.isEmpty, unit.count <= 16, !unit.contains(" ") else { return Part(value: PayloadValue(text)) }
        return Part(value: value, unit: unit)
    }

    // Digits with a sign and a point, as in JSON: "0042" is a text.
    private static func isNumber(_ text: Substring) -> Bool {
        let digits = text.hasPrefix("-") ? text.dropFirst() : text
        let parts = digits.split(separator: ".", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count),
            parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { 0x30...0x39 ~= $0 } })
        else { return false }
        return parts[0] == "0" || !parts[0].hasPrefix("0")
    }
}
