import BlueCapKit
import Foundation

struct LineReader {
    let descriptor: Int32
    /// The greatest length of a line, in bytes; a longer line ends the reading.
    let longest: Int
    /// Whether text without a line break is a line too: at the end, and if it is too long.
    let takesRest: Bool
    private var received: [UInt8] = []

    /// Whether a line was received that is not returned yet.
    var hasLine: Bool { received.contains(UInt8(ascii: "\n")) }

    init(descriptor: Int32, longest: Int, takesRest: Bool = false) {
        (self.descriptor, self.longest, self.takesRest) = (descriptor, longest, takesRest)
    }

    /// The next line; `nil` at the end, and after an error.
    mutating func next() -> String? {
        while true {
            if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
                defer { received.removeSubrange(...end) }
                return String(decoding: received[..<end], as: UTF8.self)
            }
            var buffer = [UInt8](repeating: 0, count: 1024)
            let count = received.count < longest ? read(descriptor, &buffer, buffer.count) : 0
            if count > 0 {
                received += buffer[..<count]
            } else if count == 0 || errno != EINTR {
                guard takesRest, !received.isEmpty else { return nil }
                defer { received = [] }
                return String(decoding: received, as: UTF8.self)
            }
        }
    }
}

/// Waits for what a thread of its own returns; `nil` if the task is cancelled before.
func onThread<Value: Sendable>(_ work: @escaping @Sendable () -> Value?) async -> Value? {
    let (values, feed) = AsyncStream.makeStream(of: Value?.self)
    Thread.detachNewThread {
        feed.yield(work())
        feed.finish()
    }
    return await values.first { _ in true } ?? nil
}

/// Lines that the user or another program writes, for a task that waits for them.
final class InputLines: Sendable {
    private let descriptor: Int32
    private let ownsDescriptor: Bool
    private let reader: Locked<LineReader>

    /// - Parameters:
    ///   - ownsDescriptor: Whether the descriptor is closed with this object.
    ///   - longest: The greatest length of a line, in bytes; a longer line ends the input.
    ///   - takesRest: Whether text without a line break is a line too: at the end, and if it is too long.
    init(_ descriptor: Int32, ownsDescriptor: Bool = false, longest: Int = 4096, takesRest: Bool = false) {
        self.descriptor = descriptor
        self.ownsDescriptor = ownsDescriptor
        reader = Locked(LineReader(descriptor: descriptor, longest: longest, takesRest: takesRest))
    }

    deinit { if ownsDescriptor { close(descriptor) } }

    /// Waits for the next line. Returns `nil` at the end of the input, and if the task is cancelled.
    func next() async -> String? {
        // Its other end is closed when nothing waits for the line any more.
        let end = Pipe()
        defer { try? end.fileHandleForWriting.close() }
        return await onThread { [self] in
            waitForInput(orEndOf: end.fileHandleForReading.fileDescriptor) ? reader.withLock { $0.next() } : nil
        }
    }

    /// Returns false if the other descriptor has ended.
    private func waitForInput(orEndOf end: Int32) -> Bool {
        if reader.withLock({ $0.hasLine }) { return true }
        var entries = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0), pollfd(fd: end, events: 0, revents: 0),
        ]
        while poll(&entries, 2, -1) < 0, errno == EINTR {}
        return entries[1].revents == 0
    }
}
