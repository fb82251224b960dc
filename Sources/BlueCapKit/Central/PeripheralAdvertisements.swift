public import Foundation
public import GATT

/// What a peripheral advertised, as far as BlueZ tells it.
///
/// BlueZ merges what it hears: each property holds the newest value that was advertised, not those of one packet.
public struct PeripheralAdvertisements: Sendable, Equatable {
    /// The advertised name.
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

    /// The advertised transmission power in dBm.
    public var txPower: NSNumber?

    /// Whether the peripheral can be connected to; `nil` where BlueZ does not tell, which is so up to 5.66.
    public var isConnectable: NSNumber?

    /// The advertised services.
    public var serviceUUIDs: [CBUUID]?

    /// Data advertised for a service, by its UUID.
    public var serviceData: [CBUUID: Data]?

    /// Always `nil`: the overflow area is a thing of Apple's advertising, and BlueZ does not decode it.
    public var overflowServiceUUIDs: [CBUUID]?

    /// Always `nil`: BlueZ does not tell which services a peripheral solicits.
    public var solicitedServiceUUIDs: [CBUUID]?

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
