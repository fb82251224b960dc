/// The output for people where standard output is no terminal: one line an event, made for reading and for `grep`.
struct PlainLines: ScanReporter {
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

    /// "8 peripherals in 3.0 s".
    static func line(_ summary: ScanSummary) -> String {
        let count = summary.peripherals == 1 ? "1 peripheral" : "\(summary.peripherals) peripherals"
        return "\(count) in \(EventTime.tenths(summary.seconds))"
    }

    private static func line(_ event: String, _ sighting: Sighting) -> String {
        var parts = [
            DisplayText.padded(event, to: 10), sighting.address,
            DisplayText.padded(sighting.rssi.map { "\($0) dBm" } ?? "?", to: 8, alignment: .trailing),
            sighting.name.map(DisplayText.name) ?? "(no name)",
        ]
        let services = Wording.services(of: sighting)
        if !services.isEmpty { parts.append("[\(DisplayText.safe(services))]") }
        if !sighting.makers.isEmpty { parts.append("(" + DisplayText.safe(Wording.makers(of: sighting)) + ")") }
        parts += sighting.beacons.map(BeaconWording.text)
        return parts.joined(separator: "  ")
    }
}
