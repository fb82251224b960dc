import BlueCapBlueZ
public import Foundation
public import BlueCapGATT

/// What a peripheral advertised, as far as BlueZ exports it.
///
/// BlueZ merges advertising packets and scan responses: each property holds the newest value that was advertised, not
/// the value of one packet.
public struct PeripheralAdvertisements: Sendable, Equatable {
    // The data in BlueZ's form: a dictionary is created only for a caller that reads one.
    private var manufacturers = PackedData<UInt16>()
    private var services: PackedData<CBUUID>?
    private var power: Int?

    /// The advertised name, complete or shortened. After a connection this is the name in the Generic Access service,
    /// until the peripheral is discovered again.
    public var localName: String?

    /// Manufacturer specific data in Core Bluetooth's form: the company identifier, two bytes little endian, then its
    /// data (Bluetooth Core Specification Supplement, part A, 1.4).
    ///
    /// If there are data of several companies, these are the data with the lowest identifier; see
    /// ``manufacturerDataByCompany``.
    public var manufacturerData: Data? {
        get {
            var lowest: (company: UInt16, data: Data)?
            manufacturers.forEach { company, bytes in
                guard lowest.map({ company < $0.company }) ?? true else { return }
                var data = Data(capacity: 2 + bytes.count)
                data.append(contentsOf: [UInt8(truncatingIfNeeded: company), UInt8(company >> 8)])
                data.append(contentsOf: bytes)
                lowest = (company, data)
            }
            return lowest?.data
        }
        set {
            manufacturerDataByCompany = [:]
            guard let newValue, newValue.count >= 2 else { return }
            let company = UInt16(newValue[newValue.startIndex]) | UInt16(newValue[newValue.startIndex + 1]) << 8
            manufacturerDataByCompany[company] = newValue.dropFirst(2)
        }
    }

    /// The spelling of ``manufacturerData`` in the original documents.
    public var manufactuereData: Data? {
        get { manufacturerData }
        set { manufacturerData = newValue }
    }

    /// Manufacturer specific data by company identifier (Bluetooth Assigned Numbers, 7.1), without that identifier.
    public var manufacturerDataByCompany: [UInt16: Data] {
        get { manufacturers.data }
        set { manufacturers = PackedData(newValue) }
    }

    /// The advertised transmission power in dBm, a whole number; `nil` if none was advertised in this discovery.
    public var txPower: NSNumber? {
        get { power.map { NSNumber(value: $0) } }
        set { power = newValue?.intValue }
    }

    /// Always `nil` in the results of a scan: no version of BlueZ (5.55 to 5.87) exports whether a peripheral is
    /// connectable. The flags (``advertisingFlags``) do not imply it. An advertisement that ``PeripheralManager``
    /// restores has a value.
    public var isConnectable: NSNumber?

    /// The advertised services; after a connection, the services that the peripheral has.
    public var serviceUUIDs: [CBUUID]?

    /// Data advertised for a service, by its UUID.
    public var serviceData: [CBUUID: Data]? {
        get { services?.data }
        set { services = newValue.map { PackedData($0) } }
    }

    /// Always `nil`: the overflow area belongs to Apple's advertising, and BlueZ does not decode it.
    public var overflowServiceUUIDs: [CBUUID]?

    /// The services that the peripheral solicits, from the types 0x14, 0x1F and 0x15 of ``dataByType`` (Core Specification
    /// Supplement, part A, 1.10).
    ///
    /// `nil` in the results of a scan with BlueZ 5.55 to 5.87: these versions do not export the three types. An
    /// advertisement that ``PeripheralManager`` restores has a value.
    public var solicitedServiceUUIDs: [CBUUID]?

    /// The flags of the newest packet (Core Specification Supplement, part A, 1.3), 0 if it had none; `nil` if BlueZ
    /// does not export them: up to 5.77 it exports them only with `--experimental`.
    public var advertisingFlags: UInt8?

    /// The advertised data of types that no other property has, by type (Bluetooth Assigned Numbers, 2.3). Empty if
    /// BlueZ does not export them: up to 5.77 it exports them only with `--experimental`.
    ///
    /// BlueZ exports only the types that it considers safe, such as 0x24 (URI) and 0x26 (transport discovery data). It
    /// signals a change of 0x26 only. A change of another type appears only with the next report of a peripheral that
    /// BlueZ did not have before.
    public var dataByType: [UInt8: Data] = [:]

    /// Creates advertising data, for tests of code that handles it. ``dataByType`` is empty.
    ///
    /// - Parameters:
    ///   - localName: The name.
    ///   - manufacturerDataByCompany: Manufacturer specific data by company identifier.
    ///   - txPower: The power at which the peripheral sends, in dBm.
    ///   - isConnectable: Whether a central can connect, as a Boolean number.
    ///   - serviceUUIDs: The UUIDs of the services that the peripheral offers.
    ///   - serviceData: Data by the UUID of its service.
    public init(
        localName: String? = nil, manufacturerDataByCompany: [UInt16: Data] = [:], txPower: NSNumber? = nil,
        isConnectable: NSNumber? = nil, serviceUUIDs: [CBUUID]? = nil, serviceData: [CBUUID: Data]? = nil
    ) {
        self.localName = localName
        self.manufacturers = PackedData(manufacturerDataByCompany)
        self.power = txPower?.intValue
        self.isConnectable = isConnectable
        self.serviceUUIDs = serviceUUIDs
        self.services = serviceData.map { PackedData($0) }
    }

    init(_ device: borrowing Device1) {
        localName = device.name
        manufacturers = device.manufacturerData
        power = device.txPower
        serviceUUIDs = device.uuids.isEmpty ? nil : device.uuids
        services = device.serviceData.isEmpty ? nil : device.serviceData
        advertisingFlags = device.advertisingFlags
        guard !device.advertisingData.isEmpty else { return }
        dataByType = device.advertisingData.data
        solicitedServiceUUIDs = device.advertisingData.solicitedServices
    }
}

extension PeripheralAdvertisements {
    /// Returns the measurements that sensors advertised, such as temperatures, decoded.
    ///
    /// BlueZ merges packets, so the result can contain measurements of earlier packets. A measurement that was received
    /// before has the same `SensorReading.sequenceNumber`, if its format has one.
    ///
    /// - Parameters:
    ///   - address: The address of the peripheral, which some formats contain and are recognized by; `nil` if it is not known.
    ///   - decoders: The formats.
    /// - Returns: At most one reading of each decoder; most peripherals advertise none.
    public func sensorReadings(address: BluetoothAddress?, decoders: AdvertisementDecoders = .standard)
        -> [SensorReading]
    {
        let (companies, services) = (manufacturerDataByCompany, serviceData ?? [:])
        return decoders.readings(
            in: .init(address: address, localName: localName, manufacturerData: companies, serviceData: services))
    }

    /// What was advertised under Core Bluetooth's keys, such as `CBAdvertisementDataLocalNameKey`.
    package var packet: [String: Any] {
        var packet: [String: Any] = [:]
        packet[CBAdvertisementDataLocalNameKey] = localName
        packet[CBAdvertisementDataManufacturerDataKey] = manufacturerData
        packet[CBAdvertisementDataServiceUUIDsKey] = serviceUUIDs
        packet[CBAdvertisementDataServiceDataKey] = serviceData
        packet[CBAdvertisementDataTxPowerLevelKey] = txPower
        packet[CBAdvertisementDataIsConnectable] = isConnectable
        packet[CBAdvertisementDataSolicitedServiceUUIDsKey] = solicitedServiceUUIDs
        return packet
    }
}

extension PackedData {
    /// The entries as a dictionary.
    fileprivate var data: [Key: Data] {
        guard !isEmpty else { return [:] }
        // With room from the start, the first entry does not have it allocated again.
        var data = [Key: Data](minimumCapacity: 1)
        forEach { data[$0] = Data($1) }
        return data
    }
}
