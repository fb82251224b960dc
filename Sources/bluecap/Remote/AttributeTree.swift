import BlueCapKit
import Foundation

/// What a peripheral offers, as a value: all that is printed of it.
///
/// Handles up to 0xFFFF are those of the peripheral's table; those above belong to what BlueZ tells in other ways.
struct AttributeTree: Equatable, Sendable {
    struct Service: Equatable, Sendable {
        var handle: UInt32
        var uuid: CBUUID
        var name: String?
        var isPrimary = true
        /// The handles of the services that it includes.
        var includes: [UInt32] = []
        var characteristics: [Characteristic] = []
    }

    struct Characteristic: Equatable, Sendable {
        var handle: UInt32
        var uuid: CBUUID
        var name: String?
        var properties: CBCharacteristicProperties
        var reading = Reading.none
        var descriptors: [Descriptor] = []
    }

    struct Descriptor: Equatable, Sendable {
        var handle: UInt32
        var uuid: CBUUID
        var name: String?
        var reading = Reading.none
    }

    /// What became of the wish to know a value.
    enum Reading: Equatable, Sendable {
        /// It was not read: it cannot be, or nobody wanted it.
        case none
        case value(AttributeValue)
        /// Why it could not be read.
        case failed(String)
    }

    var identifier: UUID
    var address: String
    /// `public` or `random`.
    var addressType: String
    /// `nil` where nobody has told a name.
    var name: String?
    /// dBm, of the newest sighting; `nil` where it is not known.
    var rssi: Int?
    /// Bytes; `nil` where BlueZ does not tell it.
    var mtu: Int?
    /// In the order of their handles.
    var services: [Service]
}

/// The bytes of an attribute with the parts that its profile sees in them.
struct AttributeValue: Equatable, Sendable {
    struct Field: Equatable, Sendable {
        var name: String
        var text: String
    }

    var data: Data
    /// By name; empty where no profile understands the bytes.
    var fields: [Field] = []
    /// Of a profile with one part, which is called as the characteristic is.
    var isWhole = false

    init(_ data: Data) { self.data = data }

    /// - Parameter profile: what is known of such values. A profile that knows nothing but the name tells nothing.
    init(_ data: Data, profile: CharacteristicProfile?) {
        self.data = data
        guard let profile, profile.understandsValues, let texts = profile.stringValue(data) else { return }
        fields = texts.sorted { $0.key < $1.key }.map { Field(name: $0.key, text: $0.value) }
        isWhole = texts.count == 1 && texts[profile.name] != nil
    }
}

extension CharacteristicProfile {
    /// Whether it makes more of a value than its digits.
    var understandsValues: Bool { type(of: self) != CharacteristicProfile.self }
}
