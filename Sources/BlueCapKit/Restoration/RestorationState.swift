import Foundation
import GATT

/// The state that a manager with a restore identifier keeps, as a value: everything that was under way and is to be
/// resumed.
struct RestorationState: KeptState {
    /// A subscribed characteristic.
    struct Subscription: Equatable, Sendable {
        var service: CBUUID
        var characteristic: CBUUID
        /// Distinguishes characteristics with the same UUID.
        var handle: UInt16
        var transport = NotificationTransport.signals
    }

    /// A peripheral that was connected, or to be connected.
    struct Connection: Equatable, Sendable {
        var address: BluetoothAddress
        var addressType: BluetoothAddress.AddressType
        /// The three arguments of `connect`.
        var timeoutRetries = UInt.max
        var disconnectRetries = UInt.max
        var connectionTimeout = TimeInterval.infinity
        var subscriptions: [Subscription] = []

        var key: PeripheralKey { PeripheralKey(address, addressType) }
    }

    /// A device that the manager has a bond with. Its keys are not known here.
    struct Device: Codable, Hashable, Sendable {
        var address: BluetoothAddress
        var addressType: BluetoothAddress.AddressType

        var key: PeripheralKey { PeripheralKey(address, addressType) }

        /// Returns the devices in ascending order; `nil` for none, so that the file does not mention them.
        static func list(_ keys: [PeripheralKey]) -> [Device]? {
            keys.isEmpty ? nil : keys.sorted().map { Device(address: $0.address, addressType: $0.addressType) }
        }
    }

    static let folder = "central"
    static let version = 1

    /// In ascending order of their keys, so that equal states give equal files.
    var connections: [Connection] = []
    /// The scan that was running.
    var scan: ScanRequest?
    /// The bonds that the manager has made, in ascending order; `nil` if there are none.
    var bonds: [Device]?
}

extension RestorationState.Subscription: Codable {
    private enum CodingKeys: String, CodingKey { case service, characteristic, handle, overSocket }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(service, forKey: .service)
        try container.encode(characteristic, forKey: .characteristic)
        try container.encode(handle, forKey: .handle)
        if transport == .socket { try container.encode(true, forKey: .overSocket) }
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        service = try container.decode(CBUUID.self, forKey: .service)
        characteristic = try container.decode(CBUUID.self, forKey: .characteristic)
        handle = try container.decode(UInt16.self, forKey: .handle)
        transport = try container.decodeIfPresent(Bool.self, forKey: .overSocket) == true ? .socket : .signals
    }
}

extension RestorationState.Connection: Codable {
    private enum CodingKeys: String, CodingKey {
        case address, addressType, timeoutRetries, disconnectRetries, connectionTimeout, subscriptions
    }

    /// A value without a limit is left out, because JSON has no number for it.
    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(address, forKey: .address)
        try container.encode(addressType, forKey: .addressType)
        if timeoutRetries != .max { try container.encode(timeoutRetries, forKey: .timeoutRetries) }
        if disconnectRetries != .max { try container.encode(disconnectRetries, forKey: .disconnectRetries) }
        if connectionTimeout.isFinite { try container.encode(connectionTimeout, forKey: .connectionTimeout) }
        try container.encode(subscriptions, forKey: .subscriptions)
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        address = try container.decode(BluetoothAddress.self, forKey: .address)
        addressType = try container.decode(BluetoothAddress.AddressType.self, forKey: .addressType)
        timeoutRetries = try container.decodeIfPresent(UInt.self, forKey: .timeoutRetries) ?? .max
        disconnectRetries = try container.decodeIfPresent(UInt.self, forKey: .disconnectRetries) ?? .max
        connectionTimeout = try container.decodeIfPresent(TimeInterval.self, forKey: .connectionTimeout) ?? .infinity
        subscriptions = try container.decode([RestorationState.Subscription].self, forKey: .subscriptions)
        guard connectionTimeout >= 0 else {
            throw RestorationDamage.unreadable("\(connectionTimeout) s is no time-out.")
        }
    }
}

extension ScanRequest: Codable {
    private enum CodingKeys: String, CodingKey { case services, allowsDuplicates, rssiThreshold, pattern, watchdog }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(services?.sorted(by: CBUUID.precedes), forKey: .services)
        try container.encode(allowsDuplicates, forKey: .allowsDuplicates)
        try container.encodeIfPresent(rssiThreshold, forKey: .rssiThreshold)
        try container.encodeIfPresent(pattern, forKey: .pattern)
        // 0 for never, as in the option.
        try container.encode(watchdog ?? 0, forKey: .watchdog)
    }

    /// The values pass the same checks as the arguments of a call.
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let options = ScanOptions(
            allowsDuplicates: try container.decode(Bool.self, forKey: .allowsDuplicates),
            rssiThreshold: try container.decodeIfPresent(Int.self, forKey: .rssiThreshold),
            pattern: try container.decodeIfPresent(String.self, forKey: .pattern),
            watchdog: try container.decode(TimeInterval.self, forKey: .watchdog))
        try self.init(services: container.decodeIfPresent([CBUUID].self, forKey: .services), options: options)
    }
}
