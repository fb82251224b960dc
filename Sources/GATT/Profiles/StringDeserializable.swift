/// A value that people can read and type: a dictionary of texts, one for each part of the value.
///
/// For each value `T(stringValue: value.stringValue)` is that value again.
public protocol StringDeserializable {
    /// All texts that the value can have, for a menu; empty when there are too many to choose from.
    static var stringValues: [String] { get }
    /// The parts of the value with their texts. A value of one part has it under the characteristic's name.
    var stringValue: [String: String] { get }
    /// The value that the texts spell, or `nil` when a part is missing or is not understood.
    init?(stringValue: [String: String])
}

extension StringDeserializable where Self: CaseIterable & Equatable & CharacteristicConfigurable {
    /// The case's text, the one of ``stringValues`` at the case's place, under the characteristic's name.
    public var stringValue: [String: String] {
        for (value, text) in zip(Self.allCases, Self.stringValues) where value == self { return [Self.name: text] }
        return [:]
    }

    /// The case whose text stands under the characteristic's name, in upper or lower case.
    public init?(stringValue: [String: String]) {
        guard let wanted = stringValue[Self.name]?.lowercased() else { return nil }
        for (value, text) in zip(Self.allCases, Self.stringValues) where text.lowercased() == wanted {
            self = value
            return
        }
        return nil
    }
}

extension StringDeserializable where Self: OptionSet & CharacteristicConfigurable, RawValue: FixedWidthInteger {
    /// The names of the set bits under the characteristic's name, with commas between them; `"none"` for no bit.
    ///
    /// The lowest bit has the first of ``stringValues``; a bit that has none is called `"bit 12"`.
    public var stringValue: [String: String] {
        let names = (0..<RawValue.bitWidth).filter { rawValue & (1 << $0) != 0 }.map { Self.name(ofBit: $0) }
        return [Self.name: names.isEmpty ? "none" : names.joined(separator: ", ")]
    }

    /// The set of the bits whose names stand under the characteristic's name, with commas between them.
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
