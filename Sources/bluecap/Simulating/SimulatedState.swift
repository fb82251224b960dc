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
        path = URL(fileURLWithPath: NSTemporaryDirectory() + "/bluecap-state-" + UUID().uuidString).path
        guard mkdir(path, S_IRWXU) == 0 else {
            throw ToolFailure("The state directory \(path) could not be made: \(String(cString: strerror(errno))).")
        }
    }

    /// Removes the folder with what is in it. A second call does nothing.
    func remove() { try? FileManager.default.removeItem(atPath: path) }
}
