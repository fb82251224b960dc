import Foundation

/// What a manager with a restore identifier keeps on the disk, as a value: one kind for each role.
protocol KeptState: Equatable, Sendable {
    /// The folder of this kind.
    static var folder: String { get }

    /// Nothing.
    init()
    var isEmpty: Bool { get }

    /// The state as a file's contents.
    func encoded(for identifier: String) throws -> Data
    /// - Throws: ``RestorationDamage`` for anything that ``encoded(for:)`` did not write for this identifier.
    init(decoding data: Data, for identifier: String) throws(RestorationDamage)
}

/// Why a state is no state of ours.
enum RestorationDamage: Error, Equatable {
    /// No JSON, or not as we write it.
    case unreadable(String)
    /// Another program's, or that of another identifier.
    case foreign
    /// Of a later version of this library, which alone knows what it means.
    case newer(version: Int)
}

/// Why nothing was restored, in the words of both roles' errors.
enum RestorationFailure: Error, Hashable, Sendable {
    case restoreFailed
    /// With the file's path.
    case restoreIdentifierInUse(String)
}

/// What stands at the head of each file: whose it is.
struct KeptHead: Codable {
    var format: String
    var version: Int
    var identifier: String

    func check(_ format: String, upTo version: Int, _ identifier: String) throws(RestorationDamage) {
        guard self.format == format, self.identifier == identifier else { throw .foreign }
        guard self.version <= version else { throw .newer(version: self.version) }
    }
}
