public import BlueCapKit

/// The topics of a gateway.
public struct Topics: Hashable, Sendable {
    /// The first levels of all topics.
    public let prefix: String
    /// The gateway's name.
    public let gateway: String

    /// Creates the topics of a gateway.
    public init(prefix: String, gateway: String) { (self.prefix, self.gateway) = (prefix, gateway) }

    // MARK: Of this gateway

    /// The state of this gateway; retained.
    public var state: String { state(of: gateway) }
    /// Commands for this gateway.
    public var command: String { "\(own)/command" }
    /// Replies to commands that name no other topic.
    public var reply: String { "\(own)/reply" }

    /// What a peripheral advertises.
    public func advertisement(_ device: DeviceName) -> String { "\(own)/advertisement/\(device)" }
    /// The decoded readings of a sensor's advertisements.
    public func reading(_ device: DeviceName) -> String { "\(own)/reading/\(device)" }
    /// The values of a characteristic.
    public func value(_ device: DeviceName, service: CBUUID, characteristic: CBUUID) -> String {
        "\(own)/value/\(device)/\(Self.text(of: service))/\(Self.text(of: characteristic))"
    }
    /// The gaps between the values of a characteristic.
    public func gap(_ device: DeviceName, service: CBUUID, characteristic: CBUUID) -> String {
        "\(own)/gap/\(device)/\(Self.text(of: service))/\(Self.text(of: characteristic))"
    }
    /// The state of the link to a peripheral; retained.
    public func link(_ device: DeviceName) -> String { "\(own)/link/\(device)" }

    // MARK: Of all gateways

    /// The state of a gateway; retained.
    public func state(of gateway: String) -> String { "\(prefix)/\(gateway)/state" }
    /// The states of all gateways.
    public var stateFilter: String { "\(prefix)/+/state" }
    /// The claim of a gateway to connect a peripheral; retained.
    public func claim(_ device: DeviceName, of gateway: String) -> String { "\(prefix)/claim/\(device)/\(gateway)" }
    /// The claims of all gateways.
    public var claimFilter: String { "\(prefix)/claim/+/+" }
    /// The newest readings of a device from the gateway that reports it to Home Assistant; retained.
    public func device(_ device: DeviceName) -> String { "\(prefix)/device/\(device)" }
    /// The newest readings of all devices.
    public var deviceFilter: String { "\(prefix)/device/+" }

    /// What a received topic is.
    public enum Received: Hashable, Sendable {
        /// A command for this gateway.
        case command
        /// The state of a gateway, which may be this one.
        case state(gateway: String)
        /// A claim.
        case claim(DeviceName, gateway: String)
        /// The newest readings of a device.
        case device(DeviceName)
    }

    /// Returns what a received topic is, or `nil` for a topic to which no gateway subscribes.
    public func received(_ topic: String) -> Received? {
        guard topic != command else { return .command }
        guard topic.hasPrefix(prefix + "/") else { return nil }
        let levels = topic.dropFirst(prefix.count + 1).split(separator: "/", omittingEmptySubsequences: false).map(
            String.init)
        switch (levels.count, levels.first, levels.last) {
        case (3, "claim", let gateway?): return DeviceName(levels[1]).map { .claim($0, gateway: gateway) }
        case (2, "device", let device?): return DeviceName(device).map { .device($0) }
        case (2, let gateway?, "state"): return .state(gateway: gateway)
        default: return nil
        }
    }

    /// Whether replies may be published to a topic: it begins with `PREFIX/reply/` or `PREFIX/GATEWAY/reply`, so that no
    /// command can make the gateway write to the topics on which it or another gateway publishes.
    public func allowsReply(to topic: String) -> Bool {
        guard Self.isPlain(topic), topic.utf8.count <= 256 else { return false }
        return topic == reply || topic.hasPrefix(reply + "/") || topic.hasPrefix("\(prefix)/reply/")
    }

    // MARK: Texts

    /// A UUID in topics and payloads: in lower case, with four digits if that is enough, such as `180f`, or eight, or all.
    public static func text(of uuid: CBUUID) -> String {
        guard let number = uuid.assignedNumber else { return uuid.fullUUIDString.lowercased() }
        let digits = String(number, radix: 16)
        let width = number > 0xFFFF ? 8 : 4
        return String(repeating: "0", count: max(width - digits.count, 0)) + digits
    }

    /// Whether a text is a topic without wildcards, control characters and empty levels, and of no server's own topics.
    public static func isPlain(_ text: String) -> Bool {
        !text.isEmpty && !text.hasPrefix("$")
            && text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F && $0 != "+" && $0 != "#" }
            && text.split(separator: "/", omittingEmptySubsequences: false).allSatisfy { !$0.isEmpty }
    }

    private var own: String { "\(prefix)/\(gateway)" }
}
