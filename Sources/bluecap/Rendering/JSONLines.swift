import Foundation

/// The output for programs: one JSON object a line.
///
/// Every line of a peripheral has all members, in one order; what is not known is `null` or empty.
struct JSONLines: ScanReporter {
    /// Print every sighting, not only those that tell more than the last.
    let includesDuplicates: Bool

    func lines(for event: ScanEvent) -> [String] {
        switch event {
        case .discovered(let sighting): [Self.line("discovered", sighting)]
        case .updated(let sighting, let isNews): isNews || includesDuplicates ? [Self.line("updated", sighting)] : []
        case .expired(let sighting): [Self.line("expired", sighting)]
        case .finished(let summary): [Self.line(summary)]
        }
    }

    private static func line(_ event: String, _ sighting: Sighting) -> String {
        var line = JSONObject()
        line.add("event", event)
        line.add("identifier", sighting.identifier.uuidString)
        line.add("address", sighting.address)
        line.add("addressType", sighting.addressType)
        line.add("name", sighting.name)
        line.add("rssi", sighting.rssi)
        line.add("txPower", sighting.txPower)
        line.add("services", sighting.services.map(\.uuid))
        line.add("manufacturerData", object(sighting.makers.map { (String($0.company), $0.data) }))
        line.add("serviceData", object(sighting.serviceData.sorted { $0.key < $1.key }))
        line.add("connectable", sighting.isConnectable)
        line.add("beacons", sighting.beacons.map(BeaconWording.object))
        return line.closed
    }

    private static func line(_ summary: ScanSummary) -> String {
        var line = JSONObject()
        line.add("event", "finished")
        line.add("peripherals", summary.peripherals)
        line.add("seconds", seconds: summary.seconds)
        return line.closed
    }

    private static func object(_ members: [(key: String, value: Data)]) -> JSONObject {
        var object = JSONObject()
        for member in members { object.add(member.key, ValueForm.hexadecimal(member.value)) }
        return object
    }
}
