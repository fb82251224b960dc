import BlueCapKit
import Foundation

@testable import bluecap

/// Peripherals to print.
enum Samples {
    static let strap = sighting(
        1, name: "Pulse Strap 7F", rssi: -56, services: ["180D", "180F"],
        manufacturerData: [0x006B: Data([0x72, 0x08])])

    static let nameless = sighting(2, name: nil, rssi: nil, addressType: "random")

    static func sighting(
        _ number: UInt8, name: String?, rssi: Int?, addressType: String = "public",
        services: [String] = [], manufacturerData: [UInt16: Data] = [:]
    ) -> Sighting {
        Sighting(
            identifier: UUID(uuid: (0, 0, 0, 0, 0, 0, 0x50, 0, 0x80, 0, 0, 0, 0, 0, 0, number)),
            address: "C0:5A:17:00:18:0\(String(number % 16, radix: 16, uppercase: true))",
            addressType: addressType, name: name, rssi: rssi,
            services: services.map { CBUUID(string: $0) }, manufacturerData: manufacturerData)
    }
}
