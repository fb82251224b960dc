public import Foundation

/// A GATT service of a virtual peripheral.
///
/// ```swift
/// let heartRate = VirtualService(
///     "180D",
///     characteristics: [
///         VirtualCharacteristic("2A37", [.notify], notifications: .cycle([[0, 72], [0, 74]], every: 1)),
///         VirtualCharacteristic("2A38", [.read], value: [1]),
///     ])
/// ```
///
/// Handles are given as a peripheral's own server does: in the order of the list, with a descriptor for subscriptions
/// (`2902`) after each characteristic that notifies or indicates. The attributes of one peripheral have 65,535 handles; to
/// add a peripheral that needs more to a simulator is a programming error.
public struct VirtualService: Hashable, Sendable {
    /// Short (`180D`) or long.
    public var uuid: String
    /// False for a service that exists only to be included by others.
    public var isPrimary: Bool
    /// The handle of its declaration; nil for the next free one.
    public var handle: UInt16?
    public var characteristics: [VirtualCharacteristic]
    /// The UUIDs of services of the same peripheral that it includes; unknown ones are ignored.
    public var includes: [String]
    /// Seconds after the services are resolved until BlueZ shows this one, 0 to 1e9: late objects, which some clients miss.
    public var appearsAfter: TimeInterval { didSet { appearsAfter = Limits.seconds.nearest(to: appearsAfter) } }
    /// Whether the UUID of one that appears late is among the device's from the beginning, or only when it appears.
    public var isAnnounced: Bool

    public init(
        _ uuid: String, isPrimary: Bool = true, characteristics: [VirtualCharacteristic] = [],
        includes: [String] = [], handle: UInt16? = nil, appearsAfter: TimeInterval = 0,
        isAnnounced: Bool = true
    ) {
        self.uuid = uuid
        self.isPrimary = isPrimary
        self.characteristics = characteristics
        self.includes = includes
        self.handle = handle
        self.appearsAfter = Limits.seconds.nearest(to: appearsAfter)
        self.isAnnounced = isAnnounced
    }
}

/// A characteristic of a virtual peripheral.
public struct VirtualCharacteristic: Hashable, Sendable {
    /// Short (`2A37`) or long.
    public var uuid: String
    /// What it supports; a request for anything else is refused, as by a peripheral's server.
    public var flags: Set<CharacteristicFlag>
    /// What a read returns, until it is written or notified.
    public var value: [UInt8]
    public var descriptors: [VirtualDescriptor]
    /// What it notifies or indicates unasked while a central is subscribed; nil for nothing.
    public var notifications: NotificationSource?
    /// The UUID of a characteristic of the same peripheral that notifies whatever is written here; nil for none.
    public var echo: String?

    public init(
        _ uuid: String, _ flags: Set<CharacteristicFlag> = [.read], value: [UInt8] = [],
        descriptors: [VirtualDescriptor] = [], notifications: NotificationSource? = nil, echo: String? = nil
    ) {
        self.uuid = uuid
        self.flags = flags
        self.value = value
        self.descriptors = descriptors
        self.notifications = notifications
        self.echo = echo
    }
}

/// A descriptor of a virtual peripheral. Those for subscriptions, `2902`, and for extended properties, `2900`, need not be
/// given.
public struct VirtualDescriptor: Hashable, Sendable {
    /// Short (`2901`) or long.
    public var uuid: String
    public var value: [UInt8]
    /// Whether it can be written, read or both; BlueZ does not report this.
    public var flags: Set<CharacteristicFlag>

    public init(_ uuid: String, value: [UInt8] = [], flags: Set<CharacteristicFlag> = [.read]) {
        self.uuid = uuid
        self.value = value
        self.flags = flags
    }

    /// A user description (`2901`).
    public static func description(_ text: String) -> VirtualDescriptor {
        VirtualDescriptor("2901", value: Array(text.utf8))
    }
}

/// What a characteristic supports, by BlueZ's names; in the order in which BlueZ lists them.
public enum CharacteristicFlag: String, Hashable, Sendable, Codable, CaseIterable {
    case broadcast
    case read
    case writeWithoutResponse = "write-without-response"
    case write
    case notify
    case indicate
    case authenticatedSignedWrites = "authenticated-signed-writes"
    case extendedProperties = "extended-properties"
    case reliableWrite = "reliable-write"
    case writableAuxiliaries = "writable-auxiliaries"
}

/// What a characteristic sends unasked while a central is subscribed to it.
public enum NotificationSource: Hashable, Sendable {
    /// One value after another, and again from the first, every so many seconds: 0.001 to 1e9, or else the nearest bound.
    case cycle([[UInt8]], every: TimeInterval)
    /// A number that counts from 0 for each subscription, little-endian in `size` bytes (1 to 512, or else the nearest
    /// bound), every so many seconds.
    case counter(size: Int, every: TimeInterval)

    /// Seconds between two values.
    var interval: TimeInterval {
        switch self {
        case .cycle(_, let interval), .counter(_, let interval):
            Limits.notificationInterval.nearest(to: interval)
        }
    }

    /// Returns the value at a position in the sequence.
    func value(at index: Int) -> [UInt8] {
        switch self {
        case .cycle(let values, _): values.isEmpty ? [] : values[index % values.count]
        case .counter(let size, _): Self.number(index, size: size)
        }
    }

    /// Returns a number, little-endian, with zeros up to `size` bytes.
    static func number(_ number: Int, size: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Limits.counterSize.nearest(to: size))
        for place in 0..<min(8, bytes.count) {
            bytes[place] = UInt8(truncatingIfNeeded: UInt64(number) >> UInt64(8 * place))
        }
        return bytes
    }
}
