/// A version of BlueZ that a simulator behaves like.
///
/// Versions from 5.55 on differ where BlueZ's do; an older one behaves like 5.55. Those with a name here are what distributions
/// have, and what this package's tests run on.
public struct BlueZVersion: Hashable, Comparable, Sendable {
    /// The number before the dot: 5 in 5.82.
    public let major: Int
    /// The number after the dot: 82 in 5.82.
    public let minor: Int

    /// - Precondition: Both numbers are 0 to 255, as in an adapter's `Modalias`.
    public init(_ major: Int, _ minor: Int) {
        precondition(
            UInt8(exactly: major) != nil && UInt8(exactly: minor) != nil,
            "The numbers of a BlueZ version are 0 to 255, not \(major) and \(minor).")
        self.major = major
        self.minor = minor
    }

    /// Debian 12.
    public static let v5_66 = BlueZVersion(5, 66)
    /// Ubuntu 24.04.
    public static let v5_72 = BlueZVersion(5, 72)
    /// Debian 13 and Raspberry Pi OS.
    public static let v5_82 = BlueZVersion(5, 82)
    /// Rolling distributions.
    public static let v5_87 = BlueZVersion(5, 87)

    /// The development version after 5.87, as it was in August 2026: "head" in text. Its `Modalias` is that of 5.87.
    public static let head = BlueZVersion(5, 88)

    /// The versions with differences that the simulator knows.
    public static let known = BlueZVersion(5, 55)...head

    /// What a simulator behaves like unless another version is asked for.
    public static let `default` = v5_82

    public static func < (one: BlueZVersion, other: BlueZVersion) -> Bool {
        (one.major, one.minor) < (other.major, other.minor)
    }

    /// The `Modalias` of each adapter.
    var modalias: String { "usb:v1D6Bp0246d" + Hexadecimal.text([UInt8(major), UInt8(release)]).uppercased() }

    /// The minor number that it reports: the development head has that of the release before it.
    var release: Int { min(minor, Self.v5_87.minor) }
}

extension BlueZVersion: LosslessStringConvertible {
    /// - Parameter description: Major and minor number, each 0 to 255, as in `5.82`, or `head`.
    public init?(_ description: String) {
        if description == "head" {
            self = .head
            return
        }
        let parts = description.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        guard parts.count == 2, let major = parts[0], let minor = parts[1] else { return nil }
        self.init(Int(major), Int(minor))
    }

    public var description: String { self == .head ? "head" : "\(major).\(minor)" }
}
