package import Foundation

/// Reads JSON files that are written by hand: the peripherals of a simulator, and those of `bluecap serve`.
///
/// An error in such a file is a sentence that begins with the line, the column and the member.
package enum DescriptionFile {
    /// The error in a file, without the full stop: `line 2, column 9: link.mtu: 9 is not a whole number from 23 to 517`.
    package struct Failure: Error, Hashable, CustomStringConvertible {
        package let description: String
    }

    package static func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws(Failure) -> Value {
        do {
            return try JSONDecoder().decode(type, from: data)
        } catch let error as DecodingError {
            throw Failure(description: sentence(for: error, data))
        } catch {
            throw Failure(description: "line 1, column 1: the file cannot be read: \(error.localizedDescription)")
        }
    }

    private static func sentence(for error: DecodingError, _ data: Data) -> String {
        let (context, problem): (DecodingError.Context, String) =
            switch error {
            case .keyNotFound(let key, let context): (context, " lacks \"\(key.stringValue)\"")
            case .typeMismatch(let type, let context): (context, ": the value is not \(noun(for: type))")
            case .valueNotFound(let type, let context): (context, ": null is not \(noun(for: type))")
            case .dataCorrupted(let context): (context, ": \(context.debugDescription)")
            @unknown default: (.init(codingPath: [], debugDescription: ""), " cannot be read")
            }
        var search = JSONPlaceSearch(data)
        // Without a path it is the decoder's own error, or that of the whole file.
        let isValid = search.find(context.codingPath) || !context.codingPath.isEmpty
        return "\(search.place): " + (isValid ? place(context.codingPath) + problem : "the file is not valid JSON")
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

/// Finds the place of a member in a JSON text, or of what is not JSON in it (RFC 8259).
struct JSONPlaceSearch {
    private let text: String
    private let tokens: [Substring]
    private var (next, found) = (0, 0)

    init(_ data: Data) {
        text = String(data: data, encoding: .utf8) ?? ""
        tokens = text.matches(of: /"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,]+/).map(\.output)
    }

    /// "line 12, column 8": what was found begins there. A column is a character.
    var place: String {
        let before = text[..<(found < tokens.count ? tokens[found].startIndex : text.endIndex)]
        let start = before.lastIndex(where: \.isNewline).map { before.index(after: $0) } ?? before.startIndex
        return "line \(before.count(where: \.isNewline) + 1), column \(before[start...].count + 1)"
    }

    /// Finds the member at the path; without a path, what is not JSON. Returns whether the text is JSON.
    mutating func find(_ path: [any CodingKey]) -> Bool {
        let isValid = skipValue(path[...], depth: 0) && next == tokens.count
        if !isValid, path.isEmpty { found = next }
        return isValid
    }

    private mutating func skip(if condition: (Substring) -> Bool) -> Bool {
        guard next < tokens.count, condition(tokens[next]) else { return false }
        next += 1
        return true
    }

    /// The `path` leads from this value to the member; it is `nil` if the member is elsewhere.
    private mutating func skipValue(_ path: ArraySlice<any CodingKey>?, depth: Int) -> Bool {
        guard depth < 512, let end = skip(if: { $0 == "{" }) ? "}" : skip(if: { $0 == "[" }) ? "]" : nil else {
            return skip { $0.hasSuffix("\"") || ["true", "false", "null"].contains($0) || Double($0) != nil }
        }
        var index = 0
        while !skip(if: { $0 == end }) {
            // Foundation's decoder takes a comma before the end.
            guard index == 0 || skip(if: { $0 == "," }), next < tokens.count else { return false }
            if tokens[next] == end { continue }
            let key = path?.first
            let isOnPath =
                end == "]" ? key?.intValue == index : key.map { tokens[next] == "\"\($0.stringValue)\"" } == true
            if isOnPath { found = next }
            let isMember = end == "]" || skip { $0.hasSuffix("\"") } && skip { $0 == ":" }
            guard isMember, skipValue(isOnPath ? path?.dropFirst() : nil, depth: depth + 1) else { return false }
            index += 1
        }
        return true
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
            throw DecodingError.dataCorrupted(
                .init(
                    codingPath: codingPath + [FileKey(stringValue: unknown)],
                    debugDescription: "unknown key; there are: \(list)"))
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
