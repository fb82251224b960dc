private import Foundation

/// What is known of a kind of service before any device is met: its UUID, its name and its characteristics.
///
/// Safe to use from any thread.
public class ServiceProfile: @unchecked Sendable {
    // Unchecked because the array is touched under `lock` alone, and the subclass in this module stores nothing.
    private let lock = NSLock()
    private var profiles: [CharacteristicProfile] = []

    /// The UUID of such services.
    public let uuid: CBUUID
    /// The name that people read.
    public let name: String
    /// A word of the application's own, by which it groups its profiles.
    public let tag: String

    static let defaultTag = "Miscellaneous"

    /// - Parameters:
    ///   - uuid: 4, 8 or 36 characters, as `CBUUID(string:)` takes them; anything else traps.
    ///   - name: The name that people read.
    ///   - tag: A word by which the application groups its profiles.
    public init(uuid: String, name: String, tag: String = "Miscellaneous") {
        self.uuid = CBUUID(string: uuid)
        self.name = name
        self.tag = tag
    }

    /// The profiles of the service's characteristics, in the order in which they were added.
    public var characteristics: [CharacteristicProfile] { lock.withLock { profiles } }

    /// Adds what is known of a characteristic. One with the same UUID gives its place to the new one.
    public func addCharacteristic(_ profile: CharacteristicProfile) {
        lock.withLock {
            if let index = profiles.firstIndex(where: { $0.uuid == profile.uuid }) {
                profiles[index] = profile
            } else {
                profiles.append(profile)
            }
        }
    }

    /// What is known of the characteristic with this UUID, or `nil` when nothing is.
    public func characteristic(_ uuid: CBUUID) -> CharacteristicProfile? {
        lock.withLock { profiles.first { $0.uuid == uuid } }
    }
}

/// The profile of services of a type, with the UUID, name and tag of the type; the characteristics are added to it.
///
/// ```swift
/// let profile = ConfiguredServiceProfile<TISensorTag.AccelerometerService>()
/// profile.addCharacteristic(RawArrayCharacteristicProfile<TISensorTag.AccelerometerService.Data>())
/// ```
public final class ConfiguredServiceProfile<Configuration: ServiceConfigurable>: ServiceProfile, @unchecked Sendable {
    // Unchecked as its superclass is; it stores nothing of its own.

    public init() { super.init(uuid: Configuration.uuid, name: Configuration.name, tag: Configuration.tag) }

    /// The profile with these characteristics.
    convenience init(_ characteristics: CharacteristicProfile...) {
        self.init()
        for profile in characteristics { addCharacteristic(profile) }
    }
}
