import Foundation

/// What `scan --statistics` prints at the end: how many sightings there were, altogether and of each peripheral.
struct ScanStatistics: Sendable {
    let seconds: Double
    /// How many times BlueZ was asked to scan again.
    let restarts: Int
    /// Those with the most sightings first.
    let peripherals: [ScanBoard.Row]

    init(_ board: ScanBoard, seconds: Double, restarts: Int) {
        (self.seconds, self.restarts) = (seconds, restarts)
        peripherals = board.rows.sorted { ($1.sightings, $0.sighting.address) < ($0.sightings, $1.sighting.address) }
    }

    var sightings: Int { peripherals.reduce(0) { $0 + $1.sightings } }
    var perSecond: Double { seconds > 0 ? Double(sightings) / seconds : 0 }

    func json(at date: Date) -> JSON {
        let each = peripherals.map { peripheral -> JSON in
            [
                "address": JSON(peripheral.sighting.address), "name": JSON(peripheral.sighting.name),
                "sightings": JSON(peripheral.sightings),
                "interval": peripheral.interval.map { JSON(seconds: $0) } ?? .null,
            ]
        }
        return [
            "event": JSON("statistics"), "time": JSON(Wording.timestamp(date)), "seconds": JSON(seconds: seconds),
            "sightings": JSON(sightings), "perSecond": JSON(seconds: perSecond), "restarts": JSON(restarts),
            "peripherals": JSON(each),
        ]
    }

    /// Lines for people, each with its end.
    var text: String {
        let head =
            "\(sightings) sightings of \(peripherals.count) peripherals in \(Self.number(seconds)) s, "
            + "\(Self.number(perSecond)) per second"
            + (restarts > 0 ? "; restarts of the scan: \(restarts)\n" : "\n")
        return head
            + peripherals.map {
                let interval = $0.interval.map { ", every \(Self.number($0)) s" } ?? ""
                let name = $0.sighting.name.map { "  \(DisplayText.safe($0))" } ?? ""
                return "  \($0.sighting.address)  \($0.sightings)\(interval)\(name)\n"
            }.joined()
    }

    private static func number(_ value: Double) -> String { JSON(seconds: value).text }
}
