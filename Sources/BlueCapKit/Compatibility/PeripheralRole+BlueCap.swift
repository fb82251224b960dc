public import Foundation
public import GATT

// BlueCap's names, as at its head, beside those of the documents.

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
    /// Returns the bytes of a value that people have typed, by the characteristic's profile.
    ///
    /// - Returns: The bytes; `nil` if the texts are no value of the profile.
    public func data(fromString stringValue: [String: String]) -> Data? { profile.data(fromString: stringValue) }
}
