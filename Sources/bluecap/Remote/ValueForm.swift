import ArgumentParser
import BlueCapKit
import Foundation

/// How values are put into words, and read from them.
enum ValueForm: String, CaseIterable, ExpressibleByArgument, Sendable {
    /// By profile where one understands the value, in quotes where it reads as text, else in hexadecimal digits.
    case auto
    /// By the parts of its profile.
    case profile
    /// Pairs of digits.
    case hex
    /// UTF-8.
    case text

    // MARK: Printing

    /// The value on one line that is safe to print. `nil` where this form does not fit it.
    func text(of value: AttributeValue) -> String? {
        switch self {
        case .hex: Self.hexadecimal(value.data)
        case .text: Self.readable(value.data).map(DisplayText.safe)
        case .profile: Self.parts(of: value)
        case .auto: Self.parts(of: value) ?? Self.quoted(value.data) ?? Self.hexadecimal(value.data)
        }
    }

    /// "100 %", or "flags: none, rate: 72".
    private static func parts(of value: AttributeValue) -> String? {
        guard !value.fields.isEmpty else { return nil }
        if value.isWhole { return DisplayText.safe(value.fields[0].text) }
        return value.fields.map { DisplayText.safe("\($0.name): \($0.text)") }.joined(separator: ", ")
    }

    /// Bytes that look like a word may be a number; four letters in a row are hardly ever one.
    private static let shortestWord = 4

    private static func quoted(_ data: Data) -> String? {
        guard let text = readable(data), text.unicodeScalars.count >= shortestWord, DisplayText.safe(text) == text
        else {
            return nil
        }
        return "\"\(text)\""
    }

    /// UTF-8, without the zeros that fill up a field of fixed length.
    private static func readable(_ data: Data) -> String? {
        let end = data.lastIndex { $0 != 0 }.map { $0 + 1 } ?? data.startIndex
        return String(validating: data[..<end], as: UTF8.self)
    }

    private static let digits = Array("0123456789abcdef".utf8)

    static func hexadecimal(_ data: Data) -> String {
        String(decoding: data.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Why a value cannot be printed in this form.
    func misfit(of characteristic: AttributeTree.Characteristic, _ digits: String) -> ToolFailure {
        let what = characteristic.name ?? characteristic.uuid.uuidString
        return self == .profile
            ? ToolFailure("No profile understands the value of \(what): it is \(digits) in hexadecimal digits.")
            : ToolFailure("The value of \(what) is no text: it is \(digits) in hexadecimal digits.")
    }

    // MARK: Reading

    /// The bytes that a text on the command line stands for.
    ///
    /// - Throws: ``ToolFailure`` with what the form takes.
    func data(of text: String, profile: CharacteristicProfile?) throws -> Data {
        switch self {
        case .text:
            return Data(text.utf8)
        case .auto, .hex:
            guard let data = Self.bytes(text) else {
                throw ToolFailure(
                    "\"\(text)\" is no hexadecimal value, such as 01a0 or \"01 A0\":",
                    "say --as text or --as profile to write it as something else.")
            }
            return data
        case .profile:
            guard let profile, profile.understandsValues else {
                throw ToolFailure("No profile understands this characteristic's values: write hexadecimal digits.")
            }
            let parts = Self.parts(text, of: profile)
            guard let data = profile.data(fromString: parts) else {
                throw ToolFailure("\"\(text)\" is no value of \(profile.name).", Self.help(for: profile))
            }
            return data
        }
    }

    /// Digits in pairs; what people put between pairs, and before them, is passed over.
    private static func bytes(_ text: String) -> Data? {
        var text = text[...]
        if text.lowercased().hasPrefix("0x") { text = text.dropFirst(2) }
        var bytes: [UInt8] = []
        while true {
            text = text.drop { " :-,\t".contains($0) }
            guard !text.isEmpty else { return Data(bytes) }
            let pair = text.prefix(2)
            // A plain conversion would take a sign for a digit.
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
        let parts = pairs.map { ($0[0].trimmingSpaces, $0[1].trimmingSpaces) }
        return Dictionary(parts) { $1 }
    }

    private static func help(for profile: CharacteristicProfile) -> String {
        if !profile.stringValues.isEmpty {
            return "It takes one of: " + profile.stringValues.joined(separator: ", ") + "."
        }
        // The parts' names are those of a value; where there is no first one to show, the form is all that can be said.
        if let example = profile.initialValue.flatMap(profile.stringValue), !example.isEmpty {
            let parts = example.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
            return example.keys.first == profile.name && example.count == 1
                ? "A value of it is \(example.values.first ?? "")."
                : "A value of it is \"\(parts.joined(separator: ","))\"."
        }
        return "Parts are written as name=text,name=text, with the names that `bluecap read` shows."
    }
}

extension Substring {
    fileprivate var trimmingSpaces: String { trimmingCharacters(in: .whitespaces) }
}
