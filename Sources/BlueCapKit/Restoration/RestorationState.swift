import Foundation
import GATT

/// The state that a manager with a restore identifier keeps, as a value: everything that was under way and is to be
/// resumed.
struct RestorationState: Equatable, Sendable {
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

    /// In ascending order of their keys, so that equal states give equal files.
    var connections: [Connection] = []
    /// The scan that was running.
    var scan: ScanRequest?

    var isEmpty: Bool { connections.isEmpty && scan == nil }
}

extension RestorationState: KeptState {
    static var folder: String { "central" }
    static let format = "bluecap central state"
    static let version = 1

    var contents: Contents {
        Contents(connections: connections.map(Contents.Connection.init), scan: scan.map(Contents.Scan.init))
    }

    init(_ contents: Contents) throws {
        self.init(
            connections: try contents.connections.map { try $0.connection },
            scan: try contents.scan.map { try $0.request })
    }
}

extension RestorationState {
    /// The form of the file: a value without a limit is left out, because JSON has no number for it.
    struct Contents: Codable {
        struct Subscription: Codable {
            var service: CBUUID
            var characteristic: CBUUID
            var handle: UInt16
            var overSocket: Bool?
        }

        struct Connection: Codable {
            var address: String
            var addressType: BluetoothAddress.AddressType
            var timeoutRetries: UInt?
            var disconnectRetries: UInt?
            var connectionTimeout: TimeInterval?
            var subscriptions: [Subscription]

            init(_ connection: RestorationState.Connection) {
                address = connection.address.description
                addressType = connection.addressType
                timeoutRetries = connection.timeoutRetries == .max ? nil : connection.timeoutRetries
                disconnectRetries = connection.disconnectRetries == .max ? nil : connection.disconnectRetries
                connectionTimeout = connection.connectionTimeout.isFinite ? connection.connectionTimeout : nil
                subscriptions = connection.subscriptions.map {
                    Subscription(
                        service: $0.service, characteristic: $0.characteristic, handle: $0.handle,
                        overSocket: $0.transport == .socket ? true : nil)
                }
            }

            var connection: RestorationState.Connection {
                get throws {
                    guard let address = BluetoothAddress(address) else {
                        throw RestorationDamage.unreadable("\"\(address)\" is no Bluetooth address.")
                    }
                    if let connectionTimeout, connectionTimeout < 0 {
                        throw RestorationDamage.unreadable("\(connectionTimeout) s is no time-out.")
                    }
                    return RestorationState.Connection(
                        address: address, addressType: addressType, timeoutRetries: timeoutRetries ?? .max,
                        disconnectRetries: disconnectRetries ?? .max, connectionTimeout: connectionTimeout ?? .infinity,
                        subscriptions: subscriptions.map {
                            .init(
                                service: $0.service, characteristic: $0.characteristic, handle: $0.handle,
                                transport: $0.overSocket == true ? .socket : .signals)
                        })
                }
            }
        }

        struct Scan: Codable {
            var services: [CBUUID]?
            var allowsDuplicates: Bool
            var rssiThreshold: Int?
            var pattern: String?
            /// 0 for never, as in the option.
            var watchdog: TimeInterval

            init(_ request: ScanRequest) {
                services = request.services?.sorted(by: CBUUID.precedes)
                allowsDuplicates = request.allowsDuplicates
                rssiThreshold = request.rssiThreshold
                pattern = request.pattern
                watchdog = request.watchdog ?? 0
            }

            /// The values pass the same checks as the arguments of a call.
            var request: ScanRequest {
                get throws {
                    var options: [String: Any] = [
                        CBCentralManagerScanOptionAllowDuplicatesKey: allowsDuplicates,
                        CentralManagerScanOptionWatchdogKey: watchdog,
                    ]
                    options[CentralManagerScanOptionRSSIThresholdKey] = rssiThreshold
                    options[CentralManagerScanOptionPatternKey] = pattern
                    return try ScanRequest(services: services, options: options)
                }
            }
        }

        var connections: [Connection]
        var scan: Scan?
    }
}
