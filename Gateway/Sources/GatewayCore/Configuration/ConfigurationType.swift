import BlueCapKit
import Foundation
import Yams

/// How a value of the configuration is written: its name and range for documents and errors, and how it is read.
struct ConfigurationType<Value> {
    /// The name, such as `duration`.
    let name: String
    /// What is allowed, such as "a duration from 1s to 1h".
    let allowed: String
    /// Whether errors must not show what was found, since it may be a secret in the wrong place.
    var isSensitive = false
    /// Writes a value as it is written in a file.
    let write: (Value) -> String
    /// Reads a node, or adds why it cannot be read.
    let read: (Node, inout [Refusal]) -> Value?

    /// Why a node is not allowed.
    struct Refusal {
        var node: Node
        /// A sentence instead of the usual one, which has what was found and what is allowed.
        var reason: String?
    }

    /// Creates a type whose values are written in one scalar.
    init(
        _ name: String, allowed: String, isSensitive: Bool = false, write: @escaping (Value) -> String,
        parse: @escaping (String) -> Value?
    ) {
        (self.name, self.allowed, self.isSensitive, self.write) = (name, allowed, isSensitive, write)
        read = { node, refusals in
            if let text = node.scalar?.string, let value = parse(text) { return value }
            refusals.append(Refusal(node: node))
            return nil
        }
    }

    private init(
        name: String, allowed: String, isSensitive: Bool, write: @escaping (Value) -> String,
        read: @escaping (Node, inout [Refusal]) -> Value?
    ) {
        (self.name, self.allowed, self.isSensitive) = (name, allowed, isSensitive)
        (self.write, self.read) = (write, read)
    }

    /// A sequence of values of a type.
    static func list<Element>(of type: ConfigurationType<Element>, limit: Int = 1_000) -> ConfigurationType
    where Value == [Element] {
        ConfigurationType(
            name: "list of \(type.name)", allowed: "a list of at most \(limit) elements, each \(type.allowed)",
            isSensitive: type.isSensitive,
            write: { $0.isEmpty ? "empty" : $0.map(type.write).joined(separator: ", ") },
            read: { node, refusals in
                guard let elements = node.sequence, elements.count <= limit else {
                    refusals.append(Refusal(node: node))
                    return nil
                }
                var inner: [ConfigurationType<Element>.Refusal] = []
                let values = elements.compactMap { type.read($0, &inner) }
                for refusal in inner {
                    let shown = ConfigurationText.found(refusal.node, isSensitive: type.isSensitive)
                    let reason = refusal.reason ?? "found \(shown); allowed: \(type.allowed)."
                    refusals.append(Refusal(node: refusal.node, reason: reason))
                }
                return inner.isEmpty ? values : nil
            })
    }
}

/// Texts of errors about nodes.
enum ConfigurationText {
    /// What a node is, with at most 60 characters of a scalar, without control characters.
    static func found(_ node: Node, isSensitive: Bool) -> String {
        if node.mapping != nil { return "a mapping" }
        if node.sequence != nil { return "a list" }
        guard let scalar = node.scalar else { return "an alias" }
        if isNull(node) { return "nothing" }
        return isSensitive ? "a text that is not shown, since it may be a secret" : EditedText.quoted(scalar.string)
    }

    /// Whether a node is YAML's null.
    static func isNull(_ node: Node) -> Bool {
        guard let scalar = node.scalar, scalar.style == .plain || scalar.style == .any else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(scalar.string)
    }
}

// MARK: - The types

extension ConfigurationType<Bool> {
    static var flag: ConfigurationType {
        ConfigurationType(
            "true or false", allowed: "true or false", write: { $0 ? "true" : "false" },
            parse: { ["true": true, "false": false][$0] })
    }
}

extension ConfigurationType<Int> {
    /// A whole number in a range, in some unit that may be written after it.
    static func number(_ range: ClosedRange<Int>, unit: String = "") -> ConfigurationType {
        let suffix = unit.isEmpty ? "" : " \(unit)"
        return ConfigurationType(
            unit.isEmpty ? "whole number" : "whole number of \(unit)",
            allowed: "a whole number from \(range.lowerBound) to \(range.upperBound)\(suffix)",
            write: { "\($0)\(suffix)" },
            parse: { text in
                let digits = unit.isEmpty || !text.hasSuffix(unit) ? text : String(text.dropLast(unit.count))
                return Int(digits.trimmingCharacters(in: .whitespaces)).flatMap { range.contains($0) ? $0 : nil }
            })
    }

    /// A number of bytes in a range.
    static func size(_ range: ClosedRange<Int>) -> ConfigurationType {
        ConfigurationType(
            "size",
            allowed: "a size from \(write(range.lowerBound)) to \(write(range.upperBound)), such as 512 KiB or 100 MB",
            write: write, parse: { text in parse(text).flatMap { range.contains($0) ? $0 : nil } })
    }

    private static let units = [
        ("GiB", 1 << 30), ("GB", 1_000_000_000), ("MiB", 1 << 20), ("MB", 1_000_000), ("KiB", 1 << 10), ("kB", 1_000),
        ("KB", 1_000), ("B", 1),
    ]

    private static func write(_ bytes: Int) -> String {
        let unit = units.first { $0.0 != "KB" && bytes % $0.1 == 0 && bytes >= $0.1 } ?? ("B", 1)
        return "\(bytes / unit.1) \(unit.0)"
    }

    private static func parse(_ text: String) -> Int? {
        guard let unit = units.first(where: { text.hasSuffix($0.0) }),
            let number = Int(text.dropLast(unit.0.count).trimmingCharacters(in: .whitespaces)), number >= 0
        else { return nil }
        let (bytes, overflows) = number.multipliedReportingOverflow(by: unit.1)
        return overflows ? nil : bytes
    }
}

extension ConfigurationType<Duration> {
    /// A time in a range.
    static func duration(_ range: ClosedRange<Duration>) -> ConfigurationType {
        ConfigurationType(
            "duration",
            allowed:
                "a duration from \(write(range.lowerBound)) to \(write(range.upperBound)), such as 500ms, 10s or 7d",
            write: write, parse: { text in parse(text).flatMap { range.contains($0) ? $0 : nil } })
    }

    private static let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)]

    private static func write(_ duration: Duration) -> String {
        let milliseconds = Int(duration / .milliseconds(1))
        let unit = units.last { milliseconds % $0.1 == 0 && milliseconds >= $0.1 } ?? ("s", 1_000)
        return "\(milliseconds / unit.1)\(unit.0)"
    }

    private static func parse(_ text: String) -> Duration? {
        let digits = text.prefix { $0.isASCII && $0.isNumber || $0 == "." }
        let unit = text.dropFirst(digits.count).trimmingCharacters(in: .whitespaces)
        guard let factor = units.first(where: { $0.0 == unit })?.1, let number = Double(digits), number < 1e9
        else { return nil }
        return .milliseconds(Int((number * Double(factor)).rounded()))
    }
}

extension ConfigurationType<String> {
    /// A text of 1 to so many bytes, in which the characters that a function refuses do not occur.
    static func text(
        _ name: String = "text", allowed: String? = nil, limit: Int = 256,
        where isAllowed: @escaping (String) -> Bool = { _ in true }
    ) -> ConfigurationType {
        ConfigurationType(
            name, allowed: allowed ?? "a text of 1 to \(limit) bytes", write: { $0 },
            parse: { text in
                let isClean = text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }
                return (1...limit).contains(text.utf8.count) && isClean && isAllowed(text) ? text : nil
            })
    }

    /// The path of a file or folder.
    static var path: ConfigurationType { text("path", allowed: "an absolute path", limit: 4_095) { $0.hasPrefix("/") } }
}

extension ConfigurationType where Value: CaseIterable & RawRepresentable, Value.RawValue == String {
    /// One of some words.
    static var word: ConfigurationType {
        let words = Value.allCases.map(\.rawValue)
        return ConfigurationType(
            "word", allowed: "one of \(words.joined(separator: ", "))", write: \.rawValue,
            parse: { Value(rawValue: $0) })
    }
}

extension ConfigurationType<CBUUID> {
    static var uuid: ConfigurationType {
        ConfigurationType(
            "UUID", allowed: "a UUID of 4, 8 or 32 hexadecimal digits (8-4-4-4-12)", write: { Topics.text(of: $0) },
            parse: { CBUUID(validating: $0) })
    }
}

extension ConfigurationType<DeviceName> {
    static var device: ConfigurationType {
        ConfigurationType(
            "address", allowed: "an address such as C0:FF:EE:00:18:0D", write: \.address, parse: { DeviceName($0) })
    }
}

extension ConfigurationType<UInt16> {
    /// The identifier of a company, in decimal, or in hexadecimal after `0x`.
    static var company: ConfigurationType {
        ConfigurationType(
            "company", allowed: "a company identifier from 0 to 65535, or from 0x0000 to 0xFFFF",
            write: { "0x" + String($0, radix: 16, uppercase: true) },
            parse: { $0.hasPrefix("0x") ? UInt16($0.dropFirst(2), radix: 16) : UInt16($0) })
    }
}

extension ConfigurationType<SecretSource> {
    static var secret: ConfigurationType {
        ConfigurationType(
            "secret file", allowed: "the absolute path of a file, or credential:NAME for a systemd credential",
            isSensitive: true, write: \.description, parse: { SecretSource($0) })
    }
}

extension ConfigurationType<BrokerAddress> {
    static var broker: ConfigurationType {
        ConfigurationType(
            "broker address", allowed: "mqtt://HOST:PORT or mqtts://HOST:PORT, without user and password",
            isSensitive: true, write: \.description, parse: address)
    }

    /// Also with a slash at its end. An address with the name of an interface is not allowed.
    static func address(_ text: String) -> BrokerAddress? {
        guard text.utf8.count <= 300, !text.contains("%") else { return nil }
        return try? BrokerAddress(text.hasSuffix("/") ? String(text.dropLast()) : text)
    }
}

extension ConfigurationType<NamePattern> {
    static var name: ConfigurationType {
        ConfigurationType(
            "name", allowed: "a name, or the beginning of a name and * at its end", write: \.description,
            parse: { NamePattern($0) })
    }
}

extension ConfigurationType<PeripheralPattern> {
    static var peripheral: ConfigurationType {
        ConfigurationType(
            "peripheral", allowed: "an address, a name, the beginning of a name and * at its end, or * for all",
            write: \.description, parse: { PeripheralPattern($0) })
    }
}

extension ConfigurationType<CharacteristicPattern> {
    static var characteristic: ConfigurationType {
        ConfigurationType(
            "characteristic", allowed: "SERVICE/CHARACTERISTIC, SERVICE/* or *, with UUIDs", write: \.description,
            parse: { CharacteristicPattern($0) })
    }
}

extension ConfigurationType<ValueFormat> {
    static var format: ConfigurationType {
        ConfigurationType(
            "format",
            allowed: "\(ValueFormat.Simple.allCases.map(\.rawValue).joined(separator: ", ")), or the name of a profile",
            write: \.description, parse: { ValueFormat($0) })
    }
}
