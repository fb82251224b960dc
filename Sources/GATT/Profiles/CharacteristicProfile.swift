public import Foundation

/// What is known of a kind of characteristic: its UUID and name, what it can be used for, and how people read its value.
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
    // Unchecked because the class has subclasses, all of them in this module; nobody stores anything that changes.

    /// The UUID of such characteristics.
    public let uuid: CBUUID
    /// The name that people read.
    public let name: String
    /// Who may read and write it on a peripheral of ours.
    public let permissions: CBAttributePermissions
    /// What it can be used for.
    public let properties: CBCharacteristicProperties
    /// The value that it begins with on a peripheral of ours.
    public let initialValue: Data?

    static let defaultPermissions: CBAttributePermissions = [.readable, .writeable]
    static let defaultProperties: CBCharacteristicProperties = [.read, .write, .notify]

    /// - Parameters:
    ///   - uuid: 4, 8 or 36 characters, as `CBUUID(string:)` takes them; anything else traps.
    ///   - name: The name that people read, and the key of the string form.
    ///   - permissions: Who may read and write it on a peripheral of ours.
    ///   - properties: What it can be used for.
    ///   - initialValue: The value that it begins with on a peripheral of ours.
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

    /// A profile of which only the UUID is known; its name is `"Unknown"`.
    public convenience init(uuid: String) { self.init(uuid: uuid, name: "Unknown") }

    /// Whether the property is among ``properties``; of several, whether any is.
    public func propertyEnabled(_ property: CBCharacteristicProperties) -> Bool {
        !properties.isDisjoint(with: property)
    }

    /// Whether the permission is among ``permissions``; of several, whether any is.
    public func permissionEnabled(_ permission: CBAttributePermissions) -> Bool {
        !permissions.isDisjoint(with: permission)
    }

    /// All texts that a value can have, for a menu; empty when there are too many to choose from.
    public var stringValues: [String] { [] }

    /// The value as people read it, or `nil` when the data is no value of this kind.
    public func stringValue(_ data: Data) -> [String: String]? { [name: data.hexadecimal] }

    /// The bytes of the value that the texts spell, or `nil` when a part is missing or is not understood.
    public func data(fromString stringValue: [String: String]) -> Data? {
        stringValue[name].flatMap { Data(hexadecimal: $0) }
    }
}
