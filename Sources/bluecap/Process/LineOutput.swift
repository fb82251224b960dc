import Foundation

/// Where a command prints its lines: standard output, or a file, at `path`, that they are appended to.
struct LineOutput: Sendable {
    var path: String?
    /// In bytes. A file that would be greater becomes `path.1`, the one before `path.2`, and so on up to `path.9`.
    var limit: Int?
    /// The first line of each file.
    var header: String?
    var output = Output.standard
    var size = 0

    mutating func write(_ line: String) throws {
        if let path, let limit, size > 0, size + line.utf8.count >= limit {
            for number in (1...8).reversed() { rename("\(path).\(number)", "\(path).\(number + 1)") }
            guard rename(path, path + ".1") == 0 else { throw ToolFailure.file(path, "write") }
            close(output.descriptor)
            try open()
        }
        let text = [size == 0 ? header : nil, line].compactMap { $0 }.joined(separator: "\n") + "\n"
        try output.write(text)
        size += text.utf8.count
    }

    /// - Throws: ``ToolFailure`` if the file cannot be written.
    mutating func open() throws {
        guard let path else { return }
        output = Output(descriptor: Foundation.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o666))
        guard output.descriptor >= 0 else { throw ToolFailure.file(path, "write") }
        var status = stat()
        fstat(output.descriptor, &status)
        size = Int(status.st_size)
        // A device, or a pipe, keeps its name.
        if status.st_mode & S_IFMT != S_IFREG { limit = nil }
    }
}
