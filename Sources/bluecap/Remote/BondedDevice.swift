import BlueCapKit
import Foundation

/// A device that BlueZ shares keys with: all that is printed of it.
struct BondedDevice: Equatable, Sendable {
    var identifier: UUID
    var address: String
    /// `public` or `random`.
    var addressType: String
    var name: String?
    /// False if the keys end with the link.
    var isBonded = true
    var isTrusted: Bool
    var isConnected: Bool

    /// The name, or else the address; safe to print.
    var label: String { name.map(DisplayText.name) ?? address }

    /// The device on one line: "C0:5A:17:00:18:0D  random  Pulse Strap 7F  trusted, connected".
    var line: String {
        let marks = [isBonded ? nil : "not bonded", isTrusted ? "trusted" : nil, isConnected ? "connected" : nil]
        return
            [
                address, addressType, name.map(DisplayText.name) ?? "(no name)",
                marks.compactMap { $0 }.joined(separator: ", "),
            ]
            .filter { !$0.isEmpty }.joined(separator: "  ")
    }

    var json: JSON {
        [
            "identifier": JSON(identifier.uuidString), "address": JSON(address), "addressType": JSON(addressType),
            "name": JSON(name), "bonded": JSON(isBonded), "trusted": JSON(isTrusted), "connected": JSON(isConnected),
        ]
    }
}

extension BondedDevice {
    init(_ bond: Bond) {
        self.init(
            identifier: bond.identifier, address: bond.address.description, addressType: bond.addressType.rawValue,
            name: bond.name, isTrusted: bond.isTrusted, isConnected: bond.isConnected)
    }

    init(_ peripheral: Peripheral) {
        self.init(
            identifier: peripheral.identifier, address: peripheral.address,
            addressType: peripheral.addressType.rawValue, name: peripheral.knownName, isBonded: peripheral.isBonded,
            isTrusted: peripheral.isTrusted, isConnected: peripheral.state == .connected)
    }
}
