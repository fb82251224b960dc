import BlueCapBlueZ
import Foundation
import BlueCapFutures
public import BlueCapGATT

/// A service that this program offers to centrals, once it was added to a ``PeripheralManager``.
///
/// ```swift
/// let service = MutableService(uuid: TISensorTag.AccelerometerService.uuid)
/// service.characteristics = [
///     MutableCharacteristic(profile: RawArrayCharacteristicProfile<TISensorTag.AccelerometerService.Data>())
/// ]
/// try await manager.add(service)
/// ```
///
/// A service belongs to one manager at a time. Centrals find the characteristics that it had when it was added:
/// characteristics that are set after that are offered when the service is removed and added again.
public final class MutableService: Sendable {
    private struct Core {
        var characteristics: [MutableCharacteristic] = []
        /// The manager that it belongs to, from `add` on.
        var owner: PeripheralManagerSession?
    }

    /// The UUID of its type.
    public let uuid: CBUUID
    /// The profile of the service. If the service was created from a UUID, its profile has only that.
    public let profile: ServiceProfile
    /// Whether the service describes a function of the peripheral; a secondary service is included by others.
    public let isPrimary: Bool
    let id = ServerAttributeID.next()
    private let core = Locked(Core())

    /// Creates a service without characteristics; ``characteristicsFromProfiles()`` adds those of the profile.
    public init(profile: ServiceProfile, isPrimary: Bool = true) {
        self.profile = profile
        uuid = profile.uuid
        self.isPrimary = isPrimary
    }

    /// - Parameters:
    ///   - uuid: 4, 8 or 36 characters, as `CBUUID(string:)` takes them; anything else traps.
    ///   - isPrimary: Whether the service describes a function of the peripheral.
    public convenience init(uuid: String, isPrimary: Bool = true) {
        self.init(profile: ServiceProfile(uuid: uuid, name: "Unknown"), isPrimary: isPrimary)
    }

    /// Creates a service without a profile.
    ///
    /// - Parameters:
    ///   - uuid: The UUID.
    ///   - isPrimary: Whether the service describes a function of the peripheral.
    public convenience init(uuid: CBUUID, isPrimary: Bool = true) {
        self.init(uuid: uuid.uuidString, isPrimary: isPrimary)
    }

    /// The name of its profile, or "Unknown".
    public var name: String { profile.name }

    /// The characteristics, in the order in which centrals find them. A characteristic belongs to one service.
    public var characteristics: [MutableCharacteristic] {
        get { core.withLock { $0.characteristics } }
        set {
            for characteristic in core.replace(\.characteristics, with: newValue) { characteristic.left(self) }
            for characteristic in newValue { characteristic.joined(self) }
        }
    }

    /// Replaces the characteristics with those of the profile, in the profile's order.
    public func characteristicsFromProfiles() {
        characteristics = MutableCharacteristic.withProfiles(profile.characteristics)
    }

    /// Returns the first characteristic with this UUID.
    public func characteristic(_ uuid: CBUUID) -> MutableCharacteristic? { characteristics.first { $0.uuid == uuid } }

    /// Whether the service was added: from the success of `add` until it is removed. This includes the time while the
    /// adapter is off or `bluetoothd` is not running, because the service is offered again when they return.
    public var isAdded: Bool { core.withLock { $0.owner }?.isAdded(self) ?? false }

    // MARK: Limits; any thread

    /// The reason why BlueZ cannot offer the service as it is now; `nil` if there is none.
    ///
    /// Each service passes this check, wherever it is from: the application, a file, Core Bluetooth or a kept state.
    var problem: PeripheralManagerError? {
        let characteristics = characteristics
        guard Set(characteristics).count == characteristics.count else {
            return .invalidService("A characteristic is in the service \(uuid) twice: make one for each place.")
        }
        guard characteristics.allSatisfy({ $0.service === self }) else { return .serviceInUse }
        var descriptors: Set<ServerAttributeID> = []
        for characteristic in characteristics {
            if let problem = Self.problem(of: "characteristic \(characteristic.uuid)", characteristic.value) {
                return problem
            }
            for descriptor in characteristic.descriptors {
                let name = "descriptor \(descriptor.uuid) of the characteristic \(characteristic.uuid)"
                guard !Self.bluezDescriptors.contains(descriptor.uuid) else {
                    return .invalidService("The \(name) cannot be added: BlueZ adds it where the properties need it.")
                }
                guard descriptors.insert(descriptor.id).inserted else {
                    return .invalidService("The \(name) is in the service \(uuid) twice: make one for each place.")
                }
                if let problem = Self.problem(of: name, descriptor.value) { return problem }
            }
        }
        return nil
    }

    /// The descriptors of subscriptions and of extended properties.
    private static let bluezDescriptors: Set<CBUUID> = [CBUUID(string: "2900"), CBUUID(string: "2902")]

    private static func problem(of attribute: String, _ value: Data?) -> PeripheralManagerError? {
        guard let count = value?.count, count > AttributeProtocol.longestValue else { return nil }
        return .invalidService(
            "The value of the \(attribute) has \(count) bytes, and an attribute at most \(AttributeProtocol.longestValue)."
        )
    }

    // MARK: Ownership; under the session's lock

    /// Claims the service for a manager. Returns why that is not possible.
    /// - Parameter problem: Why BlueZ cannot offer it.
    func claim(
        _ session: PeripheralManagerSession, unless problem: PeripheralManagerError?
    ) -> PeripheralManagerError? {
        core.withLock { core in
            guard core.owner == nil || core.owner === session else { return .serviceInUse }
            if problem == nil { core.owner = session }
            return problem
        }
    }

    func release() { core.withLock { $0.owner = nil } }
}

extension MutableService: Hashable, CustomStringConvertible {
    public static func == (left: MutableService, right: MutableService) -> Bool { left === right }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    public var description: String { "MutableService(\(name), \(uuid))" }
}
