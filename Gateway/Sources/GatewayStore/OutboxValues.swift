public import Foundation
public import GatewayCore

/// A value to be stored and published.
public struct NewValue: Hashable, Sendable {
    /// The peripheral that the value comes from. Values of one peripheral are published in the order of their storage.
    public var device: DeviceName
    /// The topic, without wildcards.
    public var topic: String
    /// When the gateway received the value.
    public var time: Date
    /// A JSON object in UTF-8. The names `sequence`, `time`, `repeated`, `dropped` and `restarted` are the envelope's.
    public var body: Data

    public init(device: DeviceName, topic: String, time: Date, body: Data) {
        (self.device, self.topic, self.time, self.body) = (device, topic, time, body)
    }
}

/// A value in the outbox.
public struct StoredValue: Hashable, Sendable, Identifiable {
    /// Identifies the value among all values of the outbox. Later values have greater identifiers, also after a restart.
    public let id: Int64
    public let device: DeviceName
    /// The number of the value among those of its device.
    public let sequence: Int64
    public let topic: String
    /// When the gateway received the value, in milliseconds since 1970, UTC.
    public let milliseconds: Int64
    public let body: Data
    /// How many values of the device immediately before this one were dropped without an acknowledgement.
    public let dropped: Int64
    /// Whether it is unknown what came before this value: a damaged store was replaced, or the outbox has forgotten the
    /// device's last number (``OutboxLimits/devices``). The number is greater than all earlier ones of the device.
    public let isRestarted: Bool

    /// Returns the message's payload: `sequence`, `time`, then `repeated`, `dropped` and `restarted` if they apply, and
    /// then the members of the body.
    ///
    /// - Parameter repeated: Whether the value was published before, or may have been.
    public func payload(repeated: Bool) -> Data {
        var text = #"{"sequence":\#(sequence),"time":"\#(Self.text(ofMilliseconds: milliseconds))""#
        if repeated { text += #","repeated":true"# }
        if dropped > 0 { text += #","dropped":\#(dropped)"# }
        if isRestarted { text += #","restarted":true"# }
        var result = Data(text.utf8)
        let members = Self.members(of: body) ?? body[body.endIndex...]
        if !members.isEmpty { result.append(UInt8(ascii: ",")) }
        result.append(members)
        result.append(UInt8(ascii: "}"))
        return result
    }

    /// Returns what a JSON object has between its braces, without white space at both ends, or `nil` if the text does not
    /// begin and end with braces.
    static func members(of body: Data) -> Data? {
        func trimmed(_ part: Data) -> Data {
            let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }
            guard let first = part.firstIndex(where: { !isSpace($0) }),
                let last = part.lastIndex(where: { !isSpace($0) })
            else { return part[part.endIndex...] }
            return part[first...last]
        }
        let object = trimmed(body)
        guard object.count >= 2, object.first == UInt8(ascii: "{"), object.last == UInt8(ascii: "}") else { return nil }
        return trimmed(object.dropFirst().dropLast())
    }

    /// The times that RFC 3339 can express, from 1970: to the end of the year 9999.
    static let times: ClosedRange<Int64> = 0...253_402_300_799_999

    /// Returns a time in milliseconds since 1970. A time outside of ``times`` becomes the nearest one, not a number 1970.
    static func milliseconds(of time: Date) -> Int64 {
        let value = (time.timeIntervalSince1970 * 1000).rounded()
        guard !value.isNaN else { return times.lowerBound }
        return Int64(min(max(value, Double(times.lowerBound)), Double(times.upperBound)))
    }

    /// Returns a time as RFC 3339 writes it, in UTC and with milliseconds.
    static func text(ofMilliseconds value: Int64) -> String {
        let value = min(max(value, times.lowerBound), times.upperBound)
        var seconds = time_t(value / 1000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func digits(_ number: Int64, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        let date = [
            digits(Int64(parts.tm_year) + 1900, 4), digits(Int64(parts.tm_mon) + 1, 2), digits(Int64(parts.tm_mday), 2),
        ].joined(separator: "-")
        let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map { digits(Int64($0), 2) }.joined(separator: ":")
        return "\(date)T\(clock).\(digits(value % 1000, 3))Z"
    }
}

/// A value that the broker has acknowledged.
public struct Delivery: Hashable, Sendable {
    /// ``StoredValue/id``.
    public var id: Int64
    /// The number of dropped values that the payload has reported. What was dropped since is reported by a later value.
    public var dropped: Int64

    public init(_ value: StoredValue) { (id, dropped) = (value.id, value.dropped) }
    init(id: Int64, dropped: Int64) { (self.id, self.dropped) = (id, dropped) }
}

/// What an outbox holds at most. If a limit is reached, the oldest values are dropped.
public struct OutboxLimits: Hashable, Sendable {
    /// The size of all values, in bytes: bodies, topics, and 64 bytes for each value. The database file may be twice as
    /// large, for instance if each body is a little larger than half a page of 4 KiB; its log has a few MiB more.
    public var bytes: Int
    /// How long a value is kept. Only time during which the outbox is open counts. The wall clock has no influence.
    public var age: Duration
    /// The size of one value's body, in bytes. Not more than the broker accepts.
    public var bodyBytes: Int
    /// For how many devices the last sequence number is kept. Beyond it, the number of the device that was silent for the
    /// longest time is removed; if that device returns, its numbers continue above all that were removed.
    public var devices: Int

    public init(
        bytes: Int = 256 << 20, age: Duration = .seconds(7 * 86_400), bodyBytes: Int = 64 << 10, devices: Int = 100_000
    ) {
        (self.bytes, self.age, self.bodyBytes, self.devices) = (bytes, age, bodyBytes, devices)
    }
}

/// Why a value left the outbox without an acknowledgement.
public enum DropCause: String, Hashable, Sendable, CaseIterable {
    /// ``OutboxLimits/bytes`` was reached.
    case size
    /// The value was older than ``OutboxLimits/age``.
    case age
    /// The transport cannot send the value.
    case refused
}

/// What an outbox contains.
public struct OutboxStatistics: Hashable, Sendable {
    /// The number of values.
    public var depth = 0
    /// The size of the values as ``OutboxLimits/bytes`` counts it.
    public var bytes = 0
    /// The age of the oldest value as ``OutboxLimits/age`` counts it, or `nil` if there is none.
    public var oldestAge: Duration?
    /// How many values were dropped since the store was begun, also by earlier processes.
    public var dropped: [DropCause: Int64] = [:]

    public init(
        depth: Int = 0, bytes: Int = 0, oldestAge: Duration? = nil, dropped: [DropCause: Int64] = [:]
    ) {
        (self.depth, self.bytes, self.oldestAge, self.dropped) = (depth, bytes, oldestAge, dropped)
    }
}

/// Why values were not stored.
public enum OutboxError: Error, Hashable, Sendable, CustomStringConvertible {
    /// No space is left on the file system, or less than the 4 MiB that the store's log may need. What was stored before
    /// stays, and can be sent and deleted. Later calls succeed if there is space again, or if values were deleted.
    case diskFull(path: String)
    /// Another process has opened the file.
    case inUse(path: String)
    /// The file cannot be opened, or is not an outbox of this version.
    case cannotOpen(path: String, reason: String)
    /// A value cannot be stored. Nothing of the call was stored.
    case invalid(reason: String)
    /// More values wait to be stored than ``Courier/Options/waiting`` allows. Nothing of the call was stored.
    case overloaded(waiting: Int)
    /// SQLite has failed, with its extended result code.
    case failed(path: String, code: Int32, reason: String)

    public var description: String {
        switch self {
        case .diskFull(let path):
            "No space is left on the file system of \(path). Values are not stored until there is; free some, or lower "
                + "the outbox's size."
        case .inUse(let path): "Another process has opened \(path). End it, or give this gateway another file."
        case .cannotOpen(let path, let reason): "Cannot open \(path): \(reason)"
        case .invalid(let reason): "The value cannot be stored: \(reason)"
        case .overloaded(let waiting):
            "More values are to be stored than may wait; \(waiting) wait already. Submit fewer at once, or lower their rate."
        case .failed(let path, let code, let reason): "SQLite failed with code \(code) for \(path): \(reason)"
        }
    }
}
