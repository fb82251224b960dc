private import Foundation

/// A kind of service: its UUID, its name and its characteristics.
///
/// Safe to use from any thread.
public class ServiceProfile: @unchecked Sendable {
    // Unchecked because the array is accessed only under `lock`, and the subclass in this module has no variables.
    private let lock = NSLock()
    private var profiles: [CharacteristicProfile] = []

    /// The UUID of such services.
    public let uuid: CBUUID
    /// The name for display.
    public let name: String
    /// A word by which the application groups its profiles.
    public let tag: String

    /// Creates a profile without characteristics. The UUID is a text that `CBUUID(string:)` accepts.
    public init(uuid: String, name: String, tag: String = "Miscellaneous") {
        self.uuid = CBUUID(string: uuid)
        self.name = name
        self.tag = tag
    }

    /// The profiles of the service's characteristics, in the order in which they were added.
    public var characteristics: [CharacteristicProfile] { lock.withLock { profiles } }

    /// Adds a characteristic, which replaces one with the same UUID.
    public func addCharacteristic(_ profile: CharacteristicProfile) {
        lock.withLock {
            if let index = profiles.firstIndex(where: { $0.uuid == profile.uuid }) {
                profiles[index] = profile
            } else {
                profiles.append(profile)
            }
        }
    }

    /// Returns the profile of the characteristic with this UUID, or `nil` if there is none.
    public func characteristic(_ uuid: CBUUID) -> CharacteristicProfile? {
        lock.withLock { profiles.first { $0.uuid == uuid } }
    }
}

/// The profile of a service that a type describes, with the UUID, name and tag of the type and no characteristics at first.
///
/// ```swift
/// let profile = ConfiguredServiceProfile<TISensorTag.AccelerometerService>()
/// profile.addCharacteristic(RawArrayCharacteristicProfile<TISensorTag.AccelerometerService.Data>())
/// ```
public final class ConfiguredServiceProfile<Configuration: ServiceConfigurable>: ServiceProfile, @unchecked Sendable {
    // Unchecked as its superclass is; it has no stored properties of its own.

    /// Creates the profile with the UUID, name and tag that `Configuration` declares, and without characteristics.
    public init() { super.init(uuid: Configuration.uuid, name: Configuration.name, tag: Configuration.tag) }
}

/// The service profiles of an application. A `CentralManager` with a profile manager names services and characteristics
/// by them.
///
/// ```swift
/// let profiles = ProfileManager()
/// profiles.addService(ConfiguredServiceProfile<MyService>())
/// let manager = CentralManager(profileManager: profiles)
/// ```
///
/// Safe to use from any thread. The module `Profiles` has ready-made profiles.
public final class ProfileManager: @unchecked Sendable {
    // Unchecked because the dictionary is accessed only under `lock`.
    private let lock = NSLock()
    private var profiles: [CBUUID: ServiceProfile] = [:]

    /// Creates a manager without profiles.
    public init() {}

    /// The profiles by the UUIDs of their services.
    public var services: [CBUUID: ServiceProfile] { lock.withLock { profiles } }

    /// Adds the profile of a service, which replaces one with the same UUID.
    public func addService(_ profile: ServiceProfile) {
        lock.withLock { profiles[profile.uuid] = profile }
    }

    /// Returns the profile of the service with this UUID, or `nil` if there is none.
    public func service(_ uuid: CBUUID) -> ServiceProfile? { lock.withLock { profiles[uuid] } }

    /// Returns the profiles with this tag, by name from A to Z.
    public func service(tag: String) -> [ServiceProfile] {
        services.values.filter { $0.tag == tag }
            .sorted { $0.name != $1.name ? $0.name < $1.name : CBUUID.precedes($0.uuid, $1.uuid) }
    }
}
