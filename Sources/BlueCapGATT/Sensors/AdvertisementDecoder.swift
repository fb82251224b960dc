public import Foundation

/// Decodes one format, or a family of formats, in which sensors advertise what they measure.
///
/// A decoder is a value without state: it decodes one advertisement, and remembers none. To decode a format that this
/// package does not have, write a type with this protocol and add a value of it to ``AdvertisementDecoders``:
///
/// ```swift
/// struct RainGauge: AdvertisementDecoder {
///     func reading(in advertisement: AdvertisementFields) -> SensorReading? {
///         guard let data = advertisement.manufacturerData[0xFFFF], let tenths = data.first else { return nil }
///         let rain = SensorValue(.precipitation, .number(Double(tenths) / 10), unit: "mm")
///         return SensorReading(format: "rain_gauge", values: [rain])
///     }
/// }
/// var decoders = AdvertisementDecoders.standard
/// decoders.decoders.append(RainGauge())
/// ```
public protocol AdvertisementDecoder: Sendable {
    /// Returns what the advertisement contains in this format; `nil` if it contains nothing in this format.
    ///
    /// The data is input from outside: the function must accept any bytes.
    func reading(in advertisement: AdvertisementFields) -> SensorReading?
}

/// The fields of an advertisement that an ``AdvertisementDecoder`` reads.
public struct AdvertisementFields: Hashable, Sendable {
    /// The address of the sender; `nil` if it is not known. Some formats contain the address, and their decoders refuse data
    /// with another one.
    public var address: BluetoothAddress?
    /// The advertised name; `nil` if there is none.
    public var localName: String?
    /// Manufacturer specific data by company identifier (Bluetooth Assigned Numbers, 7.1), without that identifier.
    public var manufacturerData: [UInt16: Data]
    /// Data by the UUID of its service.
    public var serviceData: [CBUUID: Data]

    /// Creates the fields of an advertisement from their values.
    public init(
        address: BluetoothAddress? = nil, localName: String? = nil, manufacturerData: [UInt16: Data] = [:],
        serviceData: [CBUUID: Data] = [:]
    ) {
        (self.address, self.localName) = (address, localName)
        (self.manufacturerData, self.serviceData) = (manufacturerData, serviceData)
    }
}

/// A list of decoders that are applied to the same advertisement.
public struct AdvertisementDecoders: Sendable {
    /// The decoders, in the order in which their readings are returned.
    public var decoders: [any AdvertisementDecoder]

    /// Creates a list of decoders.
    public init(_ decoders: [any AdvertisementDecoder]) { self.decoders = decoders }

    /// The decoders of measurements: ``BTHomeDecoder``, ``RuuviDecoder``, ``EddystoneTelemetryDecoder``,
    /// ``XiaomiThermometerDecoder``, ``GoveeDecoder``, ``MiBeaconDecoder`` and ``ServiceDataDecoder``. Later versions add decoders.
    public static let standard = AdvertisementDecoders([
        BTHomeDecoder(), RuuviDecoder(), EddystoneTelemetryDecoder(), XiaomiThermometerDecoder(), GoveeDecoder(),
        MiBeaconDecoder(), ServiceDataDecoder(),
    ])

    /// All decoders of this package: ``standard`` and ``NearbyDeviceDecoder``. Later versions add decoders.
    public static let all = AdvertisementDecoders(standard.decoders + [NearbyDeviceDecoder()])

    /// Returns the readings that an advertisement contains, at most one of each decoder. Most advertisements contain none.
    public func readings(in advertisement: AdvertisementFields) -> [SensorReading] {
        decoders.compactMap { $0.reading(in: advertisement) }
    }
}
