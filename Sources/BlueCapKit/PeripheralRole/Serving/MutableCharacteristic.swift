import BlueCapBlueZ
public import Foundation
import BlueCapFutures
public import BlueCapGATT

/// A characteristic that this program offers: a value that centrals can read, write and subscribe to.
///
/// ```swift
/// let characteristic = MutableCharacteristic(
///     uuid: CBUUID(string: "2A19"), properties: [.read, .notify], permissions: [.readable], value: Data([80]))
/// try characteristic.update(withData: Data([79]))
/// ```
///
/// It is safe to use from any thread. It has a value even while it belongs to no manager. Reads receive the value,
/// unless ``startRespondingToReadRequests(capacity:)`` was called.
public final class MutableCharacteristic: Sendable {
    typealias Request = (request: ATTRequest, central: Central)

    /// A subscribed central, in the forms of the public API and of BlueZ.
    struct Subscriber {
        let central: Central
        let source: ServerSubscriber
    }

    struct Core {
        var value: Data?
        var descriptors: [MutableDescriptor] = []
        var sendsUpdatesOverSocket = true
        var takesWritesOverSocket = false
        weak var service: MutableService?
        /// The manager that offers it, from the success of `add` on.
        var session: PeripheralManagerSession?
        /// The registration of its service with BlueZ.
        var application: ServerApplication?
        var updates = UpdateQueue()
        var whenSent: [Promise<Void>] = []
        var subscribers: [Subscriber] = []
        var subscriberPromise: StreamPromise<[Central]>?
        var requests = CentralRequests()
    }

    /// The profile of the characteristic. If the characteristic was created from a UUID, its profile has only that and
    /// the properties and permissions.
    public let profile: CharacteristicProfile
    /// What centrals can do with it.
    public let properties: CBCharacteristicProperties
    /// Whether centrals may read and write it, and which security that needs. A request that the properties allow
    /// and the permissions do not is refused.
    public let permissions: CBAttributePermissions
    let id = ServerAttributeID.next()
    /// What BlueZ allows centrals to do with it.
    let flags: GattFlags
    let core: Locked<Core>

    private init(
        _ profile: CharacteristicProfile, _ properties: CBCharacteristicProperties,
        _ permissions: CBAttributePermissions, _ value: Data?
    ) {
        self.profile = profile
        self.properties = properties
        self.permissions = permissions
        flags = GattFlags(properties, permissions)
        core = Locked(Core(value: value))
    }

    /// Creates a characteristic with the properties, the permissions and the initial value of a profile.
    public convenience init(profile: CharacteristicProfile) {
        self.init(profile, profile.properties, profile.permissions, profile.initialValue)
    }

    /// Creates a characteristic without a profile.
    ///
    /// - Parameters:
    ///   - uuid: The UUID of its type.
    ///   - properties: What centrals can do with it.
    ///   - permissions: Whether centrals may read and write it, and which security that needs.
    ///   - value: The initial value, at most 512 bytes; `nil` is read as no bytes.
    public convenience init(
        uuid: CBUUID, properties: CBCharacteristicProperties = [.read, .write, .notify],
        permissions: CBAttributePermissions = [.readable, .writeable], value: Data? = nil
    ) {
        self.init(uuid: uuid.uuidString, properties: properties, permissions: permissions, value: value)
    }

    /// Creates a characteristic without a profile, with a UUID that is given as text.
    ///
    /// - Parameters:
    ///   - uuid: 4, 8 or 36 characters, as `CBUUID(string:)` takes them; anything else traps.
    ///   - properties: What centrals can do with it.
    ///   - permissions: Whether centrals may read and write it, and which security that needs.
    ///   - value: The initial value, at most 512 bytes; `nil` is read as no bytes.
    public convenience init(
        uuid: String, properties: CBCharacteristicProperties = [.read, .write, .notify],
        permissions: CBAttributePermissions = [.readable, .writeable], value: Data? = nil
    ) {
        self.init(
            CharacteristicProfile(uuid: uuid, name: "Unknown", permissions: permissions, properties: properties),
            properties, permissions, value)
    }

    /// Returns a characteristic for each profile.
    public static func withProfiles(_ profiles: [CharacteristicProfile]) -> [MutableCharacteristic] {
        profiles.map { MutableCharacteristic(profile: $0) }
    }

    /// The UUID of its type, which several characteristics of a service may have.
    public var uuid: CBUUID { profile.uuid }
    /// The name of its profile, or "Unknown".
    public var name: String { profile.name }
    /// The service that the characteristic belongs to.
    public var service: MutableService? { core.withLock { $0.service } }

    /// Returns whether ``properties`` contain the property, or at least one of several.
    public func propertyEnabled(_ property: CBCharacteristicProperties) -> Bool {
        !properties.isDisjoint(with: property)
    }

    /// Returns whether ``permissions`` contain the permission, or at least one of several.
    public func permissionEnabled(_ permission: CBAttributePermissions) -> Bool {
        !permissions.isDisjoint(with: permission)
    }

    // MARK: Value

    /// The value that centrals read. Setting it sends nothing to subscribed centrals; `update` does.
    ///
    /// It has at most 512 bytes: with more, the service cannot be added, and centrals that read it receive
    /// `invalidAttributeValueLength`.
    public var value: Data? {
        get { core.withLock { $0.value } }
        set { core.replace(\.value, with: newValue) }
    }

    /// Returns the value, converted to a type; `nil` if there is no value, or if its bytes are not a value of that
    /// type.
    public func value<T: CharacteristicCodable>(as type: T.Type) -> T? { value.flatMap { T.deserialize($0) } }

    /// The value as readable text, converted by the profile; `nil` if there is no value, or if its bytes are not a
    /// valid value of the profile.
    public var stringValue: [String: String]? { value.flatMap { profile.stringValue($0) } }

    /// The texts of all values that the profile allows; empty if there are too many to choose from.
    public var stringValues: [String] { profile.stringValues }

    // MARK: Definition

    /// The descriptors, in the order in which centrals find them. A change takes effect the next time that the service
    /// is added.
    public var descriptors: [MutableDescriptor] {
        get { core.withLock { $0.descriptors } }
        set { core.replace(\.descriptors, with: newValue) }
    }

    /// Whether BlueZ is offered a socket for each central that subscribes; initially `true`.
    ///
    /// Updates for that central alone (``update(withData:for:)-(_,Central)``) are sent over the socket, and
    /// with sockets BlueZ names the centrals (``subscribers``). Updates for all are sent over the bus in either case. A
    /// change takes effect the next time that the service is added.
    public var sendsUpdatesOverSocket: Bool {
        get { core.withLock { $0.sendsUpdatesOverSocket } }
        set { core.withLock { $0.sendsUpdatesOverSocket = newValue } }
    }

    /// Whether writes without response are received over a socket; initially `false`. A socket is faster, but BlueZ
    /// names only the central that has written first. A change takes effect the next time that the service is added.
    public var takesWritesOverSocket: Bool {
        get { core.withLock { $0.takesWritesOverSocket } }
        set { core.withLock { $0.takesWritesOverSocket = newValue } }
    }

    // MARK: Ownership; any thread

    func joined(_ service: MutableService) { core.withLock { $0.service = service } }

    func left(_ service: MutableService) {
        core.withLock { if $0.service === service { $0.service = nil } }
    }

    var definition: ServerCharacteristic {
        core.withLock {
            ServerCharacteristic(
                id: id, uuid: uuid, flags: flags, descriptors: $0.descriptors.map(\.definition),
                givesNotifySocket: $0.sendsUpdatesOverSocket, givesWriteSocket: $0.takesWritesOverSocket)
        }
    }
}

extension MutableCharacteristic: Hashable, CustomStringConvertible {
    public static func == (left: MutableCharacteristic, right: MutableCharacteristic) -> Bool { left === right }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    public var description: String { "MutableCharacteristic(\(name), \(uuid))" }
}

extension ServerAttributeID {
    private static let last = Locked<UInt64>(0)

    /// Returns an identifier that no other attribute of this process has.
    static func next() -> ServerAttributeID {
        last.withLock { last in
            last += 1
            return ServerAttributeID(last)
        }
    }
}

extension Locked {
    /// Replaces a part of the state. The old one may be the application's memory, which is not released under the lock.
    @discardableResult
    package func replace<Part>(_ part: WritableKeyPath<State, Part>, with new: Part) -> Part {
        withLock { state in
            defer { state[keyPath: part] = new }
            return state[keyPath: part]
        }
    }
}

extension CBAttributePermissions {
    /// Whether centrals may read, or write, at all.
    func allows(reading isRead: Bool) -> Bool {
        contains(isRead ? .readable : .writeable) || security(reading: isRead) != nil
    }

    /// The security that reading, or writing, needs; `nil` if it needs none.
    package func security(reading isRead: Bool) -> RequiredSecurity? { terms(reading: isRead)?.security }

    fileprivate func terms(reading isRead: Bool) -> SecurityTerms? {
        SecurityTerms.all.first { contains(isRead ? $0.reading.permission : $0.writing.permission) }
    }
}

/// The permissions, the properties and BlueZ's flags of one security.
private struct SecurityTerms {
    let security: RequiredSecurity
    let reading, writing: (permission: CBAttributePermissions, flag: GattFlags)
    let notifying, indicating: (property: CBCharacteristicProperties, flag: GattFlags)

    /// The highest security first.
    static let all = [
        SecurityTerms(
            security: .secureConnections, reading: (.readSecureConnectionRequired, .secureRead),
            writing: (.writeSecureConnectionRequired, .secureWrite),
            notifying: (.notifySecureConnectionRequired, .secureNotify),
            indicating: (.indicateSecureConnectionRequired, .secureIndicate)),
        SecurityTerms(
            security: .authentication, reading: (.readAuthenticationRequired, .encryptAuthenticatedRead),
            writing: (.writeAuthenticationRequired, .encryptAuthenticatedWrite),
            notifying: (.notifyAuthenticationRequired, .encryptAuthenticatedNotify),
            indicating: (.indicateAuthenticationRequired, .encryptAuthenticatedIndicate)),
        SecurityTerms(
            security: .encryption, reading: (.readEncryptionRequired, .encryptRead),
            writing: (.writeEncryptionRequired, .encryptWrite),
            notifying: (.notifyEncryptionRequired, .encryptNotify),
            indicating: (.indicateEncryptionRequired, .encryptIndicate)),
    ]
}

extension CBCharacteristicProperties {
    /// The security that a subscription to notifications, or to indications, needs; `nil` if it needs none.
    package func security(notifying isNotifying: Bool) -> RequiredSecurity? {
        terms(notifying: isNotifying)?.security
    }

    fileprivate func terms(notifying isNotifying: Bool) -> SecurityTerms? {
        SecurityTerms.all.first { contains(isNotifying ? $0.notifying.property : $0.indicating.property) }
    }
}

extension GattFlags {
    /// The flags of a characteristic for BlueZ: of each operation one flag, which has its security.
    ///
    /// A write without response that needs security can be written with response too: BlueZ has no other word for it.
    init(_ properties: CBCharacteristicProperties, _ permissions: CBAttributePermissions) {
        // The lower eight have the bits of the declaration, in both.
        self.init(rawValue: UInt32(properties.rawValue & 0xFF))
        if contains(.read) { replace(.read, by: permissions.terms(reading: true)?.reading.flag) }
        if !isDisjoint(with: [.write, .writeWithoutResponse, .authenticatedSignedWrites]) {
            replace(.write, by: permissions.terms(reading: false)?.writing.flag)
        }
        replace(.notify, by: properties.terms(notifying: true)?.notifying.flag)
        replace(.indicate, by: properties.terms(notifying: false)?.indicating.flag)
        if permissions.contains(.authorizationRequired) { insert(.authorize) }
    }

    init(descriptor permissions: CBAttributePermissions) {
        self = []
        if permissions.allows(reading: true) { insert(permissions.terms(reading: true)?.reading.flag ?? .read) }
        if permissions.allows(reading: false) { insert(permissions.terms(reading: false)?.writing.flag ?? .write) }
        if permissions.contains(.authorizationRequired) { insert(.authorize) }
    }

    /// Replaces the plain flag, which the other one implies, if there is another one.
    private mutating func replace(_ flag: GattFlags, by other: GattFlags?) {
        guard let other else { return }
        remove(flag)
        insert(other)
    }
}
