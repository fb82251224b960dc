public import BlueCapKit
public import Foundation

/// The body of a stored message: the store puts the sequence number and the time before its members.
public protocol StoredPayload: Payload {}

/// The decoded readings of a sensor's advertisement, on ``Topics/reading(_:)``.
public struct ReadingPayload: StoredPayload {
    /// The format, such as `bthome`.
    public var format: String
    /// The strength in dBm.
    public var rssi: Int?
    /// The readings by name: the quantity, such as `temperature`, with `_1`, `_2` and so on if there are several of one kind.
    public var readings: [String: PayloadValue]
    /// The units by name; readings without a unit are absent.
    public var units: [String: String]?

    /// A reading: a name, its value and its unit.
    public struct Reading: Hashable, Sendable {
        /// The name, as `SensorValue.name` of the library.
        public var name: String
        /// The value.
        public var value: PayloadValue
        /// The unit, such as `°C`; empty if there is none.
        public var unit: String

        /// Creates a reading.
        public init(_ name: String, _ value: PayloadValue, unit: String = "") {
            (self.name, self.value, self.unit) = (name, value, unit)
        }
    }

    /// The largest number of readings.
    public static let limit = 64

    /// Creates the payload. Of several readings with one name the first is kept. Readings beyond ``limit``, and those whose
    /// names have other characters than lower-case ASCII letters, digits and `_`, are left out.
    public init(format: String, rssi: Int? = nil, readings: [Reading]) {
        (self.format, self.rssi) = (String(format.prefix(64)), rssi)
        (self.readings, units) = ([:], nil)
        var units: [String: String] = [:]
        for reading in readings where Self.isName(reading.name) && self.readings[reading.name] == nil {
            guard self.readings.count < Self.limit else { break }
            self.readings[reading.name] = reading.value
            if !reading.unit.isEmpty { units[reading.name] = String(reading.unit.prefix(16)) }
        }
        if !units.isEmpty { self.units = units }
    }

    /// Whether something is in it that occurs, such as a pressed button.
    public var hasEvent: Bool { readings.keys.contains(where: HomeAssistantEntity.isEvent) }

    /// Creates the readings of a characteristic's value for Home Assistant: the decoded parts by their names, such as
    /// `heart_rate`. A part of a format without names is `value_` and the UUID, such as `value_2a37`. A battery level is
    /// `battery`, in percent, as that of an advertisement.
    public init(_ value: ValuePayload, of characteristic: CBUUID) {
        let parts = (value.decoded ?? [:]).sorted { $0.key < $1.key }
        self.init(
            format: "characteristic",
            readings: parts.map { name, part in
                if characteristic == CBUUID(string: "2A19") { return Reading("battery", part, unit: "%") }
                let isUnnamed = ValueDecoder.unnamed.contains(name)
                return Reading(
                    Self.name(isUnnamed ? "value \(Topics.text(of: characteristic))" : name), part,
                    unit: value.units?[name] ?? "")
            })
    }

    /// Returns the name of a reading from any text.
    private static func name(_ text: String) -> String {
        let words = text.lowercased().split { !($0.isASCII && ($0.isLetter || $0.isNumber)) }
        return String(words.joined(separator: "_").prefix(48))
    }

    /// Whether a text is the name of a reading: 1 to 48 lower-case ASCII letters, digits and `_`.
    static func isName(_ text: String) -> Bool {
        (1...48).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F }
    }
}

/// A value of a characteristic, on ``Topics/value(_:service:characteristic:)``.
public struct ValuePayload: StoredPayload {
    /// The bytes in hexadecimal.
    public var raw: String
    /// How the value was obtained.
    public var source: Source
    /// The parts of the value by name, if the format is known.
    public var decoded: [String: PayloadValue]?
    /// The units of the parts that have one.
    public var units: [String: String]?

    /// How a value was obtained.
    public enum Source: String, Hashable, Sendable, Codable, CaseIterable {
        case notify, read
    }

    /// Creates the payload.
    ///
    /// - Parameters:
    ///   - data: The bytes.
    ///   - source: How they were obtained.
    ///   - decoder: How they are decoded; without it the payload has only the bytes.
    public init(_ data: Data, source: Source, decoder: ValueDecoder? = nil) {
        (raw, self.source) = (PayloadBytes.text(data), source)
        guard let parts = decoder?.decode(data), !parts.isEmpty else { return }
        decoded = parts.mapValues(\.value)
        let units = parts.compactMapValues(\.unit)
        self.units = units.isEmpty ? nil : units
    }
}

/// A gap: values of a characteristic may have been missed, on ``Topics/gap(_:service:characteristic:)``.
public struct GapPayload: StoredPayload {
    /// Why.
    public var reason: Reason

    /// Why values may have been missed.
    public enum Reason: String, Hashable, Sendable, Codable, CaseIterable {
        /// The link was lost, and is up again.
        case linkLost
        /// The gateway was not running.
        case restarted
        /// More values came than could be stored.
        case overload
    }

    /// Creates the payload.
    public init(reason: Reason) { self.reason = reason }
}
