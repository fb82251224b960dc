public import Foundation
public import GATT

// Names from BlueCap's latest sources (February 2020), in addition to those of its documents.

extension PeripheralManager {
    /// The characteristics of all added services, in the order of the services.
    public var characteristics: [MutableCharacteristic] { services.flatMap(\.characteristics) }

    /// Returns the added services with this UUID; `nil` if there is none.
    public func service(withUUID uuid: CBUUID) -> [MutableService]? {
        let found = services.filter { $0.uuid == uuid }
        return found.isEmpty ? nil : found
    }

    /// Returns the characteristics of the added services with this UUID; `nil` if there is none.
    public func characteristics(withUUID uuid: CBUUID) -> [MutableCharacteristic]? {
        let found = characteristics.filter { $0.uuid == uuid }
        return found.isEmpty ? nil : found
    }
}

extension MutableCharacteristic {
    /// Returns the bytes of a value that was entered as text, converted by the characteristic's profile.
    ///
    /// - Returns: The bytes; `nil` if the texts are not a valid value of the profile.
    public func data(fromString stringValue: [String: String]) -> Data? { profile.data(fromString: stringValue) }
}
