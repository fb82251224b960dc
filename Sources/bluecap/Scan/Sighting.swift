import BlueCapKit
import Foundation

/// What a peripheral has advertised until one moment, as a value: all that a scan prints.
struct Sighting: Equatable, Sendable {
    /// A service by its UUID, with its assigned name if it has one.
    struct Service: Equatable, Sendable {
        var uuid: String
        var name: String?
    }

    /// A maker by its company identifier, with the data that it sends.
    struct Maker: Equatable, Sendable {
        var company: UInt16
        var name: String?
        var data: Data
    }

    var identifier: UUID
    var address: String
    /// `public` or `random`.
    var addressType: String
    var name: String?
    /// In dBm; `nil` if it is not known.
    var rssi: Int?
    /// In dBm; `nil` if it was not advertised.
    var txPower: Int?
    /// In the order in which they are printed.
    var services: [Service] = []
    /// In ascending order of their company identifiers.
    var makers: [Maker] = []
    /// By service UUID.
    var serviceData: [String: Data] = [:]
    var isConnectable: Bool?

    /// The beacons that the advertised data contains.
    var beacons: [Beacon] {
        let manufacturerData = Dictionary(makers.map { ($0.company, $0.data) }) { first, _ in first }
        let services = serviceData.compactMap { text, data in CBUUID(validating: text).map { ($0, data) } }
        return Beacon.all(
            manufacturerData: manufacturerData, serviceData: Dictionary(services) { first, _ in first })
    }

    /// Whether this identifies the peripheral otherwise than `earlier` did: its name, services, makers.
    ///
    /// Signal and data change with every advertisement, and are no news.
    func isNews(after earlier: Sighting) -> Bool {
        name != earlier.name || services != earlier.services || isConnectable != earlier.isConnectable
            || makers.map(\.company) != earlier.makers.map(\.company)
            || Set(serviceData.keys) != Set(earlier.serviceData.keys)
    }
}

extension Sighting {
    /// The present values of a peripheral, with the assigned names.
    init(_ peripheral: Peripheral) {
        let advertisements = peripheral.advertisements
        self.init(
            identifier: peripheral.identifier, address: peripheral.address,
            addressType: peripheral.addressType.rawValue,
            name: peripheral.knownName ?? advertisements.localName,
            rssi: peripheral.rssi, txPower: advertisements.txPower?.intValue,
            // Short UUIDs, which have names, before long ones, so that lines can be compared.
            services: (advertisements.serviceUUIDs ?? [])
                .map { Service(uuid: $0.uuidString, name: AssignedNumbers.serviceName($0)) }
                .sorted { ($0.uuid.utf8.count, $0.uuid) < ($1.uuid.utf8.count, $1.uuid) },
            makers: advertisements.manufacturerDataByCompany
                .map { Maker(company: $0.key, name: AssignedNumbers.companyName($0.key), data: $0.value) }
                .sorted { $0.company < $1.company },
            serviceData: Dictionary(
                uniqueKeysWithValues: (advertisements.serviceData ?? [:]).map { ($0.key.uuidString, $0.value) }),
            isConnectable: advertisements.isConnectable?.boolValue)
    }
}

/// What happens in a scan.
enum ScanEvent: Equatable, Sendable {
    /// A peripheral is seen for the first time in this scan.
    case discovered(Sighting)
    /// It is seen again; `isNews` if it has a new name, service or maker, or had expired.
    case updated(Sighting, isNews: Bool)
    /// It has been silent for so long that it counts as gone; with its last sighting.
    case expired(Sighting)
    /// The scan has ended.
    case finished(ScanSummary)
}

/// What a scan found.
struct ScanSummary: Equatable, Sendable {
    /// The number of different peripherals.
    var peripherals: Int
    /// How long the scan took.
    var seconds: Double
}
