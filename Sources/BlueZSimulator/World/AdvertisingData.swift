/// A field of an advertisement: the data of a company or a service, or a field that has only a type.
struct AdvertisingField<Key: Hashable & Sendable>: Hashable, Sendable {
    var key: Key
    var bytes: [UInt8]
}

extension Array {
    /// Adds a field, or replaces the first with its key. Returns false if that has these bytes already.
    mutating func set<Key>(_ field: AdvertisingField<Key>) -> Bool where Element == AdvertisingField<Key> {
        guard let place = firstIndex(where: { $0.key == field.key }) else {
            append(field)
            return true
        }
        guard self[place] != field else { return false }
        self[place] = field
        return true
    }
}

extension UInt16 {
    /// The two bytes, the lowest first.
    var bytes: [UInt8] { [UInt8(self & 0xFF), UInt8(self >> 8)] }

    /// Reads two bytes, the lowest first.
    init(_ bytes: some Collection<UInt8>) { self = bytes.prefix(2).reversed().reduce(0) { $0 << 8 | UInt16($1) } }
}

/// The contents of an advertisement or a scan response, written as BlueZ does (`src/shared/ad.c`): in its order, within its
/// limits.
struct AdvertisingData: Hashable, Sendable {
    /// As ``ServiceUUID/sent(_:)`` returns them.
    var serviceUUIDs: [[UInt8]] = []
    var solicitedUUIDs: [[UInt8]] = []
    /// By the company.
    var manufacturerData: [AdvertisingField<UInt16>] = []
    var serviceData: [AdvertisingField<[UInt8]>] = []
    /// By their type; the flags are among them.
    var fields: [AdvertisingField<UInt8>] = []

    /// The length of an advertisement that every controller can send, in bytes.
    static let longest = 31
    /// The length of an extended advertisement of the simulator's controllers, in bytes.
    static let longestExtended = 251

    var flags: UInt8? { fields.first { $0.key == Self.flagsType }?.bytes.first }

    mutating func clearFlags() { fields.removeAll { $0.key == Self.flagsType } }

    /// Returns the bytes; nil if they are too many. A name that does not fit is cut.
    func generated(within limit: Int, name: String? = nil, appearance: UInt16? = nil) -> [UInt8]? {
        var bytes = Self.list(serviceUUIDs, types: [2: 0x03, 4: 0x05, 16: 0x07])
        bytes += Self.list(solicitedUUIDs, types: [2: 0x14, 4: 0x1F, 16: 0x15])
        for field in manufacturerData { bytes += Self.field(0xFF, field.key.bytes + field.bytes) }
        for field in serviceData {
            let type: UInt8 = field.key.count == 2 ? 0x16 : field.key.count == 4 ? 0x20 : 0x21
            bytes += Self.field(type, field.key + field.bytes)
        }
        if let name {
            let rest = limit - bytes.count - 2
            guard rest >= 0 else { return nil }
            let text = Array(name.utf8)
            bytes += text.count <= rest ? Self.field(0x09, text) : Self.field(0x08, Array(text.prefix(rest)))
        }
        if let appearance { bytes += Self.field(0x19, appearance.bytes) }
        for field in fields { bytes += Self.field(field.key, field.bytes) }
        return bytes.count <= limit ? bytes : nil
    }

    private static func list(_ uuids: [[UInt8]], types: [Int: UInt8]) -> [UInt8] {
        [2, 4, 16].flatMap { size -> [UInt8] in
            let bytes = uuids.filter { $0.count == size }.flatMap(\.self)
            return bytes.isEmpty ? [] : field(types[size] ?? 0, bytes)
        }
    }

    /// Returns an AD structure (core specification 5.3, volume 3, part C, 11).
    static func field(_ type: UInt8, _ bytes: [UInt8]) -> [UInt8] {
        [UInt8(truncatingIfNeeded: bytes.count + 1), type] + bytes
    }

    static let flagsType: UInt8 = 0x01

    /// The types that BlueZ ignores in what programs and devices advertise (`type_reject_list`).
    static let rejected = Set<UInt8>(
        [0x01...0x0A, 0x0D...0x12, 0x14...0x23, 0x27...0x2B, 0x3D...0x3D, 0xFF...0xFF].flatMap(\.self))
}

/// What the kernel reports to `bluetoothd` about an advertisement, in the forms that BlueZ then writes on the bus.
struct AdvertisingReport: Sendable, Hashable {
    var name: String?
    /// Long form, in the order sent.
    var uuids: [String]
    /// By the company.
    var manufacturerData: [AdvertisingField<UInt16>]
    /// By the UUID, long form.
    var serviceData: [AdvertisingField<String>]
    /// By the type: the fields that BlueZ has no property for.
    var otherData: [AdvertisingField<UInt8>] = []
    var txPower: Int?
    var flags: UInt8
    var appearance: UInt16?
    var isConnectable: Bool

    init(_ advertisement: Advertisement) {
        name = advertisement.localName.flatMap { $0.isEmpty ? nil : $0 }
        uuids = advertisement.serviceUUIDs.compactMap(ServiceUUID.long)
        manufacturerData = advertisement.manufacturerData.sorted { $0.key < $1.key }
            .map { AdvertisingField(key: $0.key, bytes: $0.value) }
        serviceData = advertisement.serviceData.sorted { $0.key < $1.key }.compactMap { uuid, bytes in
            ServiceUUID.long(uuid).map { AdvertisingField(key: $0, bytes: bytes) }
        }
        txPower = advertisement.txPower
        flags = advertisement.flags
        appearance = advertisement.appearance
        isConnectable = advertisement.isConnectable
    }

    /// Reads an advertisement and its scan response as a scanning kernel and BlueZ do (`src/eir.c`).
    init(advertisingData data: [UInt8], scanResponse: [UInt8], isConnectable: Bool) {
        self.init(Advertisement(flags: 0, isConnectable: isConnectable))
        for (type, bytes) in Self.structures(data) + Self.structures(scanResponse) { read(type, bytes) }
    }

    /// Whether it is limited or general discoverable, as a scan without any filter requires.
    var isDiscoverable: Bool { flags & 0x03 != 0 }

    /// Returns the AD structures without one that is cut off at the end.
    private static func structures(_ data: [UInt8]) -> [(type: UInt8, bytes: [UInt8])] {
        var structures: [(type: UInt8, bytes: [UInt8])] = []
        var rest = data[...]
        while let length = rest.first, length > 0, rest.count > Int(length) {
            let structure = rest.dropFirst().prefix(Int(length))
            if let type = structure.first { structures.append((type, Array(structure.dropFirst()))) }
            rest = rest.dropFirst(Int(length) + 1)
        }
        return structures
    }

    private mutating func read(_ type: UInt8, _ bytes: [UInt8]) {
        switch type {
        case 0x01: flags = bytes.first ?? 0
        case 0x02, 0x03: uuids += Self.uuids(bytes, size: 2)
        case 0x04, 0x05: uuids += Self.uuids(bytes, size: 4)
        case 0x06, 0x07: uuids += Self.uuids(bytes, size: 16)
        case 0x08, 0x09: name = bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
        case 0x0A: txPower = bytes.first.map { Int(Int8(bitPattern: $0)) }
        case 0x19 where bytes.count == 2: appearance = UInt16(bytes)
        case 0x16: read(serviceData: bytes, size: 2)
        case 0x20: read(serviceData: bytes, size: 4)
        case 0x21: read(serviceData: bytes, size: 16)
        case 0xFF where bytes.count >= 2:
            manufacturerData.append(AdvertisingField(key: UInt16(bytes), bytes: Array(bytes.dropFirst(2))))
        case 0x00: break
        default:
            guard !AdvertisingData.rejected.contains(type) else { return }
            otherData.append(AdvertisingField(key: type, bytes: bytes))
        }
    }

    private mutating func read(serviceData bytes: [UInt8], size: Int) {
        guard let uuid = Self.uuids(Array(bytes.prefix(size)), size: size).first else { return }
        serviceData.append(AdvertisingField(key: uuid, bytes: Array(bytes.dropFirst(size))))
    }

    /// Returns the long forms of UUIDs as sent, the lowest byte first.
    private static func uuids(_ bytes: [UInt8], size: Int) -> [String] {
        stride(from: 0, to: bytes.count - bytes.count % size, by: size).compactMap { start in
            let digits = Array(Hexadecimal.text(bytes[start..<start + size].reversed()))
            guard size == 16 else { return ServiceUUID.long(String(digits)) }
            return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }.joined(separator: "-")
        }
    }
}
