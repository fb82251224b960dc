import Foundation

/// Where the state of a restore identifier is kept.
struct RestorationPlace: Equatable, Sendable {
    /// The state directory, which may not exist yet.
    let root: String
    /// The name of the folder in it, one for each role.
    let kind: String
    /// The file's name without its extension.
    let name: String

    var folder: String { "\(root)/\(kind)" }
    /// The file with the state.
    var file: String { path(of: fileName) }
    /// The next state, while it is being written.
    var draft: String { path(of: draftName) }
    /// The owner of a lock on this file owns the state. The file remains after the lock: without it, two programs could lock
    /// two files of one name.
    var lock: String { path(of: lockName) }

    /// The path under which a file is set aside that is not a state of ours.
    func aside(_ number: Int) -> String { path(of: asideName(number)) }

    var fileName: String { "\(name).json" }
    var draftName: String { ".\(name).draft" }
    var lockName: String { ".\(name).lock" }
    func asideName(_ number: Int) -> String { "\(fileName).unreadable-\(number)" }

    private func path(of name: String) -> String { "\(folder)/\(name)" }

    /// - Parameters:
    ///   - identifier: any text but an empty one.
    ///   - root: the folder that stands for `$XDG_STATE_HOME/bluecap`.
    ///   - kind: the folder in that, one for each role.
    init(identifier: String, root: String, kind: String = RestorationState.folder) {
        (self.root, self.kind) = (root, kind)
        name = Self.name(of: identifier)
    }

    /// `$XDG_STATE_HOME/bluecap`, or `~/.local/state/bluecap` without that variable (XDG Base Directory Specification
    /// 0.8; it has a path that is not absolute ignored).
    static func root(environment: [String: String], home: String) -> String {
        if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") { return state + "/bluecap" }
        return home + "/.local/state/bluecap"
    }

    /// Files may have 255 bytes in their names on Linux; the longest additions to a name have less than 40.
    private static let longestName = 200

    /// The identifier as a file's name: letters, digits, hyphen, underscore and dot are kept, but for a dot at the
    /// beginning, which would hide the file; every other byte becomes `%` and two digits. A name that would be too long
    /// is cut, and made unique by a number that is derived from all of it.
    private static func name(of identifier: String) -> String {
        var name = ""
        for byte in identifier.utf8 {
            let character = Character(UnicodeScalar(byte))
            let isKept =
                byte < 0x80 && (character.isLetter || character.isNumber || "-_".contains(character))
                || (character == "." && !name.isEmpty)
            name += isKept ? String(character) : "%" + hexadecimal(UInt64(byte), digits: 2)
        }
        guard name.utf8.count > longestName else { return name }
        // "~" stands in no other name, so that a cut name never is another identifier's whole name.
        return name.prefix(longestName - 17) + "~" + hexadecimal(fingerprint(of: identifier), digits: 16)
    }

    /// FNV-1a of 64 bits (draft-eastlake-fnv). The file contains its identifier, so that a collision is noticed.
    private static func fingerprint(of text: String) -> UInt64 {
        text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    private static func hexadecimal(_ number: UInt64, digits: Int) -> String {
        let text = String(number, radix: 16, uppercase: true)
        return String(repeating: "0", count: digits - text.utf8.count) + text
    }
}
