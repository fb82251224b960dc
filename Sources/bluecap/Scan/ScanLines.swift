import Foundation

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
