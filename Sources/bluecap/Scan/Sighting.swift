import BlueCapKit
import Foundation

/// What is known of a peripheral at the moment it was heard, as a value: all that the outputs print.
struct Sighting: Equatable, Sendable {
    /// A service by its UUID and, where the assigned numbers have one, its name.
    struct Service: Equatable, Sendable {
        var uuid: String
        var name: String?
    }

    /// A maker by its company identifier, with what it sent.
    struct Maker: Equatable, Sendable {
        var company: UInt16
        var name: String?
        var data: Data
    }

    var identifier: UUID
    var address: String
    /// `public` or `random`.
    var addressType: String
    /// `nil` where nobody has told a name.
    var name: String?
    /// dBm; `nil` where it is not known.
    var rssi: Int?
    /// dBm; `nil` where it was not advertised.
    var txPower: Int?
    /// In the order in which they are to be printed.
    var services: [Service] = []
    /// By ascending company identifier.
    var makers: [Maker] = []
    /// By service UUID.
    var serviceData: [String: Data] = [:]
    /// `nil` where it is not known.
    var isConnectable: Bool?

    /// What sort of beacon it is, by what it sends.
    var beacons: [Beacon] {
        let manufacturerData = Dictionary(makers.map { ($0.company, $0.data) }) { first, _ in first }
        let services = serviceData.compactMap { text, data in CBUUID(validating: text).map { ($0, data) } }
        return Beacon.all(
            manufacturerData: manufacturerData, serviceData: Dictionary(services) { first, _ in first })
    }

    /// Whether this tells who the peripheral is better, or other, than `earlier` did: its name, services, makers.
    ///
    /// Signal and data change with every advertisement; they are readings, not news.
    func tellsMore(than earlier: Sighting) -> Bool {
        name != earlier.name || services != earlier.services || isConnectable != earlier.isConnectable
            || makers.map(\.company) != earlier.makers.map(\.company)
            || Set(serviceData.keys) != Set(earlier.serviceData.keys)
    }
}

/// What a scan tells its output.
enum ScanEvent: Equatable, Sendable {
    /// Heard for the first time in this scan.
    case discovered(Sighting)
    /// Heard again; `isNews` where it tells more of itself than before, or had expired.
    case updated(Sighting, isNews: Bool)
    /// Silent for so long that it is taken to be gone; with what was known last.
    case expired(Sighting)
    /// The scan is over.
    case finished(ScanSummary)
}

/// What a scan found.
struct ScanSummary: Equatable, Sendable {
    /// How many different peripherals were heard.
    var peripherals: Int
    /// How long the scan took.
    var seconds: Double
}
