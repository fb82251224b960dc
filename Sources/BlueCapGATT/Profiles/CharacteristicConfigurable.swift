public import Foundation

/// A type that describes a kind of characteristic.
///
/// Only the name and the UUID are required; the rest has the defaults of `CharacteristicProfile`.
public protocol CharacteristicConfigurable {
    /// The name for display.
    static var name: String { get }
    /// The UUID, as `CBUUID(string:)` accepts it.
    static var uuid: String { get }
    /// The access that a published characteristic allows a central: read and write by default.
    static var permissions: CBAttributePermissions { get }
    /// The operations that the characteristic supports: read, write and notify by default.
    static var properties: CBCharacteristicProperties { get }
    /// The value that a published characteristic has at first: none by default.
    static var initialValue: Data? { get }
}

extension CharacteristicConfigurable {
    public static var permissions: CBAttributePermissions { [.readable, .writeable] }
    public static var properties: CBCharacteristicProperties { [.read, .write, .notify] }
    public static var initialValue: Data? { nil }
}

/// A type that describes a kind of service.
public protocol ServiceConfigurable {
    /// The name for display.
    static var name: String { get }
    /// The UUID, as `CBUUID(string:)` accepts it.
    static var uuid: String { get }
    /// A word by which service profiles are grouped, such as `"TI Sensor Tag"`.
    static var tag: String { get }
}

extension ServiceConfigurable {
    public static var tag: String { "Miscellaneous" }
}

/// A value with a string form: a dictionary of texts, one for each part of the value.
///
/// For each value `T(stringValue: value.stringValue)` is that value again.
public protocol StringDeserializable {
    /// All texts that the value can have, for a menu; empty if there are too many.
    static var stringValues: [String] { get }
    /// The parts of the value with their texts. A value of one part has it under the characteristic's name.
    var stringValue: [String: String] { get }
    /// Creates the value of the texts; `nil` if a part is missing or invalid.
    init?(stringValue: [String: String])
}

extension StringDeserializable where Self: CaseIterable & Equatable & CharacteristicConfigurable {
    /// The text of the case, which has the same index in ``stringValues``, under the characteristic's name.
    public var stringValue: [String: String] {
        zip(Self.allCases, Self.stringValues).first { $0.0 == self }.map { [Self.name: $0.1] } ?? [:]
    }

    /// Creates the case from its text under the characteristic's name, in upper or lower case.
    public init?(stringValue: [String: String]) {
        guard let wanted = stringValue[Self.name]?.lowercased() else { return nil }
        guard let found = zip(Self.allCases, Self.stringValues).first(where: { $1.lowercased() == wanted }) else {
            return nil
        }
        self = found.0
    }
}

extension StringDeserializable where Self: OptionSet & CharacteristicConfigurable, RawValue: FixedWidthInteger {
    /// The names of the set bits under the characteristic's name, with commas between them; `"none"` for no bit.
    ///
    /// The lowest bit has the first of ``stringValues``; a bit without a name is called `"bit 12"`.
    public var stringValue: [String: String] {
        let names = (0..<RawValue.bitWidth).filter { rawValue & (1 << $0) != 0 }.map { Self.name(ofBit: $0) }
        return [Self.name: names.isEmpty ? "none" : names.joined(separator: ", ")]
    }

    /// Creates the set from the names of its bits under the characteristic's name, with commas between them.
    public init?(stringValue: [String: String]) {
        guard let text = stringValue[Self.name]?.lowercased() else { return nil }
        guard text != "none" else {
            self.init(rawValue: 0)
            return
        }
        var bits: RawValue = 0
        for part in text.split(separator: ",") {
            let wanted = part.drop { $0 == " " }
            guard let bit = (0..<RawValue.bitWidth).first(where: { Self.name(ofBit: $0).lowercased() == wanted })
            else { return nil }
            bits |= 1 << bit
        }
        self.init(rawValue: bits)
    }

    private static func name(ofBit bit: Int) -> String {
        bit < stringValues.count ? stringValues[bit] : "bit \(bit)"
    }
}
