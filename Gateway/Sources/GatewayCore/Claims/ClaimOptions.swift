public import Foundation

/// The numbers by which gateways decide which one connects a device. All gateways on a broker should have the same.
///
/// Times are in seconds. The budget of a hand-over after the lead has lasted ``leadTime``: two messages (the request,
/// and that the link is ending), the end of the link (two seconds with BlueZ), one message, and the new link.
public struct ClaimOptions: Hashable, Sendable {
    /// By how many decibels another gateway must receive a device better before it takes the device over.
    public var hysteresis = 6.0
    /// For how long the lead must last.
    public var leadTime: TimeInterval = 10
    /// The time constant of the exponential smoothing of strengths. After a step of the strength, two thirds of it are
    /// visible after this time.
    public var timeConstant: TimeInterval = 2
    /// After this time without a report, a strength counts as unknown.
    public var strengthLifetime: TimeInterval = 10
    /// For how long the strongest gateway listens to a free device before it claims it; weaker ones listen up to
    /// 1.5 s longer, so that one claim is published in most cases and not as many as there are gateways.
    public var listeningTime: TimeInterval = 1.5
    /// The time between the broker's copy of the gateway's own claim and its request for a link. It must exceed the
    /// time by which the broker can delay one topic more than another; the delay that all topics have in common does
    /// not count.
    public var settlingTime: TimeInterval = 1.5
    /// How often a gateway publishes an unchanged claim.
    public var refreshInterval: TimeInterval = 5
    /// A claim that was not published again for this time counts no longer.
    public var claimLifetime: TimeInterval = 15
    /// For how long claims from before the end of a connection to the broker count after the next connection: as long
    /// as another gateway may need to connect again.
    public var reconnectionPatience: TimeInterval = 30
    /// For how long a gateway claims nothing after it has connected to the broker.
    public var connectionDelay: TimeInterval = 5
    /// For how long a device is left alone after the will of its gateway, which may only have lost its connection.
    public var willDelay: TimeInterval = 4
    /// A device that does not advertise while it has a link is received by one gateway only. If the strength of its
    /// link stays below this, in dBm, for ``leadTime``, the gateway ends the link so that all gateways receive the
    /// device again.
    public var weakLink = -78.0
    /// The time after a link's beginning until a weak link is first ended for this reason again. It doubles each
    /// time that the same gateway takes the device again, to at most ten minutes.
    public var weakLinkInterval: TimeInterval = 30
    /// The time that an attempt to connect may take.
    public var connectLimit: TimeInterval = 45
    /// The number of devices that are remembered; others are left alone.
    public var deviceLimit = 10_000
    /// The number of gateways whose claims to one device are remembered.
    public var gatewayLimit = 256

    public init() {}
}

/// The strength of a device, smoothed exponentially over reports at irregular times.
struct SmoothedStrength: Hashable, Sendable {
    private var value = 0.0
    /// The time of the latest report.
    private(set) var last = -TimeInterval.infinity
    /// The time of the first report after a pause of the strength's lifetime.
    private(set) var since = -TimeInterval.infinity

    mutating func add(_ strength: Double, at now: TimeInterval, _ options: ClaimOptions) {
        let strength = max(-127, min(20, strength))
        if now - last > options.strengthLifetime {
            (value, since) = (strength, now)
        } else {
            value += (strength - value) * (1 - exp(-max(0, now - last) / options.timeConstant))
        }
        last = now
    }

    /// Returns the strength in dBm; `nil` if the latest report is too old.
    func strength(at now: TimeInterval, _ options: ClaimOptions) -> Double? {
        now - last <= options.strengthLifetime ? value : nil
    }
}
