import BlueZ
import Foundation
import Futures
public import GATT

/// A service that this program offers to centrals, once it was added to a ``PeripheralManager``.
///
/// ```swift
/// import Profiles
///
/// let service = MutableService(uuid: TISensorTag.AccelerometerService.uuid)
/// service.characteristics = [
///     MutableCharacteristic(profile: RawArrayCharacteristicProfile<TISensorTag.AccelerometerService.Data>())
/// ]
/// manager.add(service)
/// ```
///
/// It belongs to one manager at a time. What centrals see is what it was when it was added: characteristics that are set
/// after that are offered when it is removed and added again.
public final class MutableService: Sendable {
    private struct Core {
        var characteristics: [MutableCharacteristic] = []
        /// The manager that it belongs to, from `add` on.
        var owner: PeripheralManagerSession?
        /// Whether BlueZ has registered it.
        var isAdded = false
    }

    /// What kind of service it is.
    public let uuid: CBUUID
    /// What is known of services of this kind; of one that was made from a UUID, that alone.
    public let profile: ServiceProfile
    /// Whether it describes what the peripheral does; a secondary service is a part of others.
    public let isPrimary: Bool
    let id = ServerAttributeID.next()
    private let core = Locked(Core())

    /// A service without characteristics; ``characteristicsFromProfiles()`` makes those of the profile.
    public init(profile: ServiceProfile, isPrimary: Bool = true) {
        self.profile = profile
        uuid = profile.uuid
        self.isPrimary = isPrimary
    }

    /// - Parameters:
    ///   - uuid: 4, 8 or 36 characters, as `CBUUID(string:)` takes them; anything else traps.
    ///   - isPrimary: Whether it describes what the peripheral does.
    public convenience init(uuid: String, isPrimary: Bool = true) {
        self.init(profile: ServiceProfile(uuid: uuid, name: "Unknown"), isPrimary: isPrimary)
    }

    public convenience init(uuid: CBUUID, isPrimary: Bool = true) {
        self.init(uuid: uuid.fullUUIDString, isPrimary: isPrimary)
    }

    /// The name of its profile, or "Unknown".
    public var name: String { profile.name }

    /// Its characteristics, in the order in which centrals find them.
    ///
    /// A characteristic belongs to one service.
    public var characteristics: [MutableCharacteristic] {
        get { core.withLock { $0.characteristics } }
        set {
            for characteristic in core.replace(\.characteristics, with: newValue) { characteristic.left(self) }
            for characteristic in newValue { characteristic.joined(self) }
        }
    }

    /// Replaces its characteristics with those that its profile knows, in the profile's order.
    public func characteristicsFromProfiles() {
        characteristics = MutableCharacteristic.withProfiles(profile.characteristics)
    }

    /// The first characteristic with this UUID.
    public func characteristic(_ uuid: CBUUID) -> MutableCharacteristic? { characteristics.first { $0.uuid == uuid } }

    /// Whether centrals can find it: from the success of `add` until it is removed. It stays so while the adapter is off or
    /// `bluetoothd` away, since it comes back with them.
    public var isAdded: Bool { core.withLock { $0.isAdded } }

    // MARK: Belonging; any thread

    enum Claim { case granted, repeated, refused }

    func claim(_ session: PeripheralManagerSession) -> Claim {
        core.withLock { core in
            guard let owner = core.owner else {
                core.owner = session
                return .granted
            }
            return owner === session ? .repeated : .refused
        }
    }

    /// Ends the manager's claim. Returns the manager, which is not released under the lock.
    @discardableResult
    func release(_ session: PeripheralManagerSession) -> PeripheralManagerSession? {
        core.withLock { core in
            guard core.owner === session else { return nil }
            defer { core.owner = nil }
            core.isAdded = false
            return core.owner
        }
    }

    func becameRemoved() { core.withLock { $0.isAdded = false } }

    /// Restores the manager's claim if a removal and an `add` at the same time have left it without one.
    func becameAdded(_ session: PeripheralManagerSession) {
        core.withLock { core in
            if core.owner == nil { core.owner = session }
            core.isAdded = core.owner === session
        }
    }
}

extension MutableService: Hashable, CustomStringConvertible {
    public static func == (left: MutableService, right: MutableService) -> Bool { left === right }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    public var description: String { "MutableService(\(name), \(uuid))" }
}
