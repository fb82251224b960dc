public import Foundation

/// A Bluetooth LE device that exists only in a simulator: a value that describes what it is and what it sends.
///
/// ```swift
/// let strap = VirtualPeripheral(
///     "C0:FF:EE:00:18:0D", addressType: .random, rssi: .walk(around: -58, spread: 6, seed: 1),
///     advertisement: Advertisement(localName: "Heart Strap", serviceUUIDs: ["180D"], appearance: 833))
/// ```
///
/// A ``PeripheralBehavior`` adds what a value cannot describe, such as an advertisement that counts.
public struct VirtualPeripheral: Hashable, Sendable {
    /// Its address, unique in the simulator.
    public var address: VirtualAddress
    /// Whether the address is assigned to the manufacturer or chosen by the device.
    public var addressType: AddressType
    /// Its name for tests and files; adapters discover the name of the advertisement.
    public var name: String?
    /// Its strength at the adapters.
    public var rssi: RSSICourse
    /// What it sends.
    public var advertisement: Advertisement
    /// Seconds between two advertisements, 0.02 to 10,485.759375 as in the specification; a number outside becomes the
    /// nearest bound.
    public var interval: TimeInterval { didSet { interval = Limits.advertisingInterval.nearest(to: interval) } }
    /// Seconds since the simulator began until it is switched on; at most 1e9.
    public var appearsAfter: TimeInterval { didSet { appearsAfter = Limits.instants.nearest(to: appearsAfter) } }
    /// Seconds since the simulator began until it is switched off, at most 1e9; nil if it stays on.
    public var disappearsAfter: TimeInterval? {
        didSet { disappearsAfter = disappearsAfter.map(Limits.instants.nearest) }
    }
    /// Whether BlueZ has it stored and it does not advertise: it has an object on the bus and no RSSI.
    /// If it has services it takes connections nevertheless, like a bonded sensor that accepts only known centrals.
    public var isRemembered: Bool
    /// Whether it goes on advertising while it has a link, as many sensors do.
    public var advertisesWhileConnected = false
    /// The number of links that it accepts at once, 1 to 16, each from another adapter; a number outside becomes the nearest
    /// bound. With more than one, set ``advertisesWhileConnected`` if it can be found for the next link.
    public var linkLimit = 1 { didSet { linkLimit = Limits.links.nearest(to: linkLimit) } }
    /// What it offers once connected. Generic access and generic attribute are there without being listed.
    public var services: [VirtualService]
    /// The times and the packet size of its link.
    public var link: VirtualLink
    /// How it pairs.
    public var security: VirtualSecurity

    /// Creates a peripheral with these properties; without a `name` it has that of its advertisement.
    public init(
        _ address: VirtualAddress, addressType: AddressType = .public, name: String? = nil,
        rssi: RSSICourse = .constant(-60), advertisement: Advertisement = Advertisement(),
        interval: TimeInterval = 0.5, appearsAfter: TimeInterval = 0, disappearsAfter: TimeInterval? = nil,
        isRemembered: Bool = false, services: [VirtualService] = [], link: VirtualLink = VirtualLink(),
        security: VirtualSecurity = VirtualSecurity()
    ) {
        self.address = address
        self.addressType = addressType
        self.name = name ?? advertisement.localName
        self.rssi = rssi
        self.advertisement = advertisement
        self.interval = Limits.advertisingInterval.nearest(to: interval)
        self.appearsAfter = Limits.instants.nearest(to: appearsAfter)
        self.disappearsAfter = disappearsAfter.map(Limits.instants.nearest)
        self.isRemembered = isRemembered
        self.services = services
        self.link = link
        self.security = security
    }

    /// The address by which it is known to devices that have paired with it.
    var identity: VirtualAddress { security.privacy?.identity ?? address }

    /// Returns when it advertises next, at or after `seconds`; nil if it never does again.
    ///
    /// Each peripheral begins at a time within its interval that follows from its address, so that the peripherals of a
    /// crowd do not all send at once.
    func advertises(atOrAfter seconds: TimeInterval) -> TimeInterval? {
        guard !isRemembered else { return nil }
        let first = appearsAfter + SeededGenerator.fraction(of: address.value) * interval
        let steps = max(0, ((seconds - first) / interval).rounded(.up))
        let next = first + steps * interval
        return next < disappearsAfter ?? .infinity ? next : nil
    }
}

/// In JSON only `address` is required:
/// `{"address": "C0:FF:EE:00:18:0D", "addressType": "random", "rssi": -58, "advertisement": {…}, "interval": 0.5,`
/// `"appearsAfter": 0, "disappearsAfter": 30, "isRemembered": false, "advertisesWhileConnected": false, "linkLimit": 1,`
/// `"services": […], "link": {…}, "security": {…}}`.
extension VirtualPeripheral: Codable {
    private enum CodingKeys: String, CodingKey, CaseIterable {
        case address, addressType, name, rssi, advertisement, interval, appearsAfter, disappearsAfter, isRemembered
        case advertisesWhileConnected, linkLimit, services, link, security
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        self.init(
            try container.decode(VirtualAddress.self, forKey: .address),
            addressType: try container.decodeIfPresent(AddressType.self, forKey: .addressType) ?? .public,
            name: try container.text(Limits.nameLength, forKey: .name),
            rssi: try container.decodeIfPresent(RSSICourse.self, forKey: .rssi) ?? .constant(-60),
            advertisement: try container.decodeIfPresent(Advertisement.self, forKey: .advertisement) ?? Advertisement(),
            interval: try container.number(Limits.advertisingInterval, forKey: .interval) ?? 0.5,
            appearsAfter: try container.number(Limits.seconds, forKey: .appearsAfter) ?? 0,
            disappearsAfter: try container.number(Limits.seconds, forKey: .disappearsAfter),
            isRemembered: try container.decodeIfPresent(Bool.self, forKey: .isRemembered) ?? false,
            services: try container.services(forKey: .services),
            link: try container.decodeIfPresent(VirtualLink.self, forKey: .link) ?? VirtualLink(),
            security: try container.decodeIfPresent(VirtualSecurity.self, forKey: .security) ?? VirtualSecurity())
        advertisesWhileConnected =
            try container.decodeIfPresent(Bool.self, forKey: .advertisesWhileConnected) ?? false
        linkLimit = try container.number(Limits.links, forKey: .linkLimit) ?? 1
    }
}

/// The times and the packet size of a virtual peripheral's link.
///
/// Times are seconds, 0 to 1e9; with 0 an event happens in the same turn. A number outside its range becomes the nearest
/// bound.
public struct VirtualLink: Hashable, Sendable {
    /// From `Connect` until the link is up.
    public var connectLatency: TimeInterval { didSet { connectLatency = Limits.seconds.nearest(to: connectLatency) } }
    /// From the link until BlueZ has read the services, characteristics and descriptors.
    public var resolveLatency: TimeInterval { didSet { resolveLatency = Limits.seconds.nearest(to: resolveLatency) } }
    /// Between the exports of two attributes' objects, and from `ServicesResolved` to the first. With 0 all objects precede
    /// `ServicesResolved`; another number is the fault of ``Simulator/simulateLateObjects(by:of:)`` from the beginning.
    public var exportDelay: TimeInterval { didSet { exportDelay = Limits.seconds.nearest(to: exportDelay) } }
    /// For each request and its response; a link carries one at a time.
    public var callLatency: TimeInterval { didSet { callLatency = Limits.seconds.nearest(to: callLatency) } }
    /// The largest packet of the attribute protocol in bytes, 23 to 517; three of them are overhead.
    public var mtu: Int { didSet { mtu = Limits.mtu.nearest(to: mtu) } }
    /// Until an attempt to connect fails if the peripheral is out of range; about 40 s with BlueZ and its kernel.
    public var connectTimeout: TimeInterval { didSet { connectTimeout = Limits.seconds.nearest(to: connectTimeout) } }

    /// Creates the times, in seconds, and the packet size of a link.
    public init(
        connectLatency: TimeInterval = 0.05, resolveLatency: TimeInterval = 0.1, exportDelay: TimeInterval = 0,
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
    public static let immediate = VirtualLink(connectLatency: 0, resolveLatency: 0, callLatency: 0)
}

/// In JSON every key is optional: `{"mtu": 185, "callLatency": 0.03}`.
extension VirtualLink: Codable {
    private enum CodingKeys: String, CodingKey, CaseIterable {
        case connectLatency, resolveLatency, exportDelay, callLatency, mtu, connectTimeout
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        self.init()
        connectLatency = try container.number(Limits.seconds, forKey: .connectLatency) ?? connectLatency
        resolveLatency = try container.number(Limits.seconds, forKey: .resolveLatency) ?? resolveLatency
        exportDelay = try container.number(Limits.seconds, forKey: .exportDelay) ?? exportDelay
        callLatency = try container.number(Limits.seconds, forKey: .callLatency) ?? callLatency
        mtu = try container.number(Limits.mtu, forKey: .mtu) ?? mtu
        connectTimeout = try container.number(Limits.seconds, forKey: .connectTimeout) ?? connectTimeout
    }
}
