public import Foundation
public import BlueCapGATT

/// What a peripheral advertises.
///
/// ```swift
/// let environment = CBUUID(string: "181A")
/// let data = AdvertisingData(
///     localName: "Kitchen", serviceUUIDs: [environment], serviceData: [environment: Data([0x59, 0x08])])
/// let advertisement = try await manager.startAdvertising(data)
/// ```
///
/// An advertisement has 31 bytes, and so has the scan response, into which BlueZ puts the name. With extended
/// advertising an advertisement may be longer: ``AdvertisingLimits`` has the lengths of an adapter and its BlueZ.
/// ``check()`` reports what does not fit every adapter, ``check(_:)`` what does not fit one adapter. ``byteCount`` and
/// ``scanResponseByteCount`` are the lengths of this advertisement.
public struct AdvertisingData: Hashable, Sendable {
    /// Whether centrals can connect in response to an advertisement.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// Centrals can connect.
        case connectable
        /// Centrals cannot connect: a beacon.
        case broadcast
    }

    /// The secondary channel that a long advertisement uses, if the controller has it.
    public enum SecondaryChannel: String, Hashable, Sendable, Codable, CaseIterable {
        /// The 1M PHY: one megabit per second.
        case oneMegabit = "1M"
        /// The 2M PHY: two megabits per second, with a shorter range.
        case twoMegabit = "2M"
        /// The coded PHY: 125 or 500 kilobits per second, with a longer range.
        case coded = "Coded"
    }

    /// The name that centrals receive.
    public var localName: String?
    /// The UUIDs of the services that the peripheral offers, or of some of them.
    public var serviceUUIDs: [CBUUID]
    /// The UUIDs of the services that the peripheral looks for in a central.
    public var solicitedServiceUUIDs: [CBUUID]
    /// Manufacturer specific data by company identifier (Bluetooth Assigned Numbers, 7.1), without that identifier.
    public var manufacturerData: [UInt16: Data]
    /// Data by the UUID of its service, without that UUID.
    public var serviceData: [CBUUID: Data]
    /// Whether centrals can connect.
    public var kind: Kind
    /// What the scan response contains besides the name. BlueZ before 5.80 ignores it.
    public var scanResponse: ScanResponse
    /// The kind of device (Bluetooth Assigned Numbers, 2.6).
    public var appearance: UInt16?
    /// Whether the advertisement contains the power at which the controller sends.
    public var includesTxPower: Bool
    /// The power to send at, in dBm from -127 to 20. BlueZ before 5.77 ignores it unless it is experimental.
    public var txPower: Int?
    /// The interval at which the advertisement is sent, from 20 milliseconds to 10.24 seconds, rounded to milliseconds. BlueZ
    /// before 5.77 ignores it unless it is experimental.
    public var interval: ClosedRange<Duration>?
    /// Whether the advertisement contains the flag "general discoverable", in three bytes. BlueZ refuses the flag in a
    /// broadcast, which never contains it.
    public var isDiscoverable: Bool
    /// The time after which BlueZ ends the advertisement, in whole seconds from 1 to 65 535; `nil` for no end.
    public var timeout: Duration?
    /// The time for which the advertisement is sent before the adapter's next one, in whole seconds from 1 to 65 535.
    public var duration: Duration?
    /// The secondary channel; `nil` lets BlueZ choose. It has an effect only with extended advertising.
    public var secondaryChannel: SecondaryChannel?

    /// Fields of the scan response, which a central that scans actively asks for.
    public struct ScanResponse: Hashable, Sendable {
        /// More UUIDs of the services that the peripheral offers.
        public var serviceUUIDs: [CBUUID]
        /// Manufacturer specific data by company identifier (Bluetooth Assigned Numbers, 7.1), without that identifier.
        public var manufacturerData: [UInt16: Data]
        /// Data by the UUID of its service, without that UUID.
        public var serviceData: [CBUUID: Data]

        /// Creates a scan response with these fields.
        public init(
            serviceUUIDs: [CBUUID] = [], manufacturerData: [UInt16: Data] = [:], serviceData: [CBUUID: Data] = [:]
        ) {
            self.serviceUUIDs = serviceUUIDs
            self.manufacturerData = manufacturerData
            self.serviceData = serviceData
        }

        var isEmpty: Bool { serviceUUIDs.isEmpty && manufacturerData.isEmpty && serviceData.isEmpty }
    }

    /// Creates the data of an advertisement from its properties. They are checked when it starts, or by ``check()``.
    public init(
        localName: String? = nil, serviceUUIDs: [CBUUID] = [], solicitedServiceUUIDs: [CBUUID] = [],
        manufacturerData: [UInt16: Data] = [:], serviceData: [CBUUID: Data] = [:], kind: Kind = .connectable,
        scanResponse: ScanResponse = ScanResponse(), appearance: UInt16? = nil, includesTxPower: Bool = false,
        txPower: Int? = nil, interval: ClosedRange<Duration>? = nil, isDiscoverable: Bool = true,
        timeout: Duration? = nil, duration: Duration? = nil, secondaryChannel: SecondaryChannel? = nil
    ) {
        (self.localName, self.serviceUUIDs, self.solicitedServiceUUIDs) = (
            localName, serviceUUIDs, solicitedServiceUUIDs
        )
        (self.manufacturerData, self.serviceData, self.kind) = (manufacturerData, serviceData, kind)
        (self.scanResponse, self.appearance, self.secondaryChannel) = (scanResponse, appearance, secondaryChannel)
        (self.includesTxPower, self.txPower, self.interval) = (includesTxPower, txPower, interval)
        (self.isDiscoverable, self.timeout, self.duration) = (isDiscoverable, timeout, duration)
    }

    /// An iBeacon: 27 bytes of manufacturer data, byte for byte as in Apple's specification. Centrals cannot connect.
    /// BlueZ adds no flags to it; to have them after the data, set ``kind-swift.property`` to `connectable`.
    public init(_ beacon: IBeacon) {
        self.init(manufacturer: IBeacon.company, data: beacon.data)
    }

    /// An AltBeacon: 28 bytes of manufacturer data. Centrals cannot connect.
    public init(_ beacon: AltBeacon) {
        self.init(manufacturer: beacon.company, data: beacon.data)
    }

    /// An Eddystone frame with the identity of the beacon.
    public init(_ frame: Eddystone.UID) { self.init(eddystone: frame.data) }

    /// An Eddystone frame with a link.
    public init(_ frame: Eddystone.URL) { self.init(eddystone: frame.data) }

    /// An Eddystone frame with the telemetry of the beacon.
    public init(_ frame: Eddystone.TLM) { self.init(eddystone: frame.data) }

    private init(manufacturer company: UInt16, data: Data) {
        self.init(manufacturerData: [company: data], kind: .broadcast)
    }

    private init(eddystone frame: Data) {
        self.init(
            serviceUUIDs: [Eddystone.service], serviceData: [Eddystone.service: frame], kind: .broadcast)
    }
}

/// A part of an advertisement.
public enum AdvertisingField: String, Hashable, Sendable, CaseIterable, CustomStringConvertible {
    /// The flags, such as "general discoverable"; see ``AdvertisingData/isDiscoverable``.
    case flags
    /// The name; see ``AdvertisingData/localName``.
    case localName = "local name"
    /// The UUIDs of the services that the peripheral offers; see ``AdvertisingData/serviceUUIDs``.
    case serviceUUIDs = "service UUIDs"
    /// The UUIDs of the services that the peripheral looks for; see ``AdvertisingData/solicitedServiceUUIDs``.
    case solicitedServiceUUIDs = "solicited service UUIDs"
    /// The manufacturer specific data; see ``AdvertisingData/manufacturerData``.
    case manufacturerData = "manufacturer data"
    /// The data of services; see ``AdvertisingData/serviceData``.
    case serviceData = "service data"
    /// The kind of device; see ``AdvertisingData/appearance``.
    case appearance
    /// The power at which the controller sends; see ``AdvertisingData/includesTxPower``.
    case txPower = "transmission power"
    /// The scan response as a whole; see ``AdvertisingData/scanResponse``.
    case scanResponse = "scan response"

    public var description: String { rawValue }
}
