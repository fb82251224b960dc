import DBus
import Foundation
import GATT

/// What `bluetoothd` finds in an advertisement of ours (`doc/advertising-api.txt` of 5.66). It asks for all properties at
/// once; what was not wished is not among them. It then writes `TxPower`, of which it does not mind the refusal.
enum AdvertisementTable {
    static let table = InterfaceTable<AdvertisingCore>(
        "org.bluez.LEAdvertisement1",
        methods: [.init("Release") { $0.releaseCalled($1) }],
        properties: [
            .init("Type", "s") { $1.string($0.data.kind.rawValue) },
            .init(
                "ServiceUUIDs", "as", exists: { !$0.data.serviceUUIDs.isEmpty },
                get: { $1.strings($0.data.serviceUUIDs.map(\.busText)) }),
            .init(
                "SolicitUUIDs", "as", exists: { !$0.data.solicitedUUIDs.isEmpty },
                get: { $1.strings($0.data.solicitedUUIDs.map(\.busText)) }),
            manufacturerData("ManufacturerData") { $0.manufacturerData },
            serviceData("ServiceData") { $0.serviceData },
            .init(
                "ScanResponseServiceUUIDs", "as", exists: { !$0.data.scanResponseServiceUUIDs.isEmpty },
                get: { $1.strings($0.data.scanResponseServiceUUIDs.map(\.busText)) }),
            manufacturerData("ScanResponseManufacturerData") { $0.scanResponseManufacturerData },
            serviceData("ScanResponseServiceData") { $0.scanResponseServiceData },
            .init(
                "Data", "a{yv}", exists: { !$0.data.data.isEmpty },
                get: { core, writer in
                    writer.dictionary(key: "y", value: "v") { dictionary in
                        for (type, bytes) in core.data.data.sorted(by: { $0.key < $1.key }) {
                            dictionary.entry { entry in
                                entry.byte(type)
                                entry.variant("ay") { $0.bytes(bytes) }
                            }
                        }
                    }
                }),
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

    private static func manufacturerData(
        _ name: StaticString, _ value: @escaping @Sendable (AdvertisementData) -> [UInt16: Data]
    ) -> InterfaceTable<AdvertisingCore>.Property {
        .init(
            name, "a{qv}", exists: { !value($0.data).isEmpty },
            get: { core, writer in
                writer.dictionary(key: "q", value: "v") { dictionary in
                    for (company, bytes) in value(core.data).sorted(by: { $0.key < $1.key }) {
                        dictionary.entry { entry in
                            entry.uint16(company)
                            entry.variant("ay") { $0.bytes(bytes) }
                        }
                    }
                }
            })
    }

    private static func serviceData(
        _ name: StaticString, _ value: @escaping @Sendable (AdvertisementData) -> [CBUUID: Data]
    ) -> InterfaceTable<AdvertisingCore>.Property {
        .init(
            name, "a{sv}", exists: { !value($0.data).isEmpty },
            get: { core, writer in
                writer.dictionary(key: "s", value: "v") { dictionary in
                    for (uuid, bytes) in value(core.data).sorted(by: { $0.key.busText < $1.key.busText }) {
                        dictionary.entry(uuid.busText, variant: "ay") { $0.bytes(bytes) }
                    }
                }
            })
    }
}

extension CBUUID {
    /// As BlueZ writes UUIDs.
    var busText: String { fullUUIDString.lowercased() }
}
