import Foundation
import GATT

extension RestorationState: KeptState {
    static var folder: String { "central" }

    /// The layout of the file that this version writes. A change that older versions would misread raises it.
    static let version = 1

    private static let format = "bluecap central state"

    /// The state as a file's contents: JSON, for people to read too.
    func encoded(for identifier: String) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(
            File(
                head: KeptHead(format: Self.format, version: Self.version, identifier: identifier),
                connections: connections.map(File.Connection.init), scan: scan.map(File.Scan.init)))
    }

    /// - Throws: ``RestorationDamage`` for anything that `encoded(for:)` did not write for this identifier.
    init(decoding data: Data, for identifier: String) throws(RestorationDamage) {
        let decoder = JSONDecoder()
        do {
            // The head alone first: of the rest of a later version nothing is known.
            let head = try decoder.decode(KeptHead.self, from: data)
            try head.check(Self.format, upTo: Self.version, identifier)
            let file = try decoder.decode(File.self, from: data)
            self.init(
                connections: try file.connections.map { try $0.connection },
                scan: try file.scan.map { try $0.request })
        } catch let damage as RestorationDamage {
            throw damage
        } catch {
            throw .unreadable("\(error)")
        }
    }
}

/// The file, in its own words: what has no limit is left out, since JSON has no number for it.
private struct File: Codable {
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

        /// Through the same checks as a program's own words.
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

    var head: KeptHead
    var connections: [Connection]
    var scan: Scan?

    private enum CodingKeys: String, CodingKey { case connections, scan }

    init(head: KeptHead, connections: [Connection], scan: Scan?) {
        self.head = head
        self.connections = connections
        self.scan = scan
    }

    init(from decoder: any Decoder) throws {
        head = try KeptHead(from: decoder)
        let members = try decoder.container(keyedBy: CodingKeys.self)
        connections = try members.decode([Connection].self, forKey: .connections)
        scan = try members.decodeIfPresent(Scan.self, forKey: .scan)
    }

    func encode(to encoder: any Encoder) throws {
        try head.encode(to: encoder)
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(connections, forKey: .connections)
        try members.encodeIfPresent(scan, forKey: .scan)
    }
}
