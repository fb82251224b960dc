/// The data types of an advertisement, laid out as BlueZ does (`src/shared/ad.c`): in its order, within its limits.
struct AdvertisingData: Hashable, Sendable {
    /// A UUID in its long form. Those made of the Bluetooth base UUID and 16 bits are sent in two bytes, all others in
    /// sixteen; `bt_string_to_uuid` gives four bytes only to what is written with eight digits.
    struct UUIDField: Hashable, Sendable {
        /// As sent: 2, 4 or 16 bytes, the lowest first.
        let bytes: [UInt8]

        init?(_ text: String) {
            guard let long = ServiceUUID.long(text),
                let all = Hexadecimal.bytes(long.filter { $0 != "-" })
            else { return nil }
            if text.utf8.count == 8 || text.utf8.count == 10 {
                bytes = Array(all[0..<4].reversed())
            } else if long.hasPrefix("0000"), long.hasSuffix("-0000-1000-8000-00805f9b34fb") {
                bytes = [all[3], all[2]]
            } else {
                bytes = all.reversed()
            }
        }
    }

    struct Field: Hashable, Sendable {
        var type: UInt8
        var bytes: [UInt8]
    }

    var serviceUUIDs: [UUIDField] = []
    var solicitedUUIDs: [UUIDField] = []
    /// In the order given.
    private(set) var manufacturerData: [(company: UInt16, bytes: [UInt8])] = []
    private(set) var serviceData: [(uuid: UUIDField, bytes: [UInt8])] = []
    var name: String?
    var appearance: UInt16?
    /// Of any type, the flags too, in the order in which they were first given.
    private(set) var fields: [Field] = []

    /// No advertisement of the kind that every controller can send is longer.
    static let longest = 31

    /// How many bytes it may have.
    var limit = longest

    var isEmpty: Bool {
        name == nil && appearance == nil && serviceUUIDs.isEmpty && solicitedUUIDs.isEmpty
            && manufacturerData.isEmpty && serviceData.isEmpty && fields.isEmpty
    }

    // MARK: Adding

    /// False where it is too long, or said twice with the same bytes.
    mutating func add(company: UInt16, _ bytes: [UInt8]) -> Bool {
        guard bytes.count <= limit - 4 else { return false }
        guard let place = manufacturerData.firstIndex(where: { $0.company == company }) else {
            manufacturerData.append((company, bytes))
            return true
        }
        guard manufacturerData[place].bytes != bytes else { return false }
        manufacturerData[place].bytes = bytes
        return true
    }

    mutating func add(service uuid: UUIDField, _ bytes: [UInt8]) -> Bool {
        guard bytes.count <= limit - 2 - uuid.bytes.count else { return false }
        guard let place = serviceData.firstIndex(where: { $0.uuid == uuid }) else {
            serviceData.append((uuid, bytes))
            return true
        }
        guard serviceData[place].bytes != bytes else { return false }
        serviceData[place].bytes = bytes
        return true
    }

    /// False for the types that have a property of their own, and for those that only a controller knows.
    mutating func add(type: UInt8, _ bytes: [UInt8]) -> Bool {
        guard bytes.count <= limit - 2, !Self.rejected.contains(type) else { return false }
        return replace(type, bytes)
    }

    /// False where these are the flags already.
    mutating func setFlags(_ flags: UInt8) -> Bool { replace(Self.flagsType, [flags]) }

    var flags: UInt8? { fields.first { $0.type == Self.flagsType }?.bytes.first }

    mutating func clearFlags() { fields.removeAll { $0.type == Self.flagsType } }
    mutating func clearManufacturerData() { manufacturerData = [] }
    mutating func clearServiceData() { serviceData = [] }
    /// The flags with the others, as BlueZ has it.
    mutating func clearFields() { fields = [] }

    private mutating func replace(_ type: UInt8, _ bytes: [UInt8]) -> Bool {
        guard let place = fields.firstIndex(where: { $0.type == type }) else {
            fields.append(Field(type: type, bytes: bytes))
            return true
        }
        guard fields[place].bytes != bytes else { return false }
        fields[place].bytes = bytes
        return true
    }

    // MARK: Laying out

    /// How many bytes it takes without its name and its appearance, however many it may have.
    var length: Int {
        var data = self
        data.limit = .max
        data.name = nil
        data.appearance = nil
        return data.generated()?.count ?? 0
    }

    /// The bytes; nil where they are too many. A name that does not fit is cut.
    func generated() -> [UInt8]? {
        var bytes = list(serviceUUIDs, types: [2: 0x03, 4: 0x05, 16: 0x07])
        bytes += list(solicitedUUIDs, types: [2: 0x14, 4: 0x1F, 16: 0x15])
        for (company, data) in manufacturerData {
            bytes += Self.field(0xFF, [UInt8(company & 0xFF), UInt8(company >> 8)] + data)
        }
        for (uuid, data) in serviceData {
            let type: UInt8 = uuid.bytes.count == 2 ? 0x16 : uuid.bytes.count == 4 ? 0x20 : 0x21
            bytes += Self.field(type, uuid.bytes + data)
        }
        if let name {
            let room = limit - bytes.count
            guard room >= 2 else { return nil }
            let text = Array(name.utf8)
            bytes +=
                text.count <= room - 2
                ? Self.field(0x09, text) : Self.field(0x08, Array(text.prefix(room - 2)))
        }
        if let appearance { bytes += Self.field(0x19, [UInt8(appearance & 0xFF), UInt8(appearance >> 8)]) }
        for field in fields { bytes += Self.field(field.type, field.bytes) }
        return bytes.count <= limit ? bytes : nil
    }

    private func list(_ uuids: [UUIDField], types: [Int: UInt8]) -> [UInt8] {
        [2, 4, 16].flatMap { size -> [UInt8] in
            let bytes = uuids.filter { $0.bytes.count == size }.flatMap(\.bytes)
            return bytes.isEmpty ? [] : Self.field(types[size] ?? 0, bytes)
        }
    }

    /// One AD structure (core specification 5.3, volume 3, part C, 11).
    static func field(_ type: UInt8, _ bytes: [UInt8]) -> [UInt8] {
        [UInt8(truncatingIfNeeded: bytes.count + 1), type] + bytes
    }

    static let flagsType: UInt8 = 0x01

    /// The types that BlueZ takes neither from programs nor from what devices advertise (`type_reject_list`).
    static let rejected: Set<UInt8> = [
        0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0D, 0x0E, 0x0F, 0x10, 0x11, 0x12, 0x14, 0x15,
        0x16, 0x17, 0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F, 0x20, 0x21, 0x22, 0x23, 0x27, 0x28, 0x29, 0x2A,
        0x2B, 0x3D, 0xFF,
    ]
}

extension AdvertisingData {
    static func == (left: Self, right: Self) -> Bool {
        left.generated() == right.generated() && left.name == right.name
    }

    func hash(into hasher: inout Hasher) { hasher.combine(generated()) }
}
