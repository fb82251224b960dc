/// All faults of a configuration file, in the order of their places.
public struct GatewayConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The faults: at least one, at most ``limit``.
    public let problems: [Problem]
    /// The number of faults that were found beyond ``limit``.
    public let omitted: Int

    /// The largest number of faults that are reported for one file.
    public static let limit = 50

    /// One fault of a configuration file.
    public struct Problem: Hashable, Sendable, CustomStringConvertible {
        /// The file, as it was given.
        public var file: String
        /// The line, from 1.
        public var line: Int
        /// The column in Unicode scalars, from 1.
        public var column: Int
        /// The key with the keys that contain it, such as `radio.throttle.heartbeat` or `peripherals[2].name`; empty for a
        /// fault of the whole file.
        public var path: String
        /// What was found, what is allowed, and what to do. It never contains a secret.
        public var reason: String

        /// The fault in one line, such as
        /// `gateway.yaml:3:14: broker.keepAlive: found "5 years"; allowed: a duration from 5s to 1h, such as 7d.`
        public var description: String {
            "\(file):\(line):\(column): \(path.isEmpty ? "" : path + ": ")\(reason)"
        }
    }

    init(_ problems: [Problem]) {
        let sorted = problems.enumerated().sorted {
            ($0.element.line, $0.element.column, $0.offset) < ($1.element.line, $1.element.column, $1.offset)
        }
        self.problems = sorted.prefix(Self.limit).map(\.element)
        omitted = max(problems.count - Self.limit, 0)
    }

    /// All faults, one a line.
    public var description: String {
        let lines = problems.map(\.description) + (omitted > 0 ? ["… and \(omitted) more."] : [])
        return lines.joined(separator: "\n")
    }
}
