private import Foundation

/// The service profiles that an application knows; a `CentralManager` made with it names what it discovers by them.
///
/// ```swift
/// let profiles = ProfileManager()
/// profiles.addService(ConfiguredServiceProfile<MyService>())
/// let manager = CentralManager(profileManager: profiles)
/// ```
///
/// Safe to use from any thread. A second profile with the same UUID takes the place of the first.
public final class ProfileManager: @unchecked Sendable {
    // Unchecked because the dictionary is touched under `lock` alone.
    private let lock = NSLock()
    private var profiles: [CBUUID: ServiceProfile] = [:]

    /// A manager that knows no profile yet.
    public init() {}

    /// A new manager that knows every profile that this library brings: ``BluetoothSIG``, ``TISensorTag``, ``Nordic``,
    /// ``Gnosus``.
    public static var ready: ProfileManager {
        let manager = ProfileManager()
        let profiles =
            BluetoothSIG.serviceProfiles + TISensorTag.serviceProfiles + Nordic.serviceProfiles + Gnosus.serviceProfiles
        for profile in profiles { manager.addService(profile) }
        return manager
    }

    /// The profiles by the UUIDs of their services.
    public var services: [CBUUID: ServiceProfile] { lock.withLock { profiles } }

    /// Adds what is known of a service.
    public func addService(_ profile: ServiceProfile) {
        lock.withLock { profiles[profile.uuid] = profile }
    }

    /// What is known of the service with this UUID, or `nil` when nothing is.
    public func service(_ uuid: CBUUID) -> ServiceProfile? { lock.withLock { profiles[uuid] } }

    /// The profiles that have this tag, by their names from A to Z.
    public func service(tag: String) -> [ServiceProfile] {
        services.values.filter { $0.tag == tag }
            .sorted { $0.name != $1.name ? $0.name < $1.name : CBUUID.precedes($0.uuid, $1.uuid) }
    }
}
