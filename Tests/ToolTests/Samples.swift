import Foundation

@testable import bluecap

/// Peripherals to print.
enum Samples {
    static let strap = sighting(
        1, name: "Pulse Strap 7F", rssi: -56, services: [("180D", "Heart Rate"), ("180F", "Battery Service")],
        makers: [(0x006B, "Polar Electro OY", [0x72, 0x08])])

    static let nameless = sighting(2, name: nil, rssi: nil, addressType: "random")

    static func sighting(
        _ number: UInt8, name: String?, rssi: Int?, addressType: String = "public",
        services: [(String, String?)] = [], makers: [(UInt16, String?, [UInt8])] = []
    ) -> Sighting {
        Sighting(
            identifier: UUID(uuid: (0, 0, 0, 0, 0, 0, 0x50, 0, 0x80, 0, 0, 0, 0, 0, 0, number)),
            address: "C0:5A:17:00:18:0\(String(number % 16, radix: 16, uppercase: true))",
            addressType: addressType, name: name, rssi: rssi,
            services: services.map { Sighting.Service(uuid: $0.0, name: $0.1) },
            makers: makers.map { Sighting.Maker(company: $0.0, name: $0.1, data: Data($0.2)) })
    }
}
