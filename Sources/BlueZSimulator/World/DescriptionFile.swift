package import Foundation

/// Reads JSON files that are written by hand: the peripherals of a simulator, and those of `bluecap serve`.
///
/// An error in such a file is a sentence that begins with the place in the file.
package enum DescriptionFile {
    /// The error in a file, without the full stop: `peripherals[2].link.mtu: 9 is not a whole number from 23 to 517`.
    package struct Failure: Error, Hashable, CustomStringConvertible {
        package let description: String
    }

    package static func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws(Failure) -> Value {
        do {
            return try JSONDecoder().decode(type, from: data)
        } catch let error as DecodingError {
            throw Failure(description: sentence(for: error, data))
        } catch {
            throw Failure(description: "the file cannot be read: \(error.localizedDescription)")
        }
    }

    private static func sentence(for error: DecodingError, _ data: Data) -> String {
        switch error {
        case .keyNotFound(let key, let context):
            return "\(place(context.codingPath)) lacks \"\(key.stringValue)\""
        case .typeMismatch(let type, let context):
            return "\(place(context.codingPath)): the value is not \(noun(for: type))"
        case .valueNotFound(let type, let context):
            return "\(place(context.codingPath)): null is not \(noun(for: type))"
        case .dataCorrupted(let context):
            // Without a path it is the decoder's own error; those of this file have one, but for an unknown key of the whole file.
            guard context.codingPath.isEmpty, (try? JSONSerialization.jsonObject(with: data)) == nil else {
                return "\(place(context.codingPath)): \(context.debugDescription)"
            }
            return "the file is not valid JSON"
        @unknown default:
            return "the file cannot be read"
        }
    }

    private static func noun(for type: any Any.Type) -> String {
        switch type {
        case is Bool.Type: "true or false"
        case is String.Type: "a text"
        case is any BinaryInteger.Type: "a whole number"
        case is any BinaryFloatingPoint.Type: "a number"
        case is [Any].Type: "a list"
        default: "an object"
        }
    }

    /// `peripherals[2].advertisement`.
    private static func place(_ path: [any CodingKey]) -> String {
        guard !path.isEmpty else { return "the file" }
        return path.reduce(into: "") { text, key in
            text += key.intValue.map { "[\($0)]" } ?? (text.isEmpty ? "" : ".") + key.stringValue
        }
    }
}

/// A key or an index of a file.
package struct FileKey: CodingKey {
    package let stringValue: String
    package let intValue: Int?

    package init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    package init(intValue: Int) {
        stringValue = String(intValue)
        self.intValue = intValue
    }
}

extension Decoder {
    /// Returns the keyed container, if the file has no unknown key: a mistyped key would otherwise leave
    /// the default value without an error.
    package func strictContainer<Key: CodingKey & CaseIterable>(
        keyedBy type: Key.Type
    ) throws -> KeyedDecodingContainer<Key> {
        let present = try container(keyedBy: FileKey.self).allKeys.map(\.stringValue)
        if let unknown = present.sorted().first(where: { Key(stringValue: $0) == nil }) {
            let list = Key.allCases.map(\.stringValue).joined(separator: ", ")
            throw failure("unknown key \"\(unknown)\"; there are: \(list)")
        }
        return try container(keyedBy: type)
    }

    /// Returns a case of an enumeration, by its name in files.
    func choice<Choice: CaseIterable>(of type: Choice.Type, by name: (Choice) -> String) throws -> Choice {
        let text = try String(from: self)
        if let choice = Choice.allCases.first(where: { name($0) == text }) { return choice }
        throw failure("\"\(text)\" is none of \(Choice.allCases.map(name).joined(separator: ", "))")
    }

    /// Returns the error of the value at this place of the file.
    func failure(_ description: String) -> DecodingError {
        .dataCorrupted(.init(codingPath: codingPath, debugDescription: description))
    }
}

extension KeyedDecodingContainer {
    /// Returns the error of the value of a key. `path` leads further into that value.
    package func failure(_ key: Key, _ description: String, at path: [any CodingKey] = []) -> DecodingError {
        .dataCorrupted(.init(codingPath: codingPath + [key] + path, debugDescription: description))
    }

    /// Returns a number within a range; nil if the key is not there or its value is null.
    package func number<Value: Decodable & Comparable>(
        _ range: ClosedRange<Value>, or special: Value? = nil, forKey key: Key
    ) throws -> Value? {
        guard try contains(key) && !decodeNil(forKey: key) else { return nil }
        let value: Value
        do {
            value = try decode(Value.self, forKey: key)
        } catch {
            // The decoder's error for a number that the type cannot hold has no path.
            throw failure(key, NumberWording.refusal(literal(key), range, special))
        }
        guard range.contains(value) || value == special else {
            throw failure(key, NumberWording.refusal(NumberWording.text(value), range, special))
        }
        return value
    }

    /// Returns a number within a range, which must be there.
    func required<Value: Decodable & Comparable>(
        _ range: ClosedRange<Value>, or special: Value? = nil, forKey key: Key
    ) throws -> Value {
        guard let value = try number(range, or: special, forKey: key) else {
            if contains(key) { throw failure(key, NumberWording.refusal("null", range, special)) }
            throw DecodingError.keyNotFound(key, .init(codingPath: codingPath, debugDescription: ""))
        }
        return value
    }

    /// Returns the value that is not a number, as far as it can be quoted.
    private func literal(_ key: Key) -> String {
        if let number = try? decode(Double.self, forKey: key) { return NumberWording.text(number) }
        if let text = try? decode(String.self, forKey: key) { return "\"\(text)\"" }
        if let truth = try? decode(Bool.self, forKey: key) { return "\(truth)" }
        return "the value"
    }

    /// Returns a valid UUID.
    func uuid(forKey key: Key) throws -> String { try uuid(try decode(String.self, forKey: key), key) }

    /// Returns a list of valid UUIDs; empty if the key is not there.
    func uuids(forKey key: Key) throws -> [String] {
        let texts = try decodeIfPresent([String].self, forKey: key) ?? []
        return try texts.enumerated().map { try uuid($1, key, [FileKey(intValue: $0)]) }
    }

    func uuid(_ text: String, _ key: Key, _ path: [any CodingKey] = []) throws -> String {
        guard ServiceUUID.long(text) != nil else {
            throw failure(key, "\"\(text)\" is no UUID; write 180d or all 128 bits", at: path)
        }
        return text
    }

    func bytes(
        _ digits: String, limit: ClosedRange<Int>? = nil, _ key: Key, _ path: [any CodingKey] = []
    ) throws -> [UInt8] {
        guard let bytes = Hexadecimal.bytes(digits) else {
            throw failure(key, "\"\(digits)\" is not hexadecimal bytes", at: path)
        }
        return try limited(bytes, limit, key, path)
    }

    /// Returns a text of a limited length in UTF-8; nil if the key is not there.
    func text(_ limit: ClosedRange<Int>, forKey key: Key) throws -> String? {
        guard let text = try decodeIfPresent(String.self, forKey: key) else { return nil }
        _ = try limited(Array(text.utf8), limit, key)
        return text
    }

    func limited(
        _ bytes: [UInt8], _ limit: ClosedRange<Int>?, _ key: Key, _ path: [any CodingKey] = []
    ) throws -> [UInt8] {
        guard let limit, !limit.contains(bytes.count) else { return bytes }
        throw failure(key, "\(bytes.count) bytes are too many; there may be \(limit.upperBound)", at: path)
    }
}

package enum NumberWording {
    /// "9 is not a whole number from 23 to 517".
    package static func refusal<Value: Comparable>(
        _ value: String, _ range: ClosedRange<Value>, _ special: Value? = nil
    ) -> String {
        let noun = Value.self is any BinaryInteger.Type ? "whole number" : "number"
        return "\(value) is not a \(noun) from \(text(range.lowerBound)) to \(text(range.upperBound))"
            + (special.map { " or \(text($0))" } ?? "")
    }

    /// "1000000000" rather than "1000000000.0".
    package static func text<Value>(_ value: Value) -> String {
        guard let number = value as? Double, let whole = Int(exactly: number) else { return "\(value)" }
        return "\(whole)"
    }
}
