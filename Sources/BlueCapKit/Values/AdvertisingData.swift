public import Foundation
public import BlueCapGATT

/// What a peripheral advertises.
///
/// ```swift
/// var data = AdvertisingData(localName: "Kitchen", serviceUUIDs: [CBUUID(string: "181A")])
/// data.serviceData[CBUUID(string: "181A")] = Data([0x59, 0x08])
/// let advertisement = manager.startAdvertising(data)
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

    /// Whether centrals can connect; ``Kind/connectable`` by default.
    public var kind = Kind.connectable
    /// The name that centrals receive.
    public var localName: String?
    /// The UUIDs of the services that the peripheral offers, or of some of them.
    public var serviceUUIDs: [CBUUID] = []
    /// The UUIDs of the services that the peripheral looks for in a central.
    public var solicitedServiceUUIDs: [CBUUID] = []
    /// Manufacturer specific data by company identifier (Bluetooth Assigned Numbers, 7.1), without that identifier.
    public var manufacturerData: [UInt16: Data] = [:]
    /// Data by the UUID of its service, without that UUID.
    public var serviceData: [CBUUID: Data] = [:]
    /// What the scan response contains besides the name. BlueZ before 5.80 ignores it.
    public var scanResponse = ScanResponse()
    /// The kind of device (Bluetooth Assigned Numbers, 2.6).
    public var appearance: UInt16?
    /// Whether the advertisement contains the power at which the controller sends.
    public var includesTxPower = false
    /// The power to send at, in dBm from -127 to 20. BlueZ before 5.77 ignores it unless it is experimental.
    public var txPower: Int?
    /// The interval at which the advertisement is sent, in seconds from 0.02 to 10.24. BlueZ before 5.77 ignores it
    /// unless it is experimental.
    public var interval: ClosedRange<TimeInterval>?
    /// Whether the advertisement contains the flag "general discoverable", in three bytes. BlueZ refuses the flag in a
    /// broadcast, which never contains it.
    public var isDiscoverable = true
    /// The number of seconds after which BlueZ ends the advertisement, from 1 to 65 535; `nil` for no end.
    public var timeout: Int?
    /// The number of seconds for which the advertisement is sent before the adapter's next one, from 1 to 65 535.
    public var duration: Int?
    /// The secondary channel; `nil` lets BlueZ choose. It has an effect only with extended advertising.
    public var secondaryChannel: SecondaryChannel?

    /// Fields of the scan response, which a central that scans actively asks for.
    public struct ScanResponse: Hashable, Sendable {
        /// More UUIDs of the services that the peripheral offers.
        public var serviceUUIDs: [CBUUID] = []
        /// Manufacturer specific data by company identifier (Bluetooth Assigned Numbers, 7.1), without that identifier.
        public var manufacturerData: [UInt16: Data] = [:]
        /// Data by the UUID of its service, without that UUID.
        public var serviceData: [CBUUID: Data] = [:]

        /// Creates a scan response without fields.
        public init() {}

        var isEmpty: Bool { serviceUUIDs.isEmpty && manufacturerData.isEmpty && serviceData.isEmpty }
    }

    /// - Parameters:
    ///   - localName: The name that centrals receive.
    ///   - serviceUUIDs: The UUIDs of the services that the peripheral offers, or of some of them.
    public init(localName: String? = nil, serviceUUIDs: [CBUUID] = []) {
        self.localName = localName
        self.serviceUUIDs = serviceUUIDs
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
        self.init()
        kind = .broadcast
        manufacturerData = [company: data]
    }

    private init(eddystone frame: Data) {
        self.init()
        kind = .broadcast
        serviceUUIDs = [Eddystone.service]
        serviceData = [Eddystone.service: frame]
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
