public import BlueCapKit
import Foundation

/// A peripheral of a configuration or a command.
public enum PeripheralSelector: Hashable, Sendable, CustomStringConvertible {
    /// An address.
    case address(DeviceName)
    /// An exact name.
    case name(String)

    /// Reads an address or, for another text of 1 to 248 bytes without control characters, a name.
    public init?(_ text: String) {
        if let device = DeviceName(text) {
            self = .address(device)
        } else if (1...248).contains(text.utf8.count), PayloadText.name(text) == text {
            self = .name(text)
        } else {
            return nil
        }
    }

    /// The address or the name.
    public var description: String {
        switch self {
        case .address(let device): device.address
        case .name(let name): name
        }
    }
}

/// A name, or the beginning of names. Upper and lower case differ.
public struct NamePattern: Hashable, Sendable, CustomStringConvertible {
    /// The pattern as it is written in the configuration: a name, or a beginning and `*`.
    public let description: String

    /// Returns `nil` for a text that is empty, has more than 248 bytes (the longest Bluetooth name), a control character, or
    /// a `*` that is not at the end.
    public init?(_ text: String) {
        guard (1...249).contains(text.utf8.count), !text.dropLast().contains("*"),
            text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
        else { return nil }
        description = text
    }

    /// Whether a name matches.
    public func matches(_ name: String) -> Bool {
        description.hasSuffix("*") ? name.hasPrefix(description.dropLast()) : name == description
    }
}

/// The peripherals that a rule is for.
public enum PeripheralPattern: Hashable, Sendable, CustomStringConvertible {
    /// The peripheral with an address.
    case address(DeviceName)
    /// The peripherals with a name. Any peripheral can advertise any name: a rule that permits writing should have an address.
    case name(NamePattern)

    /// Reads an address, a name, the beginning of a name and `*`, or `*`.
    public init?(_ text: String) {
        if let device = DeviceName(text) {
            self = .address(device)
        } else if let name = NamePattern(text) {
            self = .name(name)
        } else {
            return nil
        }
    }

    /// The pattern as it is written in the configuration.
    public var description: String {
        switch self {
        case .address(let device): device.address
        case .name(let name): name.description
        }
    }

    /// Whether a peripheral matches. A peripheral without a name matches `*`.
    public func matches(device: DeviceName?, name: String?) -> Bool {
        switch self {
        case .address(let address): address == device
        case .name(let pattern): pattern.matches(name ?? "")
        }
    }
}

/// The characteristics that a rule is for.
public struct CharacteristicPattern: Hashable, Sendable, CustomStringConvertible {
    /// The service; `nil` for all.
    public let service: CBUUID?
    /// The characteristic; `nil` for all of the service.
    public let characteristic: CBUUID?

    /// Reads `SERVICE/CHARACTERISTIC`, `SERVICE/*`, `*/CHARACTERISTIC` or `*`.
    public init?(_ text: String) {
        let parts =
            text == "*" ? ["*", "*"] : text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2 else { return nil }
        let uuids = parts.map { CBUUID(validating: $0) }
        guard zip(parts, uuids).allSatisfy({ $0 == "*" || $1 != nil }) else { return nil }
        (service, characteristic) = (uuids[0], uuids[1])
    }

    /// The pattern as it is written in the configuration.
    public var description: String {
        guard service != nil || characteristic != nil else { return "*" }
        return "\(service.map(Topics.text(of:)) ?? "*")/\(characteristic.map(Topics.text(of:)) ?? "*")"
    }

    /// Whether a characteristic matches.
    public func matches(service: CBUUID, characteristic: CBUUID) -> Bool {
        (self.service.map { $0 == service } ?? true) && (self.characteristic.map { $0 == characteristic } ?? true)
    }
}
