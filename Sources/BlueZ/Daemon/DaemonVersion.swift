/// A version of BlueZ, such as 5.82.
package struct DaemonVersion: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let major: Int
    package let minor: Int

    package init(_ major: Int, _ minor: Int) {
        self.major = major
        self.minor = minor
    }

    /// The version in an adapter's `Modalias`: `usb:v1D6Bp0246d0542` is 5.66, at all versions (`init_defaults` in
    /// `src/main.c`). `nil` for another vendor or product, which `DeviceID` in `main.conf` can set.
    package init?(modalias: String) {
        let prefix = "usb:v1D6Bp0246d"
        guard modalias.hasPrefix(prefix) else { return nil }
        let digits = modalias.dropFirst(prefix.count)
        guard digits.utf8.count == 4, digits.allSatisfy(\.isHexDigit), let number = UInt16(digits, radix: 16) else {
            return nil
        }
        self.init(Int(number >> 8), Int(number & 0xFF))
    }

    package var description: String { "\(major).\(minor)" }

    package static func < (one: DaemonVersion, other: DaemonVersion) -> Bool {
        (one.major, one.minor) < (other.major, other.minor)
    }
}

/// The versions of BlueZ that a daemon can be, by what is known of it.
package struct DaemonVersionRange: Hashable, Sendable {
    /// The lowest one.
    package private(set) var first: DaemonVersion
    /// The lowest one above the range; `nil` if there is no limit.
    package private(set) var end: DaemonVersion?

    /// Every version.
    package init() { first = DaemonVersion(0, 0) }

    /// One version.
    package init(_ version: DaemonVersion) {
        first = version
        end = DaemonVersion(version.major, version.minor + 1)
    }

    package mutating func raise(to version: DaemonVersion) { first = max(first, version) }

    /// Does nothing if that would leave no version: what is there counts more than what is not.
    package mutating func limit(below version: DaemonVersion) {
        if version > first { end = min(end ?? version, version) }
    }

    package func contains(_ version: DaemonVersion) -> Bool { version >= first && end.map { version < $0 } ?? true }

    /// Whether the daemon is certainly this version or a later one.
    package func isAtLeast(_ version: DaemonVersion) -> Bool { first >= version }

    /// Whether the daemon is certainly older than this version.
    package func isBelow(_ version: DaemonVersion) -> Bool { end.map { $0 <= version } ?? false }
}
