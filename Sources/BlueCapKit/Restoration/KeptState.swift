import Foundation

/// The state that a manager with a restore identifier keeps on the disk, as a value. Each role has one such type.
protocol KeptState: Equatable, Sendable {
    /// The folder for states of this type.
    static var folder: String { get }

    /// Creates an empty state.
    init()
    var isEmpty: Bool { get }

    /// The first entry in each file of this type.
    static var format: String { get }
    /// The layout of the file that this version writes. A change that older versions would misread increases it.
    static var version: Int { get }

    /// The form of the state in the file.
    associatedtype Contents: Codable
    var contents: Contents { get }
    init(_ contents: Contents) throws
}

extension KeptState {
    /// Returns the state as a file's contents: JSON, so that people can read it too.
    func encoded(for identifier: String) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let head = KeptHead(format: Self.format, version: Self.version, identifier: identifier)
        return try encoder.encode(KeptFile(head: head, contents: contents))
    }

    /// - Throws: ``RestorationDamage`` for data that ``encoded(for:)`` did not write for this identifier.
    init(decoding data: Data, for identifier: String) throws(RestorationDamage) {
        let decoder = JSONDecoder()
        do {
            // Only the head is decoded first: the rest of a later version's file is unknown.
            try decoder.decode(KeptHead.self, from: data).check(Self.format, upTo: Self.version, identifier)
            self = try Self(decoder.decode(KeptFile<Contents>.self, from: data).contents)
        } catch let damage as RestorationDamage {
            throw damage
        } catch {
            throw .unreadable("\(error)")
        }
    }
}

/// Why a file or folder is not a state that this library can use.
enum RestorationDamage: Error, Equatable, CustomStringConvertible {
    /// Not JSON, or not in this library's form.
    case unreadable(String)
    /// The file of another program, or of another identifier.
    case foreign
    /// Written by a later version of this library, and readable only for that version.
    case newer(version: Int)
    /// Possibly written by another user.
    case distrusted(StateFolder.Distrust)

    /// The second half of a sentence that begins with a path.
    var description: String {
        switch self {
        case .unreadable(let text): "cannot be read (\(text))"
        case .foreign: "is another program's, or has the state of another identifier"
        case .newer(let version): "has the layout \(version), of a later version of this library"
        case .distrusted(let distrust): "\(distrust)"
        }
    }
}

/// Why nothing was restored, as both roles' errors express it.
enum RestorationFailure: Error, Hashable, Sendable {
    case restoreFailed
    /// Contains the file's path.
    case restoreIdentifierInUse(String)
}

/// The head of each file: its owner.
struct KeptHead: Codable {
    var format: String
    var version: Int
    var identifier: String

    func check(_ format: String, upTo version: Int, _ identifier: String) throws(RestorationDamage) {
        guard self.format == format, self.identifier == identifier else { throw .foreign }
        guard self.version <= version else { throw .newer(version: self.version) }
    }
}

/// A file: its head and its contents, in one JSON object.
private struct KeptFile<Contents: Codable>: Codable {
    let head: KeptHead
    let contents: Contents

    init(head: KeptHead, contents: Contents) { (self.head, self.contents) = (head, contents) }

    init(from decoder: any Decoder) throws {
        head = try KeptHead(from: decoder)
        contents = try Contents(from: decoder)
    }

    func encode(to encoder: any Encoder) throws {
        try head.encode(to: encoder)
        try contents.encode(to: encoder)
    }
}
