public import Foundation

/// How a virtual peripheral's link behaves: how long things take, and how much goes into one packet.
///
/// Times are seconds, 0 to 1e9; with 0 things happen in the same turn. A number outside its range becomes the nearest bound.
public struct VirtualLink: Hashable, Sendable {
    /// From `Connect` until the link is up.
    public var connectLatency: TimeInterval { didSet { connectLatency = Limits.seconds.nearest(to: connectLatency) } }
    /// From the link until BlueZ has read the table of services.
    public var resolveLatency: TimeInterval { didSet { resolveLatency = Limits.seconds.nearest(to: resolveLatency) } }
    /// Between two objects of the table appearing on the bus, one after another; the first comes that long after
    /// `ServicesResolved`. BlueZ takes some five milliseconds for each.
    public var exportDelay: TimeInterval { didSet { exportDelay = Limits.seconds.nearest(to: exportDelay) } }
    /// For each request and its response; a link carries one at a time.
    public var callLatency: TimeInterval { didSet { callLatency = Limits.seconds.nearest(to: callLatency) } }
    /// The largest packet of the attribute protocol in bytes, 23 to 517; three of them are overhead.
    public var mtu: Int { didSet { mtu = Limits.mtu.nearest(to: mtu) } }
    /// How long a connection is tried while the peripheral is not there; BlueZ and its kernel take some 40 seconds.
    public var connectTimeout: TimeInterval { didSet { connectTimeout = Limits.seconds.nearest(to: connectTimeout) } }

    public init(
        connectLatency: TimeInterval = 0.05, resolveLatency: TimeInterval = 0.1, exportDelay: TimeInterval = 0.001,
        callLatency: TimeInterval = 0.005, mtu: Int = 247, connectTimeout: TimeInterval = 40
    ) {
        self.connectLatency = Limits.seconds.nearest(to: connectLatency)
        self.resolveLatency = Limits.seconds.nearest(to: resolveLatency)
        self.exportDelay = Limits.seconds.nearest(to: exportDelay)
        self.callLatency = Limits.seconds.nearest(to: callLatency)
        self.mtu = Limits.mtu.nearest(to: mtu)
        self.connectTimeout = Limits.seconds.nearest(to: connectTimeout)
    }

    /// A link on which nothing takes any time: for benchmarks.
    public static let immediate = VirtualLink(
        connectLatency: 0, resolveLatency: 0, exportDelay: 0, callLatency: 0)
}
