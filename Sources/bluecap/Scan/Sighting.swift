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

// MARK: Lines

/// Returns the line of a scan for what happened: for people, or as a JSON object.
///
/// Every JSON line of a peripheral has all members, in one order; what is not known is `null` or empty.
///
/// - Parameter includesDuplicates: Whether every sighting has a line, and not only those that are news.
/// - Returns: `nil` if the event has no line.
func scanLine(for event: ScanEvent, _ format: Format, includesDuplicates: Bool) -> String? {
    switch event {
    case .discovered(let sighting): scanLine("discovered", sighting, format)
    case .updated(let sighting, let isNews):
        isNews || includesDuplicates ? scanLine("updated", sighting, format) : nil
    case .expired(let sighting): scanLine("expired", sighting, format)
    case .finished(let summary):
        format == .json
            ? ([
                "event": JSON("finished"), "peripherals": JSON(summary.peripherals),
                "seconds": JSON(seconds: summary.seconds),
            ] as JSON).text
            : summary.line
    }
}

private func scanLine(_ event: String, _ sighting: Sighting, _ format: Format) -> String {
    format == .json ? JSON([("event", JSON(event))] + sighting.members).text : sighting.line(event)
}

extension ScanSummary {
    /// "8 peripherals in 3.0 s".
    var line: String { "\(Wording.count(peripherals, "peripheral")) in \(Wording.tenths(seconds))" }
}

extension Sighting {
    /// "Heart Rate, Battery"; a service without a name by its UUID, a long UUID by its first digits. Beacons are named by
    /// their kind, which other fields of the advertisement contain.
    var servicesText: String {
        var words = services.map { service in
            if service.uuid == Self.eddystone { return "Eddystone" }
            return service.name ?? (service.uuid.utf8.count <= 8 ? service.uuid : service.uuid.prefix(8) + "…")
        }
        if makers.contains(where: { $0.company == 0x004C && $0.data.starts(with: Self.iBeaconPrefix) }) {
            words.append("iBeacon")
        }
        return DisplayText.safe(words.joined(separator: ", "))
    }

    /// "Apple, Inc."; "company 0x1234" if the company has no name.
    var makersText: String {
        DisplayText.safe(makers.map { $0.name ?? Wording.company($0.company) }.joined(separator: ", "))
    }

    var nameText: String { name.map(DisplayText.name) ?? "(no name)" }

    /// The service that contains all Eddystone frames (Eddystone protocol specification, "Common elements").
    private static let eddystone = "FEAA"

    /// Type and length of an iBeacon in Apple's manufacturer data (Proximity Beacon Specification, 2.2).
    private static let iBeaconPrefix: [UInt8] = [0x02, 0x15]

    fileprivate func line(_ event: String) -> String {
        let strength = DisplayText.padded(rssi.map { "\($0) dBm" } ?? "?", to: 8, alignment: .trailing)
        var parts = [DisplayText.padded(event, to: 10), address, strength, nameText]
        if !servicesText.isEmpty { parts.append("[\(servicesText)]") }
        if !makers.isEmpty { parts.append("(\(makersText))") }
        return (parts + beacons.map(\.line)).joined(separator: "  ")
    }

    fileprivate var members: JSON.Members {
        [
            ("identifier", JSON(identifier.uuidString)), ("address", JSON(address)),
            ("addressType", JSON(addressType)), ("name", JSON(name)), ("rssi", JSON(rssi)),
            ("txPower", JSON(txPower)), ("services", JSON(services.map(\.uuid))),
            ("manufacturerData", JSON(makers.map { (String($0.company), JSON($0.data)) })),
            ("serviceData", JSON(serviceData) { $0 }), ("connectable", JSON(isConnectable)),
            ("beacons", JSON(beacons.map(\.json))),
        ]
    }
}
