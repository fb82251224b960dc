import Foundation

/// What a manager with a restore identifier keeps on the disk, as a value: one kind for each role.
protocol KeptState: Equatable, Sendable {
    /// The folder of this kind.
    static var folder: String { get }

    /// Nothing.
    init()
    var isEmpty: Bool { get }

    /// The first entry in each file of this kind.
    static var format: String { get }
    /// The layout of the file that this version writes. A change that older versions would misread raises it.
    static var version: Int { get }

    /// The state in the words of its file.
    associatedtype Contents: Codable
    var contents: Contents { get }
    init(_ contents: Contents) throws
}

extension KeptState {
    /// The state as a file's contents: JSON, for people to read too.
    func encoded(for identifier: String) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let head = KeptHead(format: Self.format, version: Self.version, identifier: identifier)
        return try encoder.encode(KeptFile(head: head, contents: contents))
    }

    /// - Throws: ``RestorationDamage`` for anything that ``encoded(for:)`` did not write for this identifier.
    init(decoding data: Data, for identifier: String) throws(RestorationDamage) {
        let decoder = JSONDecoder()
        do {
            // The head alone first: of the rest of a later version nothing is known.
            try decoder.decode(KeptHead.self, from: data).check(Self.format, upTo: Self.version, identifier)
            self = try Self(decoder.decode(KeptFile<Contents>.self, from: data).contents)
        } catch let damage as RestorationDamage {
            throw damage
        } catch {
            throw .unreadable("\(error)")
        }
    }
}

/// Why a state is no state of ours.
enum RestorationDamage: Error, Equatable, CustomStringConvertible {
    /// No JSON, or not as we write it.
    case unreadable(String)
    /// Another program's, or that of another identifier.
    case foreign
    /// Of a later version of this library, which alone knows what it means.
    case newer(version: Int)
    /// Perhaps another user's.
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

/// Why nothing was restored, in the words of both roles' errors.
enum RestorationFailure: Error, Hashable, Sendable {
    case restoreFailed
    /// With the file's path.
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

/// A file: its head and its contents, side by side in one object.
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
