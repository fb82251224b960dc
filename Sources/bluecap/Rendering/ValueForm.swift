import ArgumentParser
import BlueCapKit
import Foundation

/// The bytes of an attribute, with the fields that its profile decodes.
struct AttributeValue: Equatable, Sendable {
    struct Field: Equatable, Sendable {
        var name: String
        var text: String
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

    /// The members of a line that contains the value: its bytes, and the fields of its profile.
    var members: JSON.Members {
        let object = JSON(fields.map { ($0.name, JSON($0.text)) })
        return [("value", JSON(data)), ("fields", fields.isEmpty ? .null : object)]
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

    // MARK: Printing

    /// Returns the value on one line that is safe to print; `nil` if the value does not have this form.
    func text(of value: AttributeValue) -> String? {
        switch self {
        case .hex: value.data.hexStringValue()
        case .text: String(paddedText: value.data).map(DisplayText.safe)
        case .profile: Self.parts(of: value)
        case .auto: Self.parts(of: value) ?? Self.quoted(value.data) ?? value.data.hexStringValue()
        }
    }

    /// As ``text(of:)``; a value that does not have this form is printed in hexadecimal digits, never left out.
    func line(of value: AttributeValue) -> String { text(of: value) ?? value.data.hexStringValue() }

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
        return self == .profile
            ? ToolFailure("No profile decodes the value of \(name): it is \(digits) in hexadecimal digits.")
            : ToolFailure("The value of \(name) is not text: it is \(digits) in hexadecimal digits.")
    }

    // MARK: Reading

    /// Returns the bytes that a text on the command line stands for.
    ///
    /// - Throws: ``ToolFailure`` with what the form takes.
    func data(of text: String, profile: CharacteristicProfile?) throws -> Data {
        // Other programs take it for their standard input. Written as text, it would look like a success.
        guard text != "-" else {
            throw ToolFailure("The value is not read from standard input: write it as an argument; a hyphen is 2d.")
        }
        switch self {
        case .text:
            return Data(text.utf8)
        case .auto, .hex:
            guard let data = Self.bytes(text) else {
                throw ToolFailure(
                    "\"\(text)\" is not a hexadecimal value, such as 01a0 or \"01 A0\":",
                    "use --as text or --as profile to write another form.")
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
