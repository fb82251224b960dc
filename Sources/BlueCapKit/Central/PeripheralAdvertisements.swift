public import Foundation
public import GATT

/// What a peripheral advertised, as far as BlueZ exports it.
///
/// BlueZ merges advertising packets and scan responses: each property holds the newest value that was advertised, not those
/// of one packet.
public struct PeripheralAdvertisements: Sendable, Equatable {
    /// The advertised name, whole or shortened. After a connection BlueZ has the name of the Generic Access service in its
    /// place, until the peripheral is discovered again.
    public var localName: String?

    /// Manufacturer specific data in Core Bluetooth's form: the company identifier, two bytes little endian, then its
    /// data (Bluetooth Core Specification Supplement, part A, 1.4).
    ///
    /// Of several companies' data this is the one with the lowest identifier; see ``manufacturerDataByCompany``.
    public var manufacturerData: Data? {
        get { manufacturerDataByCompany.min { $0.key < $1.key }.map { Data($0.key.littleEndianBytes) + $0.value } }
        set {
            manufacturerDataByCompany = [:]
            guard let newValue, newValue.count >= 2 else { return }
            let company = UInt16(newValue[newValue.startIndex]) | UInt16(newValue[newValue.startIndex + 1]) << 8
            manufacturerDataByCompany[company] = newValue.dropFirst(2)
        }
    }

    /// The documents' spelling of ``manufacturerData``.
    public var manufactuereData: Data? {
        get { manufacturerData }
        set { manufacturerData = newValue }
    }

    /// Manufacturer specific data by company identifier (Bluetooth Assigned Numbers, 7.1), without that identifier.
    public var manufacturerDataByCompany: [UInt16: Data]

    /// The advertised transmission power in dBm; `nil` if none was advertised in this discovery.
    public var txPower: NSNumber?

    /// Always `nil` in what a scan finds: no version of BlueZ (5.55 to 5.87) exports whether a peripheral can be connected
    /// to. Its flags (``advertisingFlags``) do not imply it. An advertisement that ``PeripheralManager`` restores has it.
    public var isConnectable: NSNumber?

    /// The advertised services; after a connection those that the peripheral has.
    public var serviceUUIDs: [CBUUID]?

    /// Data advertised for a service, by its UUID.
    public var serviceData: [CBUUID: Data]?

    /// Always `nil`: the overflow area is a thing of Apple's advertising, and BlueZ does not decode it.
    public var overflowServiceUUIDs: [CBUUID]?

    /// The services that the peripheral solicits, from the types 0x14, 0x1F and 0x15 of ``dataByType`` (Core Specification
    /// Supplement, part A, 1.10).
    ///
    /// `nil` in what a scan finds with BlueZ 5.55 to 5.87: these versions leave the three types out of what they export. An
    /// advertisement that ``PeripheralManager`` restores has it.
    public var solicitedServiceUUIDs: [CBUUID]?

    /// The flags of the newest packet (Core Specification Supplement, part A, 1.3), 0 if it had none; `nil` if BlueZ does not
    /// export them: up to 5.77 it does so only with `--experimental`.
    public var advertisingFlags: UInt8?

    /// What was advertised under types that no other property has, by the type (Bluetooth Assigned Numbers, 2.3). Empty if
    /// BlueZ does not export it: up to 5.77 it does so only with `--experimental`.
    ///
    /// BlueZ exports those types alone that it considers safe, such as 0x24 (URI) and 0x26 (transport discovery data). It
    /// signals a change of 0x26 only: a change of another type appears with the next report of a peripheral that BlueZ
    /// had not known.
    public var dataByType: [UInt8: Data] = [:]

    public init(
        localName: String? = nil, manufacturerDataByCompany: [UInt16: Data] = [:], txPower: NSNumber? = nil,
        isConnectable: NSNumber? = nil, serviceUUIDs: [CBUUID]? = nil, serviceData: [CBUUID: Data]? = nil
    ) {
        self.localName = localName
        self.manufacturerDataByCompany = manufacturerDataByCompany
        self.txPower = txPower
        self.isConnectable = isConnectable
        self.serviceUUIDs = serviceUUIDs
        self.serviceData = serviceData
    }
}

extension UInt16 {
    fileprivate var littleEndianBytes: [UInt8] { [UInt8(truncatingIfNeeded: self), UInt8(self >> 8)] }
}
