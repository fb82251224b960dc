public import Foundation

/// How a virtual peripheral's link behaves: how long things take, and how much goes into one packet.
///
/// Times are seconds; with 0 things happen in the same turn.
public struct VirtualLink: Hashable, Sendable {
    /// From `Connect` until the link is up.
    public var connectLatency: TimeInterval
    /// From the link until BlueZ has read the table of services.
    public var resolveLatency: TimeInterval
    /// Between two objects of the table appearing on the bus, one after another; the first comes that long after
    /// `ServicesResolved`. BlueZ takes some five milliseconds for each.
    public var exportDelay: TimeInterval
    /// For each request and its response; a link carries one at a time.
    public var callLatency: TimeInterval
    /// The largest packet of the attribute protocol in bytes, 23 to 517; three of them are overhead.
    public var mtu: Int
    /// How long a connection is tried while the peripheral is not there; BlueZ and its kernel take some 40 seconds.
    public var connectTimeout: TimeInterval

    public init(
        connectLatency: TimeInterval = 0.05, resolveLatency: TimeInterval = 0.1, exportDelay: TimeInterval = 0.001,
        callLatency: TimeInterval = 0.005, mtu: Int = 247, connectTimeout: TimeInterval = 40
    ) {
        self.connectLatency = max(0, connectLatency)
        self.resolveLatency = max(0, resolveLatency)
        self.exportDelay = max(0, exportDelay)
        self.callLatency = max(0, callLatency)
        self.mtu = min(517, max(23, mtu))
        self.connectTimeout = max(0, connectTimeout)
    }

    /// A link on which nothing takes any time: for benchmarks.
    public static let immediate = VirtualLink(
        connectLatency: 0, resolveLatency: 0, exportDelay: 0, callLatency: 0)
}
