@_exported public import BlueCapGATT
public import Foundation

/// The declaration of a characteristic: one row in the table of its service.
public struct CharacteristicDeclaration: Sendable {
    let uuid: String
    let name: String
    let properties: CBCharacteristicProperties
    let permissions: CBAttributePermissions
    let initialValue: Data?
    let texts: [String]
    let unit: String
    let stepsPerUnit: Double

    /// - Parameters:
    ///   - uuid: 4, 8 or 36 characters, as `CBUUID(string:)` accepts them.
    ///   - name: The name for display.
    ///   - properties: The operations that the characteristic supports.
    ///   - permissions: The access that a published characteristic allows a central.
    ///   - initialValue: The value that a published characteristic has at first.
    ///   - texts: The texts of all values, in the order of the cases or bits; empty if the values have no names.
    ///   - unit: The unit of a quantity, such as `"°C"`; empty if it has none.
    ///   - stepsPerUnit: How many steps of the transmitted number make one unit.
    public init(
        _ uuid: String, _ name: String, _ properties: CBCharacteristicProperties,
        permissions: CBAttributePermissions = [.readable, .writeable], initialValue: Data? = nil, texts: [String] = [],
        unit: String = "", stepsPerUnit: Double = 1
    ) {
        (self.uuid, self.name, self.unit) = (uuid, name, unit)
        (self.properties, self.permissions) = (properties, permissions)
        (self.initialValue, self.texts, self.stepsPerUnit) = (initialValue, texts, stepsPerUnit)
    }
}

/// A type that declares its characteristic.
///
/// ```swift
/// enum Lamp: UInt8, CaseIterable, RawDeserializable, StringDeserializable, DeclaredCharacteristic {
///     case off = 0
///     case on = 1
///     static let declaration = CharacteristicDeclaration("FFF1", "Lamp", [.read, .write], texts: ["Off", "On"])
/// }
/// ```
public protocol DeclaredCharacteristic: CharacteristicConfigurable {
    /// The characteristic that holds such values.
    static var declaration: CharacteristicDeclaration { get }
}

extension DeclaredCharacteristic {
    public static var uuid: String { declaration.uuid }
    public static var name: String { declaration.name }
    public static var properties: CBCharacteristicProperties { declaration.properties }
    public static var permissions: CBAttributePermissions { declaration.permissions }
    public static var initialValue: Data? { declaration.initialValue }
    /// The texts of all values, from the declaration.
    public static var stringValues: [String] { declaration.texts }

    /// The profile of the characteristic, which holds text in UTF-8.
    public static var profile: CharacteristicProfile { StringCharacteristicProfile<Self>() }
}

extension DeclaredCharacteristic where Self: CharacteristicCodable & StringDeserializable {
    /// The profile of the characteristic, which holds values of this type.
    public static var profile: CharacteristicProfile { ConfiguredCharacteristicProfile<Self>() }
}

/// A measured quantity that declares its characteristic, its unit and its steps.
public protocol DeclaredQuantity: DeclaredCharacteristic, ScaledCharacteristic {}

extension DeclaredQuantity {
    public static var unit: String { declaration.unit }
    public static var stepsPerUnit: Double { declaration.stepsPerUnit }
    public static var stringValues: [String] { [] }
}

/// The declaration of a service: its name and the table of its characteristics.
public struct ServiceDeclaration: Sendable {
    let uuid: String
    let name: String
    let tag: String
    let characteristics: [CharacteristicProfile]

    /// Creates a declaration of a UUID that `CBUUID(string:)` accepts, a name for display, a word by which service profiles are
    /// grouped, and the profiles of the characteristics.
    public init(_ uuid: String, _ name: String, tag: String, _ characteristics: [CharacteristicProfile]) {
        (self.uuid, self.name, self.tag, self.characteristics) = (uuid, name, tag, characteristics)
    }
}

/// A type that declares a service and its characteristics.
public protocol DeclaredService: ServiceConfigurable {
    /// The service with its characteristics.
    static var declaration: ServiceDeclaration { get }
}

extension DeclaredService {
    public static var uuid: String { declaration.uuid }
    public static var name: String { declaration.name }
    public static var tag: String { declaration.tag }

    /// A new profile of the service with all its characteristics, for a `ProfileManager`.
    public static var profile: ServiceProfile {
        let profile = ConfiguredServiceProfile<Self>()
        for characteristic in declaration.characteristics { profile.addCharacteristic(characteristic) }
        return profile
    }
}

extension ProfileManager {
    /// A new manager that has every profile of this module: ``BluetoothSIG``, ``TISensorTag``, ``Nordic``, ``Gnosus``.
    public static var ready: ProfileManager {
        let manager = ProfileManager()
        manager.add(BluetoothSIG.serviceProfiles + TISensorTag.serviceProfiles)
        manager.add(Nordic.serviceProfiles + Gnosus.serviceProfiles)
        return manager
    }

    /// Adds several profiles.
    func add(_ profiles: [ServiceProfile]) {
        for profile in profiles { addService(profile) }
    }
}
