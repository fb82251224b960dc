public import Foundation

/// The times and the packet size of a virtual peripheral's link.
///
/// Times are seconds, 0 to 1e9; with 0 an event happens in the same turn. A number outside its range becomes the nearest
/// bound.
public struct VirtualLink: Hashable, Sendable {
    /// From `Connect` until the link is up.
    public var connectLatency: TimeInterval { didSet { connectLatency = Limits.seconds.nearest(to: connectLatency) } }
    /// From the link until BlueZ has read the services, characteristics and descriptors.
    public var resolveLatency: TimeInterval { didSet { resolveLatency = Limits.seconds.nearest(to: resolveLatency) } }
    /// Between the exports of two attributes' objects, and from `ServicesResolved` to the first. BlueZ takes about
    /// 5 ms for each.
    public var exportDelay: TimeInterval { didSet { exportDelay = Limits.seconds.nearest(to: exportDelay) } }
    /// For each request and its response; a link carries one at a time.
    public var callLatency: TimeInterval { didSet { callLatency = Limits.seconds.nearest(to: callLatency) } }
    /// The largest packet of the attribute protocol in bytes, 23 to 517; three of them are overhead.
    public var mtu: Int { didSet { mtu = Limits.mtu.nearest(to: mtu) } }
    /// Until an attempt to connect fails if the peripheral is out of range; about 40 s with BlueZ and its kernel.
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

    /// A link without any delay, for benchmarks.
    public static let immediate = VirtualLink(
        connectLatency: 0, resolveLatency: 0, exportDelay: 0, callLatency: 0)
}
