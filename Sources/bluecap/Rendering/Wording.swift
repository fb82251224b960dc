import BlueCapKit
import Foundation

/// How services, makers and spans of time are put for people.
enum Wording {
    /// "Heart Rate, Battery"; a UUID where there is no name, a long one by its first digits; and what sort of beacon it
    /// is, which its advertisement tells in other ways.
    static func services(of sighting: Sighting) -> String {
        var words = sighting.services.map { $0.uuid == eddystone ? "Eddystone" : $0.name ?? shortened($0.uuid) }
        if sighting.makers.contains(where: { $0.company == 0x004C && $0.data.starts(with: iBeaconPrefix) }) {
            words.append("iBeacon")
        }
        return words.joined(separator: ", ")
    }

    /// The service that all Eddystone frames are data of (Eddystone protocol specification, "Common elements").
    private static let eddystone = "FEAA"

    /// Type and length of an iBeacon in Apple's manufacturer data (Proximity Beacon Specification, 2.2).
    private static let iBeaconPrefix: [UInt8] = [0x02, 0x15]

    /// "Apple, Inc."; "company 0x1234" where there is no name.
    static func makers(of sighting: Sighting) -> String {
        sighting.makers.map { $0.name ?? company($0.company) }.joined(separator: ", ")
    }

    /// "Apple, Inc."; "company 0x1234" where there is no name.
    static func company(_ identifier: UInt16) -> String {
        AssignedNumbers.companyName(identifier) ?? "company 0x" + paddedHexadecimal(identifier)
    }

    /// "Battery"; the UUID where there is no name.
    static func service(_ uuid: CBUUID) -> String { AssignedNumbers.serviceName(uuid) ?? uuid.uuidString }

    /// "now", "4 s", "3 min", "2 h".
    static func age(_ seconds: Double) -> String {
        switch seconds {
        case ..<1.5: "now"
        case ..<99.5: "\(Int(seconds.rounded())) s"
        case ..<5970: "\(Int((seconds / 60).rounded())) min"
        default: "\(Int((seconds / 3600).rounded())) h"
        }
    }

    private static func shortened(_ uuid: String) -> String { uuid.utf8.count <= 8 ? uuid : uuid.prefix(8) + "…" }

    private static func paddedHexadecimal(_ number: UInt16) -> String {
        let digits = String(number, radix: 16, uppercase: true)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }
}
