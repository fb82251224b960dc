import BlueCapDBus
import BlueCapFutures
package import Foundation
package import BlueCapGATT

/// What is to be advertised: the properties of `org.bluez.LEAdvertisement1` at 5.66 (`doc/advertising-api.txt`). Nothing is
/// checked here; BlueZ refuses what does not fit into 31 bytes.
package struct AdvertisementData: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// Others can connect.
        case peripheral
        case broadcast
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
    /// General discoverable; as the adapter is, where nil.
    package var isDiscoverable: Bool?
    /// Whether BlueZ adds the power at which it sends.
    package var includesTxPower = false
    /// Goes into the scan response.
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
    static let table = InterfaceTable<Advertising>(
        "org.bluez.LEAdvertisement1",
        methods: [.ofDaemon("Release") { $0.releaseCalled($1) }],
        properties: [
            .init("Type", "s") { $1.string($0.data.kind.rawValue) },
            uuids("ServiceUUIDs") { $0.serviceUUIDs },
            uuids("SolicitUUIDs") { $0.solicitedUUIDs },
            manufacturerData("ManufacturerData") { $0.manufacturerData },
            serviceData("ServiceData") { $0.serviceData },
            uuids("ScanResponseServiceUUIDs") { $0.scanResponseServiceUUIDs },
            manufacturerData("ScanResponseManufacturerData") { $0.scanResponseManufacturerData },
            serviceData("ScanResponseServiceData") { $0.scanResponseServiceData },
            optional("Discoverable", "b", { $0.isDiscoverable }) { $0.bool($1) },
            optional("Includes", "as", { $0.includesTxPower ? ["tx-power"] : nil }) { $0.strings($1) },
            optional("LocalName", "s", { $0.localName }) { $0.string($1) },
            optional("Appearance", "q", { $0.appearance }) { $0.uint16($1) },
            optional("Duration", "q", { $0.duration }) { $0.uint16($1) },
            optional("Timeout", "q", { $0.timeout }) { $0.uint16($1) },
            optional("SecondaryChannel", "s", { $0.secondaryChannel?.rawValue }) { $0.string($1) },
            optional("MinInterval", "u", { $0.minInterval }) { $0.uint32($1) },
            optional("MaxInterval", "u", { $0.maxInterval }) { $0.uint32($1) },
            optional("TxPower", "n", { $0.txPower }) { $0.int16($1) },
        ])

    /// A property that the object has only if there is a value.
    private static func optional<Value>(
        _ name: StaticString, _ signature: StaticString, _ value: @escaping @Sendable (AdvertisementData) -> Value?,
        write: @escaping @Sendable (inout MessageWriter, Value) -> Void
    ) -> InterfaceTable<Advertising>.Property {
        .init(
            name, signature, exists: { value($0.data) != nil },
            get: { advertising, writer in
                if let value = value(advertising.data) { write(&writer, value) }
            })
    }

    private static func uuids(
        _ name: StaticString, _ value: @escaping @Sendable (AdvertisementData) -> [CBUUID]
    ) -> InterfaceTable<Advertising>.Property {
        optional(name, "as", { value($0).map(\.busText).nonEmpty }) { $0.strings($1) }
    }

    private static func manufacturerData(
        _ name: StaticString, _ value: @escaping @Sendable (AdvertisementData) -> [UInt16: Data]
    ) -> InterfaceTable<Advertising>.Property {
        byteArrays(name, "a{qv}", key: "q", { value($0).map { ($0, $1) } }) { $0.uint16($1) }
    }

    private static func serviceData(
        _ name: StaticString, _ value: @escaping @Sendable (AdvertisementData) -> [CBUUID: Data]
    ) -> InterfaceTable<Advertising>.Property {
        byteArrays(name, "a{sv}", key: "s", { value($0).map { ($0.busText, $1) } }) { $0.string($1) }
    }

    /// A dictionary of variants with `ay` inside, in the order of the keys; there is none without entries.
    private static func byteArrays<Key: Comparable & SendableMetatype>(
        _ name: StaticString, _ signature: StaticString, key: String,
        _ entries: @escaping @Sendable (AdvertisementData) -> [(Key, Data)],
        writeKey: @escaping @Sendable (inout MessageWriter, Key) -> Void
    ) -> InterfaceTable<Advertising>.Property {
        optional(name, signature, { entries($0).ordered { $0.0 < $1.0 }.nonEmpty }) { writer, entries in
            writer.dictionary(key: key, value: "v") { dictionary in
                for (key, bytes) in entries {
                    dictionary.entry { entry in
                        writeKey(&entry, key)
                        entry.variant("ay") { $0.bytes(bytes) }
                    }
                }
            }
        }
    }
}

extension Array {
    /// `nil` if there are no elements.
    fileprivate var nonEmpty: Self? { isEmpty ? nil : self }
}

extension CBUUID {
    /// As BlueZ writes UUIDs.
    var busText: String { fullUUIDString.lowercased() }
}
