import Foundation
import BlueCapGATT

/// The state that a manager with a restore identifier keeps on the disk, as a value. Each role has one such type.
///
/// It is coded in the form of its file, from which usual values are left out.
package protocol KeptState: Codable, Equatable, Sendable {
    /// Creates an empty state.
    init()

    /// The name of the folder for states of this type.
    static var folder: String { get }
    /// The layout of the file that this version writes. A change that older versions would misread increases it.
    static var version: Int { get }
    /// What is wrong with the values of a file, in a sentence; `nil` if nothing is.
    var problem: String? { get }
}

extension KeptState {
    /// Identifies the files of this type.
    private static var format: String { "bluecap \(folder) state" }

    package var problem: String? { nil }
    var isEmpty: Bool { self == Self() }

    /// Returns the state as a file's contents: JSON with hexadecimal data, so that people can read it too.
    func encoded(for identifier: String) throws -> Data {
        let encoder = JSONEncoder()
        encoder.dataEncodingStrategy = .custom { try $0.hexadecimal.encode(to: $1) }
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let head = KeptHead(format: Self.format, version: Self.version, identifier: identifier)
        return try encoder.encode(KeptFile(head: head, state: self))
    }

    /// - Throws: ``RestorationDamage`` for data that ``encoded(for:)`` did not write for this identifier.
    init(decoding data: Data, for identifier: String) throws(RestorationDamage) {
        let decoder = JSONDecoder()
        decoder.dataDecodingStrategy = .custom { decoder in
            let text = try String(from: decoder)
            guard let data = Data(hexadecimal: text) else {
                throw RestorationDamage.unreadable("\"\(text)\" is not hexadecimal.")
            }
            return data
        }
        do {
            // Only the head is decoded first: the rest of a later version's file is unknown.
            let head = try decoder.decode(KeptHead.self, from: data)
            guard head.format == Self.format, head.identifier == identifier else { throw RestorationDamage.foreign }
            guard head.version <= Self.version else { throw RestorationDamage.newer(version: head.version) }
            self = try decoder.decode(Self.self, from: data)
            if let problem { throw RestorationDamage.unreadable(problem) }
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

/// The head of each file: its owner.
private struct KeptHead: Codable {
    var format: String
    var version: Int
    var identifier: String
}

/// A file: its head and its state, in one JSON object.
private struct KeptFile<State: KeptState>: Encodable {
    let head: KeptHead
    let state: State

    func encode(to encoder: any Encoder) throws {
        try head.encode(to: encoder)
        try state.encode(to: encoder)
    }
}
