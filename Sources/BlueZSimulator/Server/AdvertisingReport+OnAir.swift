extension AdvertisingReport {
    /// What a scanning kernel and BlueZ read out of an advertisement and its scan response (`src/eir.c`).
    init(onAir data: [UInt8], scanResponse: [UInt8], isConnectable: Bool) {
        self.init(Advertisement(flags: 0, isConnectable: isConnectable))
        for (type, bytes) in Self.structures(data) + Self.structures(scanResponse) { take(type, bytes) }
    }

    /// The AD structures, one after another; what is cut off at the end is left out.
    static func structures(_ data: [UInt8]) -> [(type: UInt8, bytes: [UInt8])] {
        var structures: [(type: UInt8, bytes: [UInt8])] = []
        var rest = data[...]
        while let length = rest.first, length > 0, rest.count > Int(length) {
            let structure = rest.dropFirst().prefix(Int(length))
            if let type = structure.first { structures.append((type, Array(structure.dropFirst()))) }
            rest = rest.dropFirst(Int(length) + 1)
        }
        return structures
    }

    private mutating func take(_ type: UInt8, _ bytes: [UInt8]) {
        switch type {
        case 0x01: flags = bytes.first ?? 0
        case 0x02, 0x03: uuids += Self.uuids(bytes, size: 2)
        case 0x04, 0x05: uuids += Self.uuids(bytes, size: 4)
        case 0x06, 0x07: uuids += Self.uuids(bytes, size: 16)
        case 0x08, 0x09: name = bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
        case 0x0A: txPower = bytes.first.map { Int(Int8(bitPattern: $0)) }
        case 0x19 where bytes.count == 2: appearance = UInt16(bytes[0]) | UInt16(bytes[1]) << 8
        case 0x16: take(serviceData: bytes, size: 2)
        case 0x20: take(serviceData: bytes, size: 4)
        case 0x21: take(serviceData: bytes, size: 16)
        case 0xFF where bytes.count >= 2:
            manufacturerData.append(
                ManufacturerData(company: UInt16(bytes[0]) | UInt16(bytes[1]) << 8, bytes: Array(bytes.dropFirst(2))))
        case 0x00: break
        default:
            guard !AdvertisingData.rejected.contains(type) else { return }
            otherData.append(OtherData(type: type, bytes: bytes))
        }
    }

    private mutating func take(serviceData bytes: [UInt8], size: Int) {
        guard bytes.count >= size, let uuid = Self.uuids(Array(bytes.prefix(size)), size: size).first else { return }
        serviceData.append(ServiceData(uuid: uuid, bytes: Array(bytes.dropFirst(size))))
    }

    /// Long forms of UUIDs as sent, the lowest byte first.
    private static func uuids(_ bytes: [UInt8], size: Int) -> [String] {
        stride(from: 0, to: bytes.count - bytes.count % size, by: size).compactMap { start in
            let digits = Hexadecimal.text(bytes[start..<start + size].reversed())
            guard size == 16 else { return ServiceUUID.long(digits) }
            var groups: [Substring] = []
            var rest = digits[...]
            for length in [8, 4, 4, 4, 12] {
                groups.append(rest.prefix(length))
                rest = rest.dropFirst(length)
            }
            return groups.joined(separator: "-")
        }
    }
}
