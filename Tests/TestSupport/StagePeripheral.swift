import BlueCapKit
public import BlueZSimulator
public import Foundation

/// A peripheral that each stage can provide.
public struct StagePeripheral: Sendable {
    public var name: String
    /// What the server's program registers one after another, each with its services.
    public var applications: [[StageService]]
    /// The UUIDs of services in its advertisement.
    public var advertised: [String]

    public init(name: String, applications: [[StageService]], advertised: [String] = []) {
        self.name = name
        self.applications = applications
        self.advertised = advertised
    }

    public var services: [StageService] { applications.flatMap { $0 } }

    /// Attributes of all kinds, registered as three applications.
    public static let kitchen = StagePeripheral(
        name: "Kitchen",
        applications: [
            [
                StageService(
                    "B0000001-0000-4000-8000-00805F9B34FB",
                    [
                        .init("short", "B0000101-0000-4000-8000-00805F9B34FB", [.read], [1, 2], label: "Hello"),
                        .init("long", "B0000102-0000-4000-8000-00805F9B34FB", [.read], longValue),
                        .init("request", "B0000103-0000-4000-8000-00805F9B34FB", [.read, .write], [0]),
                        .init("command", "B0000104-0000-4000-8000-00805F9B34FB", [.read, .writeWithoutResponse], [0]),
                    ])
            ],
            [
                StageService("180D", [.init("rate", "2A37", [.notify], [0])]),
                StageService(
                    "B0000002-0000-4000-8000-00805F9B34FB",
                    [
                        .init("notify", "B0000201-0000-4000-8000-00805F9B34FB", [.read, .notify], [7]),
                        .init("indicate", "B0000202-0000-4000-8000-00805F9B34FB", [.read, .indicate], [8]),
                    ]),
            ],
            [
                StageService(
                    "B0000003-0000-4000-8000-00805F9B34FB",
                    [
                        .init("left", "B0000301-0000-4000-8000-00805F9B34FB", [.read, .write], [1]),
                        .init("right", "B0000301-0000-4000-8000-00805F9B34FB", [.read, .write], [2]),
                    ])
            ],
        ])

    /// More than a packet holds: several reads for one value.
    public static let longValue = (0..<300).map { UInt8(truncatingIfNeeded: $0) }

    /// What Tests/RadioLab/bin/radio-peripheral wants to know.
    public func description() throws -> Data {
        let applications = applications.map { services in
            services.map { service in
                ["uuid": service.uuid, "characteristics": service.characteristics.map(\.entry)] as [String: Any]
            }
        }
        return try JSONSerialization.data(
            withJSONObject: ["name": name, "applications": applications, "advertised": advertised] as [String: Any],
            options: .sortedKeys)
    }
}

public struct StageService: Sendable {
    public var uuid: String
    public var characteristics: [StageCharacteristic]

    public init(_ uuid: String, _ characteristics: [StageCharacteristic]) {
        self.uuid = uuid
        self.characteristics = characteristics
    }
}

public struct StageCharacteristic: Sendable {
    /// Identifies it on a stage; UUIDs may repeat.
    public var key: String
    public var uuid: String
    public var value: [UInt8]
    /// The text of its descriptor 2901.
    public var label: String?
    let flags: [CharacteristicFlag]
    /// The security that its link must have.
    public var security: AttributeSecurity

    init(
        _ key: String, _ uuid: String, _ flags: [CharacteristicFlag], _ value: [UInt8], label: String? = nil,
        security: AttributeSecurity = .none
    ) {
        self.key = key
        self.uuid = uuid
        self.flags = flags
        self.value = value
        self.label = label
        self.security = security
    }

    var properties: CBCharacteristicProperties {
        flags.reduce(into: []) { properties, flag in
            switch flag {
            case .read: properties.insert(.read)
            case .write: properties.insert(.write)
            case .writeWithoutResponse: properties.insert(.writeWithoutResponse)
            case .notify: properties.insert(.notify)
            case .indicate: properties.insert(.indicate)
            default: break
            }
        }
    }

    fileprivate var entry: [String: Any] {
        let descriptors = label.map { [["uuid": "2901", "value": hex(Array($0.utf8))]] } ?? []
        return [
            "key": key, "uuid": uuid, "flags": flags.map(bluezName(of:)), "value": hex(value),
            "descriptors": descriptors,
        ]
    }

    /// BlueZ's name of a flag for a server's characteristic, with the security that the operation needs.
    private func bluezName(of flag: CharacteristicFlag) -> String {
        let needed: LinkSecurity =
            switch flag {
            case .read: security.read
            case .write: security.write
            case .notify, .indicate: security.subscribe
            default: .none
            }
        let prefix = ["", "encrypt-", "encrypt-authenticated-", "secure-"][needed.rawValue]
        return prefix + flag.rawValue
    }

    var virtual: VirtualCharacteristic {
        VirtualCharacteristic(
            uuid, Set(flags), value: value, descriptors: label.map { [.description($0)] } ?? [], security: security)
    }
}

public func hex(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }
