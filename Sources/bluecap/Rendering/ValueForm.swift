import ArgumentParser
import BlueCapKit
import Foundation

/// The bytes of an attribute, with the fields that its profile decodes.
struct AttributeValue: Equatable, Sendable {
    struct Field: Equatable, Sendable {
        var name: String
        var text: String

        var quantity: Quantity? { Quantity(text) }
        /// The number that the field begins with, else its text.
        var number: String { quantity.map { JSON(number: $0.number).text } ?? text }
    }

    var data: Data
    /// In ascending order of their names; empty if no profile decodes the bytes.
    var fields: [Field] = []
    /// Whether the profile has one field, which is named as the characteristic is.
    var isWhole = false

    init(_ data: Data) { self.data = data }

    /// - Parameter profile: The characteristic's profile. One that contains nothing but a name decodes nothing.
    init(_ data: Data, profile: CharacteristicProfile?) {
        self.data = data
        guard let profile, profile.understandsValues, let texts = profile.stringValue(data) else { return }
        fields = texts.sorted { $0.key < $1.key }.map { Field(name: $0.key, text: $0.value) }
        isWhole = texts.count == 1 && texts[profile.name] != nil
    }

    /// The value for people, on one line.
    var text: String { data.isEmpty ? "(empty)" : ValueForm.auto.line(of: self) }

    /// The members of a line without a value.
    static let noMembers: JSON.Members = [("value", .null), ("fields", .null), ("quantities", .null)]

    /// The members of a line that contains the value: its bytes, the fields of its profile, and those that are numbers.
    var members: JSON.Members {
        guard !fields.isEmpty else { return [("value", JSON(data)), ("fields", .null), ("quantities", .null)] }
        let quantities = fields.compactMap { field in field.quantity.map { (field.name, $0.json) } }
        let texts = JSON(fields.map { ($0.name, JSON($0.text)) })
        return [("value", JSON(data)), ("fields", texts), ("quantities", JSON(quantities))]
    }
}

extension CharacteristicProfile {
    /// Whether the profile decodes more of a value than its bytes.
    var understandsValues: Bool { type(of: self) != CharacteristicProfile.self }
}

/// How values are printed, and how the command line spells them.
enum ValueForm: String, CaseIterable, ExpressibleByArgument, Sendable {
    /// By profile if one decodes the value, in quotes if it reads as text, else in hexadecimal digits.
    case auto
    /// By the fields of its profile.
    case profile
    /// Pairs of hexadecimal digits.
    case hex
    /// UTF-8.
    case text
    /// Base64 (RFC 4648, section 4).
    case base64
    /// Numbers of one size, as GATT has them: the least significant byte first (Core Specification 5.4, volume 3, part G, 2.4).
    case u8, i8, u16, i16, u24, i24, u32, i32, u64, i64, f32, f64
    /// The same with the most significant byte first.
    case u16be, i16be, u24be, i24be, u32be, i32be, u64be, i64be, f32be, f64be

    init?(argument: String) {
        self.init(rawValue: argument == "utf8" ? "text" : argument.replacing(/^([uif]\d+)le$/) { $0.1 })
    }

    private var number: NumberForm? { NumberForm(rawValue) }

    // MARK: Printing

    /// Returns the value on one line that is safe to print; `nil` if the value does not have this form.
    func text(of value: AttributeValue) -> String? {
        switch self {
        case .hex: value.data.hexStringValue()
        case .text: String(paddedText: value.data).map(DisplayText.safe)
        case .base64: value.data.base64EncodedString()
        case .profile: Self.parts(of: value)
        case .auto: Self.parts(of: value) ?? Self.quoted(value.data) ?? value.data.hexStringValue()
        default: number?.numbers(in: value.data)?.joined(separator: " ")
        }
    }

    /// As ``text(of:)``; a value that does not have this form is printed in hexadecimal digits, never left out.
    func line(of value: AttributeValue) -> String {
        text(of: value) ?? (number == nil ? "" : "0x") + value.data.hexStringValue()
    }

    /// Returns the members of a line of JSON. If a form was chosen, `as` is the value in this form, or `null`.
    func members(of value: AttributeValue) -> JSON.Members {
        guard self != .auto else { return value.members }
        let text = self == .text ? String(paddedText: value.data) : text(of: value)
        let numbers = number?.numbers(in: value.data)?.map(JSON.init(digits:))
        let chosen = numbers.map { $0.count == 1 ? $0[0] : JSON($0) } ?? JSON(text)
        return value.members + [("as", chosen)]
    }

    /// "100 %", or "flags: none, rate: 72".
    private static func parts(of value: AttributeValue) -> String? {
        guard !value.fields.isEmpty else { return nil }
        if value.isWhole { return DisplayText.safe(value.fields[0].text) }
        return value.fields.map { DisplayText.safe("\($0.name): \($0.text)") }.joined(separator: ", ")
    }

    /// Two or three bytes that look like a word may be a number; four letters in a row are hardly ever one.
    private static let shortestWord = 4

    private static func quoted(_ data: Data) -> String? {
        guard let text = String(paddedText: data), text.unicodeScalars.count >= shortestWord,
            DisplayText.safe(text) == text
        else {
            return nil
        }
        return "\"\(text)\""
    }

    /// The failure of a value that does not have this form.
    func misfit(_ value: AttributeValue, of name: String) -> ToolFailure {
        let digits = value.data.hexStringValue()
        let reason = "it is \(digits.isEmpty ? "empty" : digits + " in hexadecimal digits")."
        guard self != .profile else { return ToolFailure("No profile decodes the value of \(name):", reason) }
        let kind = number.map { "\($0.article) of \(Wording.count($0.size, "byte"))" } ?? "text"
        return ToolFailure("The value of \(name) is not \(kind):", reason)
    }

    // MARK: Reading

    /// Returns the bytes that a text on the command line stands for.
    ///
    /// - Throws: ``ToolFailure`` with what the form takes.
    func data(of text: String, profile: CharacteristicProfile?) throws -> Data {
        // It stands for standard input. Written as text, it would look like a success.
        guard text != "-" else {
            throw ToolFailure(
                "- is standard input, whose bytes `bluecap write` takes as they are, without --as; a hyphen is 2d."
            )
        }
        switch self {
        case .base64:
            if let data = Data(base64Encoded: text) { return data }
            throw ToolFailure("\"\(text)\" is not base64, such as AaA=.")
        case .text:
            return Data(text.utf8)
        case .auto, .hex:
            guard let data = Self.bytes(text) else {
                throw ToolFailure(
                    "\"\(text)\" is not a hexadecimal value, such as 01a0 or \"01 A0\":",
                    "--as has other forms, such as --as text, --as u8 and --as profile.")
            }
            return data
        case .profile:
            guard let profile, profile.understandsValues else {
                throw ToolFailure("No profile decodes this characteristic's values: write hexadecimal digits.")
            }
            guard let data = profile.data(fromString: Self.parts(text, of: profile)) else {
                throw ToolFailure("\"\(text)\" is not a value of \(profile.name).", Self.help(for: profile))
            }
            return data
        default:
            return try number?.data(of: text) ?? Data()
        }
    }

    /// Digits in pairs, with or without the usual separators and `0x` before them; `nil` for anything else. No bytes are an
    /// empty text, and not `0x` or a separator alone.
    static func bytes(_ text: String) -> Data? {
        guard !text.isEmpty else { return Data() }
        var text = text[...]
        if text.lowercased().hasPrefix("0x") { text = text.dropFirst(2) }
        var bytes: [UInt8] = []
        while true {
            text = text.drop { " :-,\t".contains($0) }
            guard !text.isEmpty else { return bytes.isEmpty ? nil : Data(bytes) }
            let pair = text.prefix(2)
            // A plain conversion would accept a sign as a digit.
            guard pair.utf8.count == 2, pair.allSatisfy(\.isHexDigit), let byte = UInt8(pair, radix: 16) else {
                return nil
            }
            bytes.append(byte)
            text = text.dropFirst(2)
        }
    }

    /// "On", or "x=1, y=2".
    private static func parts(_ text: String, of profile: CharacteristicProfile) -> [String: String] {
        let pairs = text.split(separator: ",").map { $0.split(separator: "=", maxSplits: 1) }
        guard pairs.allSatisfy({ $0.count == 2 }), !pairs.isEmpty else { return [profile.name: text] }
        let parts = pairs.map { pair in pair.map { $0.trimmingCharacters(in: .whitespaces) } }
        return Dictionary(parts.map { ($0[0], $0[1]) }) { $1 }
    }

    private static func help(for profile: CharacteristicProfile) -> String {
        if !profile.stringValues.isEmpty {
            return "It takes one of: " + profile.stringValues.joined(separator: ", ") + "."
        }
        // The fields' names are those of a value; without an initial value, only the form can be shown.
        if let example = profile.initialValue.map({ AttributeValue($0, profile: profile) }), !example.fields.isEmpty {
            let parts = example.fields.map { "\($0.name)=\($0.text)" }
            return "An example is \(example.isWhole ? example.fields[0].text : "\"\(parts.joined(separator: ","))\"")."
        }
        return "Write the fields as name=text,name=text, with the names that `bluecap read` prints."
    }
}
