import DBus
package import Foundation
package import GATT

/// What is to be advertised: the properties of `org.bluez.LEAdvertisement1` at 5.66 (`doc/advertising-api.txt`). Nothing is
/// checked here; BlueZ refuses what does not fit into 31 bytes.
package struct AdvertisementData: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// Others can connect.
        case peripheral
        case broadcast
    }

    /// What BlueZ adds.
    package enum Include: String, Hashable, Sendable, CaseIterable {
        case txPower = "tx-power"
        case appearance
        /// The adapter's alias; goes into the scan response.
        case localName = "local-name"
        case resolvableSetIdentifier = "rsi"
    }

    package var kind = Kind.peripheral
    package var serviceUUIDs: [CBUUID] = []
    package var solicitedUUIDs: [CBUUID] = []
    /// By the number of the company.
    package var manufacturerData: [UInt16: Data] = [:]
    package var serviceData: [CBUUID: Data] = [:]
    /// In the scan response, as the next two; ignored by BlueZ before 5.80.
    package var scanResponseServiceUUIDs: [CBUUID] = []
    package var scanResponseManufacturerData: [UInt16: Data] = [:]
    package var scanResponseServiceData: [CBUUID: Data] = [:]
    /// By the type of the field; experimental at 5.66.
    package var data: [UInt8: Data] = [:]
    /// General discoverable; as the adapter is, where nil.
    package var isDiscoverable: Bool?
    /// In seconds.
    package var discoverableTimeout: UInt16?
    package var includes: Set<Include> = []
    /// Goes into the scan response. Not together with the include.
    package var localName: String?
    package var appearance: UInt16?
    /// How long it is on the air before others get their turn, in seconds.
    package var duration: UInt16?
    /// After how many seconds BlueZ ends it.
    package var timeout: UInt16?
    package var secondaryChannel: SecondaryChannel?
    /// In milliseconds, 20 to 10 485; ignored by BlueZ before 5.77 unless it is experimental.
    package var minInterval: UInt32?
    package var maxInterval: UInt32?
    /// In dBm, -127 to 20; ignored by BlueZ before 5.77 unless it is experimental.
    package var txPower: Int16?

    package init() {}
}

/// The interface that `bluetoothd` reads in an advertisement of this process (`doc/advertising-api.txt` of 5.66). It
/// gets all properties at once; those without a value are left out. It then writes `TxPower`, and ignores that this is
/// refused.
enum AdvertisementTable {
    static let table = InterfaceTable<AdvertisementContent>(
        "org.bluez.LEAdvertisement1",
        methods: [.init("Release") { $0.releaseCalled($1) }],
        properties: [
            .init("Type", "s") { $1.string($0.data.kind.rawValue) },
            uuids("ServiceUUIDs") { $0.serviceUUIDs },
            uuids("SolicitUUIDs") { $0.solicitedUUIDs },
            manufacturerData("ManufacturerData") { $0.manufacturerData },
            serviceData("ServiceData") { $0.serviceData },
            uuids("ScanResponseServiceUUIDs") { $0.scanResponseServiceUUIDs },
            manufacturerData("ScanResponseManufacturerData") { $0.scanResponseManufacturerData },
            serviceData("ScanResponseServiceData") { $0.scanResponseServiceData },
            byteArrays("Data", "a{yv}", key: "y", { $0.data.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }) {
                $0.byte($1)
            },
            .init(
                "Discoverable", "b", exists: { $0.data.isDiscoverable != nil },
                get: { $1.bool($0.data.isDiscoverable ?? false) }),
            .init(
                "DiscoverableTimeout", "q", exists: { $0.data.discoverableTimeout != nil },
                get: { $1.uint16($0.data.discoverableTimeout ?? 0) }),
            .init(
                "Includes", "as", exists: { !$0.data.includes.isEmpty },
                get: { $1.strings($0.data.includes.map(\.rawValue).sorted()) }),
            .init("LocalName", "s", exists: { $0.data.localName != nil }, get: { $1.string($0.data.localName ?? "") }),
            .init(
                "Appearance", "q", exists: { $0.data.appearance != nil }, get: { $1.uint16($0.data.appearance ?? 0) }),
            .init("Duration", "q", exists: { $0.data.duration != nil }, get: { $1.uint16($0.data.duration ?? 0) }),
            .init("Timeout", "q", exists: { $0.data.timeout != nil }, get: { $1.uint16($0.data.timeout ?? 0) }),
            .init(
                "SecondaryChannel", "s", exists: { $0.data.secondaryChannel != nil },
                get: { $1.string($0.data.secondaryChannel?.rawValue ?? "") }),
            .init(
                "MinInterval", "u", exists: { $0.data.minInterval != nil }, get: { $1.uint32($0.data.minInterval ?? 0) }
            ),
            .init(
                "MaxInterval", "u", exists: { $0.data.maxInterval != nil }, get: { $1.uint32($0.data.maxInterval ?? 0) }
            ),
            .init("TxPower", "n", exists: { $0.data.txPower != nil }, get: { $1.int16($0.data.txPower ?? 0) }),
        ])

    private static func uuids(
        _ name: StaticString, _ value: @escaping @Sendable (AdvertisementData) -> [CBUUID]
    ) -> InterfaceTable<AdvertisementContent>.Property {
        .init(name, "as", exists: { !value($0.data).isEmpty }, get: { $1.strings(value($0.data).map(\.busText)) })
    }

    private static func manufacturerData(
        _ name: StaticString, _ value: @escaping @Sendable (AdvertisementData) -> [UInt16: Data]
    ) -> InterfaceTable<AdvertisementContent>.Property {
        byteArrays(name, "a{qv}", key: "q", { value($0).sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }) {
            $0.uint16($1)
        }
    }

    private static func serviceData(
        _ name: StaticString, _ value: @escaping @Sendable (AdvertisementData) -> [CBUUID: Data]
    ) -> InterfaceTable<AdvertisementContent>.Property {
        byteArrays(name, "a{sv}", key: "s", { value($0).map { ($0.key.busText, $0.value) }.sorted { $0.0 < $1.0 } }) {
            $0.string($1)
        }
    }

    /// A dictionary of variants with `ay` inside; there is none without entries.
    private static func byteArrays<Key>(
        _ name: StaticString, _ signature: StaticString, key: String,
        _ entries: @escaping @Sendable (AdvertisementData) -> [(Key, Data)],
        writeKey: @escaping @Sendable (inout MessageWriter, Key) -> Void
    ) -> InterfaceTable<AdvertisementContent>.Property {
        .init(
            name, signature, exists: { !entries($0.data).isEmpty },
            get: { content, writer in
                writer.dictionary(key: key, value: "v") { dictionary in
                    for (key, bytes) in entries(content.data) {
                        dictionary.entry { entry in
                            writeKey(&entry, key)
                            entry.variant("ay") { $0.bytes(bytes) }
                        }
                    }
                }
            })
    }
}

extension CBUUID {
    /// As BlueZ writes UUIDs.
    var busText: String { fullUUIDString.lowercased() }
}
