import BlueCapKit
import Foundation

/// What a peripheral has advertised until one moment, as a value: all that a scan prints.
struct Sighting: Equatable, Sendable {
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
    var services: [CBUUID] = []
    /// By company identifier.
    var manufacturerData: [UInt16: Data] = [:]
    var serviceData: [CBUUID: Data] = [:]
    var isConnectable: Bool?

    var beacons: [Beacon] { Beacon.all(manufacturerData: manufacturerData, serviceData: serviceData) }

    /// What sensors measure, and what other devices advertise of themselves.
    var readings: [SensorReading] {
        Formats.current.decoders.readings(
            in: AdvertisementFields(
                address: BluetoothAddress(address), localName: name, manufacturerData: manufacturerData,
                serviceData: serviceData))
    }

    /// What a filter is compared with, in lower case.
    var words: String { [name ?? "", address, servicesText, makersText].joined(separator: "\n").lowercased() }

    /// Whether this identifies the peripheral otherwise than `earlier` did: its name, services, companies.
    ///
    /// Signal and data change with every advertisement, and are no news.
    func isNews(after earlier: Sighting) -> Bool {
        name != earlier.name || services != earlier.services || isConnectable != earlier.isConnectable
            || manufacturerData.keys != earlier.manufacturerData.keys || serviceData.keys != earlier.serviceData.keys
    }
}

extension Sighting {
    init(_ peripheral: Peripheral) {
        let advertisements = peripheral.advertisements
        self.init(
            identifier: peripheral.identifier, address: peripheral.address,
            addressType: peripheral.addressType.rawValue,
            name: advertisements.localName,
            rssi: peripheral.rssi, txPower: advertisements.txPower?.intValue,
            // Short UUIDs, which have names, before long ones, so that lines can be compared.
            services: (advertisements.serviceUUIDs ?? []).sorted {
                ($0.uuidString.utf8.count, $0.uuidString) < ($1.uuidString.utf8.count, $1.uuidString)
            },
            manufacturerData: advertisements.manufacturerDataByCompany,
            serviceData: advertisements.serviceData ?? [:],
            isConnectable: advertisements.isConnectable?.boolValue)
    }
}

enum ScanEvent: Equatable, Sendable {
    /// A peripheral is seen for the first time in this scan.
    case discovered(Sighting)
    /// It is seen again; `isNews` if it has a new name, service or maker, or had expired.
    case updated(Sighting, isNews: Bool)
    /// It has been silent for so long that it counts as gone; with its last sighting.
    case expired(Sighting)
    /// The scan has ended after so many seconds, with so many different peripherals.
    case finished(peripherals: Int, seconds: Double)
}

// MARK: Lines

extension ScanEvent {
    /// Returns the event's line of the output: for people, or in another format; `nil` if it has none.
    ///
    /// Every JSON line of a peripheral has all members, in one order; what is not known is `null` or empty.
    ///
    /// - Parameters:
    ///   - date: When it happened.
    ///   - timeZone: That of the lines for people.
    ///   - includesDuplicates: Whether every sighting has a line, and not only those that are news.
    func line(
        _ format: Format, at date: Date, in timeZone: TimeZone = .local, includesDuplicates: Bool = false
    ) -> String? {
        switch self {
        case .discovered(let sighting): sighting.line("discovered", format, date, timeZone)
        case .updated(let sighting, let isNews):
            isNews || includesDuplicates ? sighting.line("updated", format, date, timeZone) : nil
        case .expired(let sighting): sighting.line("expired", format, date, timeZone)
        case .finished(let count, let seconds):
            switch format {
            case .json:
                Self.json("finished", date, [("peripherals", JSON(count)), ("seconds", JSON(seconds: seconds))])
            case .table, .lines: "\(Wording.count(count, "peripheral")) in \(Wording.tenths(seconds))"
            case .csv, .text: nil
            }
        }
    }

    fileprivate static func json(_ event: String, _ date: Date, _ members: JSON.Members) -> String {
        JSON([("event", JSON(event)), ("time", JSON(Wording.timestamp(date)))] + members).text
    }
}

extension Sighting: LineFields {
    static let header = "time,event,address,name,rssi,txPower,services,makers,details"
    static let fields = header.split(separator: ",").map(String.init) + ["clock"]

    /// "Heart Rate, Battery, data of FE95"; a service without a name by its UUID, a long UUID by its first digits. An iBeacon is
    /// named by its kind, which other fields of the advertisement contain; service data of a beacon is not named.
    var servicesText: String {
        var words = services.map(Self.short)
        if beacons.contains(where: { $0.kind == .iBeacon }) { words.append("iBeacon") }
        words += serviceData.filter { Beacon(service: $0.key, serviceData: $0.value) == nil }.keys
            .map { "data of \(Self.short($0))" }.sorted()
        return words.joined(separator: ", ")
    }

    private static func short(_ service: CBUUID) -> String {
        let uuid = service.uuidString
        return Formats.serviceName(service) ?? (uuid.utf8.count <= 8 ? uuid : uuid.prefix(8) + "…")
    }

    /// "Apple"; "company 0x1234" if the company has no name.
    var makersText: String { manufacturerData.keys.sorted().map(Wording.company).joined(separator: ", ") }

    /// What beacons and sensors say: "iBeacon F7826DA6-… 1/7", "temperature 21.5 °C, humidity 48 %".
    var detailsText: String {
        // A beacon's telemetry is a beacon and a measurement.
        let measured = readings.filter { $0.format != "eddystone_tlm" }
        return (beacons.map(\.line) + measured.map(\.line)).joined(separator: ", ")
    }

    var nameText: String { name.map(DisplayText.name) ?? "(no name)" }

    fileprivate func line(_ event: String, _ format: Format, _ date: Date, _ timeZone: TimeZone) -> String {
        lazy var texts = texts(event, date, timeZone)
        switch format {
        case .json: return ScanEvent.json(event, date, members)
        case .csv: return Format.row(Self.fields.dropLast().map { texts[$0] ?? "" })
        case .text(let text): return Format.fill(text, texts)
        case .table, .lines: break
        }
        let strength = DisplayText.padded(rssi.map { "\($0) dBm" } ?? "?", to: 8, alignment: .trailing)
        let time = Wording.clock(date, in: timeZone)
        var parts = [time, DisplayText.padded(event, to: 10), address, strength, nameText]
        if !servicesText.isEmpty { parts.append("[\(servicesText)]") }
        if !manufacturerData.isEmpty { parts.append("(\(makersText))") }
        return (parts + (detailsText.isEmpty ? [] : [detailsText])).joined(separator: "  ")
    }

    /// By the names of the fields.
    private func texts(_ event: String, _ date: Date, _ timeZone: TimeZone) -> [String: String] {
        var texts = [
            "time": Wording.timestamp(date), "clock": Wording.clock(date, in: timeZone), "event": event,
            "address": address, "name": name.map(DisplayText.name), "rssi": rssi.map(String.init),
            "txPower": txPower.map(String.init), "services": servicesText, "makers": makersText, "details": detailsText,
        ].compactMapValues { $0 }
        for value in readings.flatMap(\.values) { texts["field:" + value.name] = value.number }
        return texts
    }

    private var members: JSON.Members {
        [
            ("identifier", JSON(identifier.uuidString)), ("address", JSON(address)),
            ("addressType", JSON(addressType)), ("name", JSON(name)), ("rssi", JSON(rssi)),
            ("txPower", JSON(txPower)), ("services", JSON(services.map(\.uuidString))),
            ("manufacturerData", JSON(manufacturerData) { "\($0)" }),
            ("serviceData", JSON(serviceData, key: \.uuidString)), ("connectable", JSON(isConnectable)),
            ("beacons", JSON(beacons.map(\.json))), ("readings", JSON(readings.map(\.json))),
        ]
    }
}
