public import Foundation

/// The state of a link, on ``Topics/link(_:)``; retained.
public struct LinkPayload: Payload {
    /// Since when.
    public var time: String
    /// The address, as BlueZ writes it.
    public var address: String
    /// The name of the peripheral, without control characters.
    public var name: String?
    /// The state.
    public var state: State
    /// Why the link is down, as one sentence.
    public var reason: String?
    /// The strength of the link in dBm.
    public var rssi: Int?

    /// The state of a link.
    public enum State: String, Hashable, Sendable, Codable, CaseIterable {
        case connecting, connected, disconnected
    }

    /// Creates the payload; the reason is shortened to 256 characters.
    public init(
        device: DeviceName, name: String? = nil, state: State, reason: String? = nil, rssi: Int? = nil, time: Date
    ) {
        (self.time, address, self.name) = (PayloadTime.text(time), device.address, PayloadText.name(name))
        (self.state, self.reason, self.rssi) = (state, reason.map { String($0.prefix(256)) }, rssi)
    }
}

/// The state of a gateway, on ``Topics/state``; retained, and the will of its connection.
public struct GatewayStatePayload: Payload {
    /// The state.
    public var state: State
    /// The name of the gateway.
    public var gateway: String
    /// Since when. The will has the time at which its connection began.
    public var time: String
    /// The version of the gateway.
    public var version: String
    /// Whether the gateway scans; absent if it is offline.
    public var scanning: Bool?
    /// The number of links; absent if it is offline.
    public var links: Int?

    /// Whether a gateway is connected to the broker.
    public enum State: String, Hashable, Sendable, Codable, CaseIterable {
        case online, offline
    }

    /// Creates the payload.
    public init(
        state: State, gateway: String, version: String, scanning: Bool? = nil, links: Int? = nil, time: Date
    ) {
        (self.state, self.gateway, self.time, self.version) = (state, gateway, PayloadTime.text(time), version)
        (self.scanning, self.links) = (scanning, links)
    }
}

/// The newest readings of a device, on ``Topics/device(_:)``; retained. One gateway at a time, its reporter, publishes it.
public struct DevicePayload: Payload {
    /// When the reporter last received the device.
    public var time: String
    /// The address, as BlueZ writes it.
    public var address: String
    /// The name of the device, without control characters.
    public var name: String?
    /// The reporter.
    public var gateway: String
    /// The term of the reporter, from 1 to ``termLimit``. The highest one counts, and of several gateways with one term the
    /// first by name.
    public var term: Int
    /// The smoothed strength at the reporter, in dBm.
    public var rssi: Int?
    /// Whether the device was received in the last ``GatewayConfiguration/HomeAssistantOptions/absentAfter``.
    public var present: Bool
    /// Whether the reporter has a link; absent if no gateway is configured to connect the device.
    public var linked: Bool?
    /// The newest readings by quantity.
    public var readings: [String: PayloadValue]
    /// The units by quantity.
    public var units: [String: String]
    /// The discovery messages that exist, as `component/object`, from A to Z.
    public var entities: [String]

    /// The highest term that is accepted.
    public static let termLimit = 1_000_000_000_000
}
