public import Foundation

/// The profile of characteristics that hold values of a type: everything is read off the type.
///
/// ```swift
/// let profile = RawArrayCharacteristicProfile<TISensorTag.AccelerometerService.Data>()
/// profile.stringValue(Data([0x40, 0, 0]))?["xRaw"]    // "64"
/// ```
public final class ConfiguredCharacteristicProfile<Value>: CharacteristicProfile, @unchecked Sendable
where Value: CharacteristicCodable & CharacteristicConfigurable & StringDeserializable {
    // Unchecked as its superclass is; it stores nothing of its own.

    public init() {
        super.init(
            uuid: Value.uuid, name: Value.name, permissions: Value.permissions, properties: Value.properties,
            initialValue: Value.initialValue)
    }

    public override var stringValues: [String] { Value.stringValues }

    public override func stringValue(_ data: Data) -> [String: String]? { Value.deserialize(data)?.stringValue }

    public override func data(fromString stringValue: [String: String]) -> Data? {
        Value(stringValue: stringValue)?.serialize()
    }
}

/// The profile of a characteristic that holds one number.
public typealias RawCharacteristicProfile<Value> = ConfiguredCharacteristicProfile<Value>
where Value: RawDeserializable & CharacteristicConfigurable & StringDeserializable

/// The profile of a characteristic that holds several numbers of one type.
public typealias RawArrayCharacteristicProfile<Value> = ConfiguredCharacteristicProfile<Value>
where Value: RawArrayDeserializable & CharacteristicConfigurable & StringDeserializable

/// The profile of a characteristic that holds two numbers.
public typealias RawPairCharacteristicProfile<Value> = ConfiguredCharacteristicProfile<Value>
where Value: RawPairDeserializable & CharacteristicConfigurable & StringDeserializable

/// The profile of a characteristic that holds two runs of numbers.
public typealias RawArrayPairCharacteristicProfile<Value> = ConfiguredCharacteristicProfile<Value>
where Value: RawArrayPairDeserializable & CharacteristicConfigurable & StringDeserializable

/// The profile of a characteristic that holds text in UTF-8. The type names the characteristic and has no values.
public typealias StringCharacteristicProfile<Configuration> =
    ConfiguredCharacteristicProfile<CharacteristicText<Configuration>>
where Configuration: CharacteristicConfigurable

/// The text that a characteristic holds, in UTF-8 (GATT's `utf8s`); what characteristic, the parameter says.
///
/// ```swift
/// let name: CharacteristicText<BluetoothSIG.GenericAccessService.DeviceName>? = characteristic.value()
/// ```
public struct CharacteristicText<Configuration: CharacteristicConfigurable>: CharacteristicCodable, Hashable {
    /// The text.
    public let text: String

    public init(_ text: String) { self.text = text }

    /// The text that the bytes spell, or `nil` when they are not UTF-8.
    public static func deserialize(_ data: Data) -> CharacteristicText? {
        String(validating: data, as: UTF8.self).map { CharacteristicText($0) }
    }

    public func serialize() -> Data { Data(text.utf8) }
}

extension CharacteristicText: CharacteristicConfigurable {
    public static var name: String { Configuration.name }
    public static var uuid: String { Configuration.uuid }
    public static var permissions: CBAttributePermissions { Configuration.permissions }
    public static var properties: CBCharacteristicProperties { Configuration.properties }
    public static var initialValue: Data? { Configuration.initialValue }
}

extension CharacteristicText: StringDeserializable {
    public static var stringValues: [String] { [] }
    public var stringValue: [String: String] { [Configuration.name: text] }

    public init?(stringValue: [String: String]) {
        guard let text = stringValue[Configuration.name] else { return nil }
        self.text = text
    }
}
