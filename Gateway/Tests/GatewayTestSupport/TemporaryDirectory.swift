public import Foundation

/// A new directory, which is removed with all that is in it when the test has finished.
public final class TemporaryDirectory: EndsWithTest {
    public let url: URL

    public init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("bluecap-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        Lifetime.keep(self)
    }

    func end() { try? FileManager.default.removeItem(at: url) }

    /// The path of a file or directory in it.
    public func path(_ name: String) -> String { url.appendingPathComponent(name).path }

    /// Writes a file and returns its path.
    public func write(_ name: String, _ text: String) throws -> String {
        try text.write(toFile: path(name), atomically: true, encoding: .utf8)
        return path(name)
    }
}
