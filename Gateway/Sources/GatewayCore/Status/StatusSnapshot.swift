/// What a ``StatusBoard`` holds at one time, or what has changed in it since another.
///
/// It is the JSON of `GET /status` and of the events of `GET /events`. Times are milliseconds since 1970 in UTC, so that a
/// snapshot of many devices is short. Members without a value are absent.
public struct StatusSnapshot: Codable, Hashable, Sendable {
    /// Whether the snapshot holds everything. Otherwise `devices`, `values` and `refusals` hold only what has changed and
    /// replaces what was sent before, and `removed` names the devices that are no longer held.
    public var whole: Bool
    public var time: Int64
    public var gateway: Gateway
    public var broker: Broker
    public var queue: Queue
    public var counts: Counts
    /// In no particular order.
    public var devices: [Device]
    /// The names of devices that are no longer held. Empty if the snapshot is whole.
    public var removed: [String]
    /// The last value of each characteristic, oldest first.
    public var values: [Value]
    /// The refused commands, oldest first.
    public var refusals: [Refusal]

    public struct Gateway: Codable, Hashable, Sendable {
        public var name: String
        public var version: String
        public var started: Int64
    }

    public struct Broker: Codable, Hashable, Sendable {
        /// The host and port, without user and password.
        public var address: String
        public var connected: Bool
        /// The time of the last change of `connected`.
        public var since: Int64
        /// Why there is no connection.
        public var reason: String?
    }

    /// The values that the broker has not acknowledged.
    public struct Queue: Codable, Hashable, Sendable {
        /// The number of values that wait.
        public var depth: Int
        /// The number of values stored since the start.
        public var stored: Int
        /// The number of values acknowledged since the start.
        public var acknowledged: Int
        /// The number of values that the limits of the store have dropped since the start.
        public var dropped: Int
        /// The depth over time.
        public var history: History
    }

    public struct Counts: Codable, Hashable, Sendable {
        public var devices: Int
        /// The number of devices with a link.
        public var connected: Int
        /// The number of reports of devices since the start.
        public var reports: Int
        /// The number of refused commands since the start.
        public var refusals: Int
    }

    /// Numbers in steps of five seconds, at most sixty.
    public struct History: Codable, Hashable, Sendable {
        /// The number of the last step; steps are counted from the start of the gateway.
        public var end: Int
        /// The numbers of the steps up to `end`; `null` where there is none.
        public var values: [Int?]

        public init(end: Int, values: [Int?]) {
            (self.end, self.values) = (end, values)
        }
    }

    public struct Device: Codable, Hashable, Sendable {
        /// The name in topics.
        public var device: String
        /// The address with colons.
        public var address: String
        /// The name that the device advertises. It can have any characters: show it as text only.
        public var name: String?
        /// The smoothed strength in dBm.
        public var strength: Int?
        /// The time of the last report.
        public var reported: Int64?
        public var link: LinkStatus
        /// More about the link, such as the reason of a failure or the gateway that has the link.
        public var detail: String?
        public var readings: [StatusReading]
        /// The smoothed strength over time.
        public var history: History
    }

    public struct Value: Codable, Hashable, Sendable {
        public var device: String
        public var service: String
        public var characteristic: String
        public var text: String
        public var time: Int64
    }

    public struct Refusal: Codable, Hashable, Sendable {
        /// Counts from 1.
        public var number: Int
        public var time: Int64
        /// The command, such as `write c0ffee00180d/180f/2a19`.
        public var what: String
        public var why: String
    }
}

/// The state of the link to a device.
public enum LinkStatus: String, Codable, Hashable, Sendable {
    /// The gateway does not connect the device.
    case none
    /// The gateway is to connect the device and waits, for example for a free slot.
    case waiting
    case connecting
    case connected
    /// Another gateway connects the device.
    case elsewhere
}

/// A decoded value of a device, for display.
public struct StatusReading: Codable, Hashable, Sendable {
    /// The quantity in lower snake case, such as `temperature`.
    public var name: String
    public var value: PayloadValue
    /// The unit, such as `°C`; empty if there is none.
    public var unit: String

    public init(name: String, value: PayloadValue, unit: String = "") {
        (self.name, self.value, self.unit) = (name, value, unit)
    }
}
