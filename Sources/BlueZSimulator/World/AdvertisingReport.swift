/// What the kernel reports to `bluetoothd` about an advertisement, in the forms that BlueZ then writes on the bus.
struct AdvertisingReport: Sendable, Hashable {
    struct ManufacturerData: Hashable, Sendable {
        var company: UInt16
        var bytes: [UInt8]

        /// The number of bytes of its field behind the type.
        var length: Int { bytes.count + 2 }
    }

    struct ServiceData: Hashable, Sendable {
        var uuid: String
        var bytes: [UInt8]

        var length: Int {
            let width = uuid.hasSuffix("-0000-1000-8000-00805f9b34fb") ? (uuid.hasPrefix("0000") ? 2 : 4) : 16
            return bytes.count + width
        }
    }

    /// A field of a type that BlueZ has no property for.
    struct OtherData: Hashable, Sendable {
        var type: UInt8
        var bytes: [UInt8]
    }

    var name: String?
    /// Long form, in the order sent.
    var uuids: [String]
    var manufacturerData: [ManufacturerData]
    var serviceData: [ServiceData]
    var otherData: [OtherData] = []
    var txPower: Int?
    var flags: UInt8
    var appearance: UInt16?
    var isConnectable: Bool

    init(_ advertisement: Advertisement) {
        name = advertisement.localName.flatMap { $0.isEmpty ? nil : $0 }
        uuids = advertisement.serviceUUIDs.compactMap(ServiceUUID.long)
        manufacturerData = advertisement.manufacturerData.sorted { $0.key < $1.key }
            .map { ManufacturerData(company: $0.key, bytes: $0.value) }
        serviceData = advertisement.serviceData.sorted { $0.key < $1.key }.compactMap { uuid, bytes in
            ServiceUUID.long(uuid).map { ServiceData(uuid: $0, bytes: bytes) }
        }
        txPower = advertisement.txPower
        flags = advertisement.flags
        appearance = advertisement.appearance
        isConnectable = advertisement.isConnectable
    }

    /// Whether it is limited or general discoverable, as a scan without any filter requires.
    var isDiscoverable: Bool { flags & 0x03 != 0 }
}
