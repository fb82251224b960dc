import Foundation
import Logging

/// Writes log messages to the standard error, a line each: the time, the level and the message.
///
/// For systemd's journal, which has its own times, a line begins with the priority of syslog instead, as in `<4>`.
struct StandardErrorLog: LogHandler {
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]
    private let isJournal: Bool

    init(environment: [String: String] = ProcessInfo.processInfo.environment) {
        isJournal = environment["JOURNAL_STREAM"] != nil
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let values = metadata.merging(event.metadata ?? [:]) { $1 }
        let details = values.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
        let head = isJournal ? "<\(Self.priority(event.level))>" : "\(Date().formatted(Self.style)) \(event.level) "
        // Names of devices may have any characters; a message is one line.
        let text = "\(event.message)\(details.isEmpty ? "" : " (\(details))")"
            .map { $0.isNewline ? " " : String($0) }.joined()
        FileHandle.standardError.write(Data("\(head)\(text)\n".utf8))
    }

    private static let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

    private static func priority(_ level: Logger.Level) -> Int {
        switch level {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }
}
