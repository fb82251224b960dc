/// Turns what happens in a scan into lines, one or none for each event.
protocol ScanReporter: Sendable {
    func lines(for event: ScanEvent) -> [String]
}
