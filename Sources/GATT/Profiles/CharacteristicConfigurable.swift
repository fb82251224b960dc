public import Foundation

/// What is known of a kind of characteristic before any device is met.
///
/// Only the name and the UUID must be given; the rest has the values that a `CharacteristicProfile` has by itself.
public protocol CharacteristicConfigurable {
    /// The name that people read.
    static var name: String { get }
    /// The UUID, as `CBUUID(string:)` takes it.
    static var uuid: String { get }
    /// Who may read and write it on a peripheral of ours: anyone, unless given.
    static var permissions: CBAttributePermissions { get }
    /// What it can be used for: read, write and notify, unless given.
    static var properties: CBCharacteristicProperties { get }
    /// The value that it begins with on a peripheral of ours: none, unless given.
    static var initialValue: Data? { get }
}

extension CharacteristicConfigurable {
    public static var permissions: CBAttributePermissions { CharacteristicProfile.defaultPermissions }
    public static var properties: CBCharacteristicProperties { CharacteristicProfile.defaultProperties }
    public static var initialValue: Data? { nil }
}

/// What is known of a kind of service before any device is met.
public protocol ServiceConfigurable {
    /// The name that people read.
    static var name: String { get }
    /// The UUID, as `CBUUID(string:)` takes it.
    static var uuid: String { get }
    /// A word by which service profiles are grouped, such as `"TI Sensor Tag"`.
    static var tag: String { get }
}

extension ServiceConfigurable {
    public static var tag: String { ServiceProfile.defaultTag }
}
