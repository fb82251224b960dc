import BlueCapFutures
import Foundation
import BlueCapGATT

/// The state that a manager with a restore identifier keeps, as a value: everything that was under way and is to be
/// resumed.
struct RestorationState: KeptState {
    /// A subscribed characteristic.
    struct Subscription: Codable, Equatable, Sendable {
        var service: CBUUID
        var characteristic: CBUUID
        /// Distinguishes characteristics with the same UUID.
        var handle: UInt16
        /// `true` or `nil`.
        var overSocket: Bool?

        var transport: NotificationTransport { overSocket == true ? .socket : .signals }
    }

    /// A peripheral that was connected, or to be connected.
    struct Connection: Codable, Equatable, Sendable {
        var address: BluetoothAddress
        var addressType: BluetoothAddress.AddressType
        /// The three arguments of `connect`; `nil` for no limit, because JSON has no number for it.
        var timeoutRetries: UInt?
        var disconnectRetries: UInt?
        var connectionTimeout: TimeInterval?
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
            keys.isEmpty ? nil : keys.ordered().map { Device(address: $0.address, addressType: $0.addressType) }
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

    var problem: String? {
        connections.lazy.compactMap(\.connectionTimeout).first { $0 < 0 }.map { "\($0) s is no time-out." }
    }
}

extension ScanRequest: Decodable {
    /// The values pass the same checks as the arguments of a call.
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let options = ScanOptions(
            allowsDuplicates: try container.decode(Bool.self, forKey: .allowsDuplicates),
            rssiThreshold: try container.decodeIfPresent(Int.self, forKey: .rssiThreshold),
            pattern: try container.decodeIfPresent(String.self, forKey: .pattern),
            watchdog: Duration(seconds: try container.decode(TimeInterval.self, forKey: .watchdog)))
        try self.init(services: container.decodeIfPresent([CBUUID].self, forKey: .services), options: options)
    }
}
