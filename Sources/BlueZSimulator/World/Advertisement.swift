/// What a virtual peripheral sends: advertisement and scan response together, as a scanning kernel merges them.
public struct Advertisement: Hashable, Sendable {
    /// The name that it advertises; nil for none.
    public var localName: String?
    /// UUIDs of services, short (`180D`) or long, in the order they are sent.
    public var serviceUUIDs: [String]
    /// By the company's assigned number.
    public var manufacturerData: [UInt16: [UInt8]]
    /// By the service's UUID, short or long.
    public var serviceData: [String: [UInt8]]
    /// In dBm, -127 to 127; a number outside becomes the nearest bound. Nil for none.
    public var txPower: Int? { didSet { txPower = txPower.map(Limits.txPower.nearest) } }
    /// The flags byte. `0x06`, the default, is "general discoverable, no classic Bluetooth"; with `0` no flags are
    /// sent, and a scan without any filter does not report the peripheral.
    public var flags: UInt8
    /// The assigned number of its kind of device (833 is a heart-rate belt); nil for none.
    public var appearance: UInt16?
    /// Whether it takes connections. BlueZ removes the device of one that does not as soon as the scan ends.
    public var isConnectable: Bool

    /// Creates an advertisement with these properties.
    public init(
        localName: String? = nil, serviceUUIDs: [String] = [], manufacturerData: [UInt16: [UInt8]] = [:],
        serviceData: [String: [UInt8]] = [:], txPower: Int? = nil, flags: UInt8 = 0x06, appearance: UInt16? = nil,
        isConnectable: Bool = true
    ) {
        self.localName = localName
        self.serviceUUIDs = serviceUUIDs
        self.manufacturerData = manufacturerData
        self.serviceData = serviceData
        self.txPower = txPower.map(Limits.txPower.nearest)
        self.flags = flags
        self.appearance = appearance
        self.isConnectable = isConnectable
    }
}

/// In JSON every key is optional; bytes are hexadecimal text, companies are decimal or `0x…` text:
/// `{"localName": "Tag", "serviceUUIDs": ["180f"], "manufacturerData": {"76": "0215…"}, "txPower": 4}`.
extension Advertisement: Codable {
    private enum Key: String, CodingKey, CaseIterable {
        case localName, serviceUUIDs, manufacturerData, serviceData, txPower, flags, appearance, connectable
    }

    /// Returns the entries of an object, sorted, so that the first error does not depend on the order of a dictionary.
    private static func entries(
        _ key: Key, of container: KeyedDecodingContainer<Key>
    ) throws -> [(key: String, value: String)] {
        (try container.decodeIfPresent([String: String].self, forKey: key) ?? [:]).sorted { $0.key < $1.key }
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: Key.self)
        self.init()
        localName = try container.text(Limits.nameLength, forKey: .localName)
        serviceUUIDs = try container.uuids(forKey: .serviceUUIDs)
        txPower = try container.number(Limits.txPower, forKey: .txPower)
        flags = try container.number(0...UInt8.max, forKey: .flags) ?? 0x06
        appearance = try container.number(0...UInt16.max, forKey: .appearance)
        isConnectable = try container.decodeIfPresent(Bool.self, forKey: .connectable) ?? true

        for (company, hex) in try Self.entries(.manufacturerData, of: container) {
            let path = [FileKey(stringValue: company)]
            let number = company.hasPrefix("0x") ? UInt16(company.dropFirst(2), radix: 16) : UInt16(company)
            guard let number else {
                throw container.failure(
                    .manufacturerData, NumberWording.refusal("\"\(company)\"", 0...UInt16.max), at: path)
            }
            manufacturerData[number] = try container.bytes(hex, .manufacturerData, path)
        }
        for (uuid, hex) in try Self.entries(.serviceData, of: container) {
            let path = [FileKey(stringValue: uuid)]
            serviceData[try container.uuid(uuid, .serviceData, path)] = try container.bytes(hex, .serviceData, path)
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encodeIfPresent(localName, forKey: .localName)
        if !serviceUUIDs.isEmpty { try container.encode(serviceUUIDs, forKey: .serviceUUIDs) }
        if !manufacturerData.isEmpty {
            let written = manufacturerData.map { (String($0.key), Hexadecimal.text($0.value)) }
            try container.encode(Dictionary(uniqueKeysWithValues: written), forKey: .manufacturerData)
        }
        if !serviceData.isEmpty { try container.encode(serviceData.mapValues(Hexadecimal.text), forKey: .serviceData) }
        try container.encodeIfPresent(txPower, forKey: .txPower)
        if flags != 0x06 { try container.encode(flags, forKey: .flags) }
        try container.encodeIfPresent(appearance, forKey: .appearance)
        if !isConnectable { try container.encode(isConnectable, forKey: .connectable) }
    }
}
