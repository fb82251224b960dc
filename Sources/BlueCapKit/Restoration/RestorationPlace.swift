import Foundation

/// Where the state of a restore identifier is kept.
struct RestorationPlace: Equatable, Sendable {
    let identifier: String
    /// The state directory, which may not exist yet.
    let root: String
    /// The folder in it, one for each role.
    let folder: String
    /// The file's name without its extension.
    let name: String

    /// The name of the file with the state.
    var fileName: String { "\(name).json" }
    /// The name of the file to which the next state is written before it replaces the present one.
    var draftName: String { ".\(name).draft" }
    /// The name of the file whose lock gives the ownership of the state. The file remains when the lock ends: if it
    /// were removed, two programs could lock two files of one name.
    var lockName: String { ".\(name).lock" }

    func path(of name: String) -> String { "\(folder)/\(name)" }

    /// - Parameters:
    ///   - identifier: Any text that is not empty.
    ///   - root: The folder to use as `$XDG_STATE_HOME/bluecap`.
    ///   - kind: The name of the folder in it, one for each role.
    init(identifier: String, root: String, kind: String) {
        self.identifier = identifier
        self.root = root
        folder = "\(root)/\(kind)"
        name = Self.name(of: identifier)
    }

    /// Returns `$XDG_STATE_HOME/bluecap`, or `~/.local/state/bluecap` if that variable is not set (XDG Base Directory
    /// Specification 0.8, according to which a path that is not absolute is ignored).
    static func root(environment: [String: String], home: String) -> String {
        if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") { return state + "/bluecap" }
        return home + "/.local/state/bluecap"
    }

    /// Returns the state directory of an option, or the default one of this process if the option is `nil`.
    static func root(_ folder: String?) -> String {
        folder ?? root(environment: ProcessInfo.processInfo.environment, home: NSHomeDirectory())
    }

    /// On Linux a file name may have 255 bytes; the longest additions to a name have fewer than 40.
    private static let longestName = 200

    /// Returns the identifier as a file name. Letters, digits, hyphen, underscore and dot are kept, except for a dot at
    /// the beginning, which would hide the file. Every other byte becomes `%` and two digits. A name that would be too
    /// long is cut, and made unique by a number that is derived from the whole identifier.
    private static func name(of identifier: String) -> String {
        var name = identifier.addingPercentEncoding(withAllowedCharacters: keptCharacters) ?? ""
        if name.hasPrefix(".") { name = "%2E" + name.dropFirst() }
        guard name.utf8.count > longestName else { return name }
        // "~" occurs in no other name, so a cut name is never another identifier's whole name.
        return name.prefix(longestName - 17) + "~" + String(format: "%016llX", fingerprint(of: identifier))
    }

    private static let keptCharacters = CharacterSet(
        charactersIn: "-._0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")

    /// FNV-1a of 64 bits (draft-eastlake-fnv). The file contains its identifier, so that a collision is detected.
    private static func fingerprint(of text: String) -> UInt64 {
        text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }
}
