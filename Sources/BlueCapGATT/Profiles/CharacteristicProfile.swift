public import Foundation

/// A kind of characteristic: its UUID, its name, its operations, and the string form of its values.
///
/// The string form of a plain profile is hexadecimal, under the characteristic's name. Profiles that know the type of
/// the value are ``RawCharacteristicProfile`` and its siblings; all of them are ``ConfiguredCharacteristicProfile``.
///
/// ```swift
/// let profile = CharacteristicProfile(uuid: "2A99", name: "Change Increment")
/// profile.stringValue(Data([1, 0xAB]))                            // ["Change Increment": "01ab"]
/// profile.data(fromString: ["Change Increment": "01AB"])          // 01 AB
/// ```
public class CharacteristicProfile: @unchecked Sendable {
    // Unchecked because the class has subclasses: all of them are in this module and have no variables.

    /// The UUID of such characteristics.
    public let uuid: CBUUID
    /// The name for display, and the key of the string form.
    public let name: String
    /// The access that a published characteristic allows a central.
    public let permissions: CBAttributePermissions
    /// The operations that the characteristic supports.
    public let properties: CBCharacteristicProperties
    /// The value that a published characteristic has at first.
    public let initialValue: Data?

    /// Creates a profile of its properties. The UUID is a text that `CBUUID(string:)` accepts.
    public init(
        uuid: String, name: String, permissions: CBAttributePermissions = [.readable, .writeable],
        properties: CBCharacteristicProperties = [.read, .write, .notify], initialValue: Data? = nil
    ) {
        self.uuid = CBUUID(string: uuid)
        self.name = name
        self.permissions = permissions
        self.properties = properties
        self.initialValue = initialValue
    }

    /// Creates a profile that has only a UUID; its name is `"Unknown"`.
    public convenience init(uuid: String) { self.init(uuid: uuid, name: "Unknown") }

    /// Whether the property is among ``properties``; of several, whether any is.
    public func propertyEnabled(_ property: CBCharacteristicProperties) -> Bool {
        !properties.isDisjoint(with: property)
    }

    /// Whether the permission is among ``permissions``; of several, whether any is.
    public func permissionEnabled(_ permission: CBAttributePermissions) -> Bool {
        !permissions.isDisjoint(with: permission)
    }

    /// All texts that a value can have, for a menu; empty if there are too many.
    public var stringValues: [String] { [] }

    /// Returns the string form of a value, or `nil` if the data is no value of this kind.
    public func stringValue(_ data: Data) -> [String: String]? { [name: data.hexadecimal] }

    /// Returns the bytes of a value in its string form, or `nil` if a part is missing or invalid.
    public func data(fromString stringValue: [String: String]) -> Data? {
        stringValue[name].flatMap { Data(hexadecimal: $0) }
    }
}

/// The profile of characteristics that hold values of a type, which describes the characteristic.
///
/// ```swift
/// let profile = RawArrayCharacteristicProfile<TISensorTag.AccelerometerService.Data>()
/// profile.stringValue(Data([0x40, 0, 0]))?["xRaw"]    // "64"
/// ```
public final class ConfiguredCharacteristicProfile<Value>: CharacteristicProfile, @unchecked Sendable
where Value: CharacteristicCodable & CharacteristicConfigurable & StringDeserializable {
    // Unchecked as its superclass is; it has no stored properties of its own.

    /// Creates the profile with the UUID, name, properties, permissions and initial value that `Value` declares.
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

/// The profile of a characteristic that holds two sequences of numbers.
public typealias RawArrayPairCharacteristicProfile<Value> = ConfiguredCharacteristicProfile<Value>
where Value: RawArrayPairDeserializable & CharacteristicConfigurable & StringDeserializable

/// The profile of a characteristic that holds text in UTF-8. The type describes the characteristic and has no values.
public typealias StringCharacteristicProfile<Configuration> =
    ConfiguredCharacteristicProfile<CharacteristicText<Configuration>>
where Configuration: CharacteristicConfigurable

/// The text of a characteristic, in UTF-8 (GATT's `utf8s`). The generic parameter describes the characteristic.
///
/// ```swift
/// let name: CharacteristicText<BluetoothSIG.GenericAccessService.DeviceName>? = characteristic.value()
/// ```
public struct CharacteristicText<Configuration: CharacteristicConfigurable>: CharacteristicCodable, Hashable {
    /// The text.
    public let text: String

    /// Creates a value of this text.
    public init(_ text: String) { self.text = text }

    /// Returns the text of the bytes, without zeros at its end, or `nil` if they are not UTF-8.
    public static func deserialize(_ data: Data) -> CharacteristicText? {
        String(paddedText: data).map { CharacteristicText($0) }
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
