import Foundation

/// The state directory of the programs that use a simulator. What they keep about simulated devices, such as notes about bonds,
/// would be wrong for real ones with the same addresses.
struct SimulatedState: Sendable {
    /// The environment variable with the parent of the state directory (XDG Base Directory Specification 0.8).
    static let variable = "XDG_STATE_HOME"

    /// The value of the variable: a folder that only this user can access.
    let path: String

    /// - Throws: ``ToolFailure`` if no folder can be made.
    init() throws {
        let base = NSTemporaryDirectory()
        var template = Array((base.hasSuffix("/") ? base : base + "/").utf8CString.dropLast())
        template += "bluecap-state-XXXXXX".utf8CString
        guard let made = template.withUnsafeMutableBufferPointer({ $0.baseAddress.flatMap(mkdtemp) }) else {
            throw ToolFailure("No state directory could be made in \(base): \(String(cString: strerror(errno))).")
        }
        path = String(cString: made)
    }

    /// Removes the folder with what is in it. A second call does nothing.
    func remove() { try? FileManager.default.removeItem(atPath: path) }
}
