public import Foundation

/// The data of a beacon, in any of the supported formats.
public enum Beacon: Hashable, Sendable {
    /// An iBeacon of Apple.
    case iBeacon(IBeacon)
    /// The identifier of an Eddystone beacon.
    case eddystoneUID(Eddystone.UID)
    /// The address of a web page, from an Eddystone beacon.
    case eddystoneURL(Eddystone.URL)
    /// The telemetry of an Eddystone beacon.
    case eddystoneTLM(Eddystone.TLM)
    /// An AltBeacon.
    case altBeacon(AltBeacon)

    /// The format of a beacon.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// iBeacon, in Apple's manufacturer specific data.
        case iBeacon
        /// Eddystone-UID, an identifier in service data.
        case eddystoneUID
        /// Eddystone-URL, the address of a web page in service data.
        case eddystoneURL
        /// Eddystone-TLM, unencrypted telemetry in service data.
        case eddystoneTLM
        /// AltBeacon, in manufacturer specific data of any company.
        case altBeacon
    }

    /// The format.
    public var kind: Kind {
        switch self {
        case .iBeacon: .iBeacon
        case .eddystoneUID: .eddystoneUID
        case .eddystoneURL: .eddystoneURL
        case .eddystoneTLM: .eddystoneTLM
        case .altBeacon: .altBeacon
        }
    }

    /// The signal strength at a distance of one metre in dBm, as the beacon sends it; `nil` for telemetry, which does
    /// not contain it.
    public var measuredPower: Int? {
        switch self {
        case .iBeacon(let beacon): Int(beacon.measuredPower)
        case .altBeacon(let beacon): Int(beacon.measuredPower)
        case .eddystoneUID(let frame): Int(frame.powerAtZeroMetres) - Eddystone.lossAtOneMetre
        case .eddystoneURL(let frame): Int(frame.powerAtZeroMetres) - Eddystone.lossAtOneMetre
        case .eddystoneTLM: nil
        }
    }

    /// Reads one company's manufacturer data, without the identifier; `nil` if they are no beacon's.
    public init?(company: UInt16, manufacturerData data: Data) {
        if company == IBeacon.company, let beacon = IBeacon(data: data) {
            self = .iBeacon(beacon)
        } else if let beacon = AltBeacon(company: company, data: data) {
            self = .altBeacon(beacon)
        } else {
            return nil
        }
    }

    /// Reads the data of a service; `nil` if they are no beacon's.
    public init?(service: CBUUID, serviceData data: Data) {
        guard service == Eddystone.service else { return nil }
        if let frame = Eddystone.UID(data: data) {
            self = .eddystoneUID(frame)
        } else if let frame = Eddystone.URL(data: data) {
            self = .eddystoneURL(frame)
        } else if let frame = Eddystone.TLM(data: data) {
            self = .eddystoneTLM(frame)
        } else {
            return nil
        }
    }

    /// Returns all beacons in an advertisement: those in manufacturer data first, by company, then Eddystone's.
    public static func all(manufacturerData: [UInt16: Data], serviceData: [CBUUID: Data]) -> [Beacon] {
        manufacturerData.keys.sorted()
            .compactMap { Beacon(company: $0, manufacturerData: manufacturerData[$0] ?? Data()) }
            + serviceData.compactMap { Beacon(service: $0.key, serviceData: $0.value) }
    }
}

/// Selects beacons: those of a format, or of an owner, or a single one.
public enum BeaconFilter: Hashable, Sendable {
    /// All beacons of a format.
    case kind(Beacon.Kind)
    /// iBeacons with this proximity UUID, and with this major and minor if they are given.
    case iBeacon(UUID, major: UInt16? = nil, minor: UInt16? = nil)
    /// Eddystone beacons with this namespace, ten bytes, and with this instance, six bytes, if it is given. Their other
    /// frames have no identity.
    case eddystone(namespace: Data, instance: Data? = nil)
    /// AltBeacons of this organization, and with this number if it is given.
    case altBeacon(UUID, number: UInt32? = nil)

    /// Returns whether the filter selects `beacon`.
    public func accepts(_ beacon: Beacon) -> Bool {
        switch (self, beacon) {
        case (.kind(let kind), _):
            kind == beacon.kind
        case (.iBeacon(let uuid, let major, let minor), .iBeacon(let beacon)):
            uuid == beacon.uuid && (major ?? beacon.major) == beacon.major && (minor ?? beacon.minor) == beacon.minor
        case (.eddystone(let namespace, let instance), .eddystoneUID(let frame)):
            namespace == frame.namespace && (instance ?? frame.instance) == frame.instance
        case (.altBeacon(let organization, let number), .altBeacon(let beacon)):
            organization == beacon.organization && (number ?? beacon.number) == beacon.number
        case (.iBeacon, _), (.eddystone, _), (.altBeacon, _):
            false
        }
    }
}
