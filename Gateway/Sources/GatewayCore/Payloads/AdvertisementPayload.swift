public import BlueCapKit
public import Foundation

/// What a peripheral advertises, on ``Topics/advertisement(_:)``.
public struct AdvertisementPayload: Payload {
    /// When it was received.
    public var time: String
    /// The address, as BlueZ writes it.
    public var address: String
    /// The strength in dBm.
    public var rssi: Int?
    /// The advertised name, without control characters.
    public var name: String?
    /// The advertised power of transmission in dBm.
    public var txPower: Int?
    /// The advertised services, in ascending order.
    public var services: [String]?
    /// Manufacturer specific data in hexadecimal, by company in four hexadecimal digits, without the company's identifier.
    public var manufacturerData: [String: String]?
    /// Service data in hexadecimal, by service.
    public var serviceData: [String: String]?
    /// The beacons in the data.
    public var beacons: [BeaconPayload]?

    /// Creates the payload of a report.
    public init(device: DeviceName, advertisements: PeripheralAdvertisements, rssi: Int?, time: Date) {
        self.time = PayloadTime.text(time)
        address = device.address
        self.rssi = rssi
        name = PayloadText.name(advertisements.localName)
        txPower = advertisements.txPower?.intValue
        services = advertisements.serviceUUIDs.map { $0.map { Topics.text(of: $0) }.sorted() }
        let (companies, data) = (advertisements.manufacturerDataByCompany, advertisements.serviceData ?? [:])
        if !companies.isEmpty {
            manufacturerData = Dictionary(
                companies.map { (Topics.text(of: CBUUID(UInt32($0))), PayloadBytes.text($1)) }, uniquingKeysWith: { $1 }
            )
        }
        if !data.isEmpty {
            serviceData = Dictionary(
                data.map { (Topics.text(of: $0), PayloadBytes.text($1)) }, uniquingKeysWith: { $1 })
        }
        let found = Beacon.all(manufacturerData: companies, serviceData: data).map(BeaconPayload.init)
        beacons = found.isEmpty ? nil : found
    }
}

/// A beacon of an advertisement.
public struct BeaconPayload: Payload {
    /// The format: `iBeacon`, `eddystoneUID`, `eddystoneURL`, `eddystoneTLM` or `altBeacon`.
    public var kind: String
    /// The strength at one metre in dBm.
    public var measuredPower: Int?
    /// Of an iBeacon, and of an AltBeacon its organization.
    public var uuid: String?
    /// The first number of an iBeacon, 0 to 65535.
    public var major: Int?
    /// The second number of an iBeacon, 0 to 65535.
    public var minor: Int?
    /// The ten bytes of the namespace of Eddystone-UID in hexadecimal.
    public var namespace: String?
    /// The six bytes of the instance of Eddystone-UID in hexadecimal.
    public var instance: String?
    /// Of Eddystone-URL.
    public var url: String?
    /// Of an AltBeacon.
    public var number: UInt32?

    /// Creates the payload of a beacon. Telemetry has its values in ``ReadingPayload``.
    public init(_ beacon: Beacon) {
        (kind, measuredPower) = (beacon.kind.rawValue, beacon.measuredPower)
        switch beacon {
        case .iBeacon(let beacon):
            (uuid, major, minor) = (beacon.uuid.uuidString.lowercased(), Int(beacon.major), Int(beacon.minor))
        case .altBeacon(let beacon):
            (uuid, number) = (beacon.organization.uuidString.lowercased(), beacon.number)
        case .eddystoneUID(let frame):
            (namespace, instance) = (PayloadBytes.text(frame.namespace), PayloadBytes.text(frame.instance))
        case .eddystoneURL(let frame): url = frame.text
        case .eddystoneTLM: break
        }
    }
}
