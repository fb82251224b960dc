public import BlueCapKit
public import Foundation

/// A text that appears in no description: a password, or a token.
public struct Secret: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    private let text: String

    /// The largest number of bytes of a secret.
    public static let sizeLimit = 4_096

    /// Creates a secret; `nil` if the text is empty, has more than ``sizeLimit`` bytes, or contains a control character.
    public init?(_ text: String) {
        guard (1...Self.sizeLimit).contains(text.utf8.count),
            text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
        else { return nil }
        self.text = text
    }

    /// Calls a function with the text, which must not keep it where it can be logged.
    public func withText<Result>(_ body: (String) throws -> Result) rethrows -> Result { try body(text) }

    /// Whether a text is the secret. The time does not depend on how many bytes agree.
    public func matches(_ other: String) -> Bool {
        let (own, given) = (Array(text.utf8), Array(other.utf8))
        var difference = UInt8(own.count == given.count ? 0 : 1)
        for index in own.indices { difference |= own[index] ^ (index < given.count ? given[index] : 0) }
        return difference == 0
    }

    /// Always `‹hidden›`.
    public var description: String { "‹hidden›" }
    /// Always `‹hidden›`.
    public var debugDescription: String { description }
    /// A mirror without children, so that `dump` prints nothing of the text.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// The place of a secret: a file, or a credential of systemd (`LoadCredential=` in the unit).
public enum SecretSource: Hashable, Sendable, CustomStringConvertible {
    /// The absolute path of a file.
    case file(String)
    /// The name of a file in the folder `$CREDENTIALS_DIRECTORY`.
    case credential(String)

    /// Reads `/path/of/a/file` or `credential:NAME`; `nil` for another text.
    public init?(_ text: String) {
        guard text.utf8.count < 4_096, !text.contains("\0") else { return nil }
        if text.hasPrefix("/") {
            self = .file(text)
        } else if text.hasPrefix("credential:") {
            let name = String(text.dropFirst("credential:".count))
            guard !name.isEmpty, !name.contains("/"), name != ".", name != ".." else { return nil }
            self = .credential(name)
        } else {
            return nil
        }
    }

    /// The text of the configuration file.
    public var description: String {
        switch self {
        case .file(let path): path
        case .credential(let name): "credential:\(name)"
        }
    }

    /// Reads the secret. One line feed at its end is not part of it.
    ///
    /// - Parameter environment: The variables of the process.
    /// - Throws: ``SecretError``, which has the place and no part of the text.
    public func read(environment: [String: String] = ProcessInfo.processInfo.environment) throws(SecretError) -> Secret
    {
        var text = try readText(limit: Secret.sizeLimit, environment)
        if text.hasSuffix("\r\n") { text.removeLast() } else if text.hasSuffix("\n") { text.removeLast() }
        guard let secret = Secret(text) else {
            throw SecretError(
                source: self,
                reason: "the file must have one line of 1 to \(Secret.sizeLimit) bytes without control characters.")
        }
        return secret
    }

    /// Reads the keys of sensors: in each line an address and a key of 32 hexadecimal digits. What follows a `#` in a line is a comment.
    ///
    /// - Parameter environment: The variables of the process.
    /// - Throws: ``SecretError``, which has the place, the number of the line, and no part of a key.
    public func readBindKeys(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(SecretError) -> [BluetoothAddress: Data] {
        let text = try readText(limit: 65_536, environment)
        guard text.utf8.count <= 65_536 else { throw SecretError(source: self, reason: "the file exceeds 64 KiB.") }
        var keys: [BluetoothAddress: Data] = [:]
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let words = line.prefix { $0 != "#" }.split(whereSeparator: \.isWhitespace).map(String.init)
            guard let first = words.first else { continue }
            func fault(_ reason: String) -> SecretError {
                SecretError(source: self, reason: "line \(index + 1): \(reason)")
            }
            guard words.count == 2, let address = DeviceName(first).flatMap({ BluetoothAddress($0.address) }) else {
                throw fault("an address such as C0:FF:EE:00:18:0D, a space and a key of 32 digits are required.")
            }
            guard let key = PayloadBytes.data(words[1]), key.count == 16 else {
                throw fault("the key has \(words[1].count) characters; 32 hexadecimal digits are required.")
            }
            guard keys.updateValue(key, forKey: address) == nil else { throw fault("the address occurs twice.") }
        }
        return keys
    }

    /// Returns the text of the file, or its beginning with more bytes than the limit and a line feed.
    private func readText(limit: Int, _ environment: [String: String]) throws(SecretError) -> String {
        let path: String
        switch self {
        case .file(let file): path = file
        case .credential(let name):
            guard let folder = environment["CREDENTIALS_DIRECTORY"], folder.hasPrefix("/") else {
                throw SecretError(
                    source: self,
                    reason:
                        "$CREDENTIALS_DIRECTORY is not set. Start the gateway by systemd with LoadCredential=\(name).")
            }
            path = "\(folder)/\(name)"
        }
        let data: Data
        do {
            let file = try FileHandle(forReadingFrom: URL(filePath: path))
            defer { try? file.close() }
            data = try file.read(upToCount: limit + 2) ?? Data()
        } catch {
            throw SecretError(
                source: self, reason: "the file cannot be read. It must exist, and the gateway's user must own it.")
        }
        guard let text = String(data: data, encoding: .utf8) else {
            throw SecretError(source: self, reason: "the file is not in UTF-8.")
        }
        return text
    }
}

/// Why a secret could not be read.
public struct SecretError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The place.
    public let source: SecretSource
    /// A sentence without any part of the secret.
    public let reason: String

    /// The place and the reason.
    public var description: String { "\(source): \(reason)" }
}
