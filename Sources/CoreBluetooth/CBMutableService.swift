public import BlueCapKit
public import Foundation
import BlueCapFutures
public import BlueCapGATT

/// A service that this program offers.
open class CBMutableService: CBService {
    private let made = Locked<MutableService?>(nil)

    /// Creates a service without characteristics. A primary service describes a function of the peripheral.
    public init(type UUID: CBUUID, primary isPrimary: Bool) { super.init(uuid: UUID, isPrimary: isPrimary) }

    /// Services that this one includes. A service with included services cannot be added: BlueCap does not offer them.
    open override var includedServices: [CBService]? {
        get { super.includedServices }
        set { fields.replace(\.includedServices, with: newValue) }
    }

    /// The characteristics, in the order in which centrals find them: ``CBMutableCharacteristic``s. A change takes
    /// effect the next time that the service is added.
    open override var characteristics: [CBCharacteristic]? {
        get { super.characteristics }
        set {
            fields.replace(\.characteristics, with: newValue)
            for each in newValue ?? [] { each.fields.withLock { $0.service = self } }
        }
    }

    /// The same service in BlueCap's interface, since it was added last; `nil` before.
    public var blueCap: MutableService? { made.withLock { $0 } }

    var mutableCharacteristics: [CBMutableCharacteristic] {
        (characteristics ?? []).compactMap { $0 as? CBMutableCharacteristic }
    }

    /// Returns the reason why the service cannot be added, for the program's log.
    var problem: String? {
        if includedServices?.isEmpty == false { return "included services are not supported" }
        if mutableCharacteristics.count != characteristics?.count ?? 0 {
            return "its characteristics must be CBMutableCharacteristics"
        }
        return mutableCharacteristics.lazy.compactMap(\.problem).first
    }

    /// Makes the service that is added.
    func make() -> MutableService {
        let service = MutableService(uuid: uuid, isPrimary: isPrimary)
        service.characteristics = mutableCharacteristics.map { $0.make() }
        made.replace(\.self, with: service)
        return service
    }

    /// The service of an earlier process.
    convenience init(restored service: MutableService) {
        self.init(type: service.uuid, primary: service.isPrimary)
        characteristics = service.characteristics.map { CBMutableCharacteristic(restored: $0) }
        made.withLock { $0 = service }
    }
}

/// A characteristic that this program offers.
open class CBMutableCharacteristic: CBCharacteristic {
    private struct Core {
        var permissions: CBAttributePermissions
        var subscribed: [CBCentral] = []
        var made: MutableCharacteristic?
    }

    private let core: Locked<Core>

    /// Creates a characteristic. Centrals read a fixed value without a request to the delegate; the characteristic must then be
    /// read-only. With `nil` the delegate receives each read.
    public init(
        type UUID: CBUUID, properties: CBCharacteristicProperties, value: Data?, permissions: CBAttributePermissions
    ) {
        core = Locked(Core(permissions: permissions))
        super.init(uuid: UUID, properties: properties, value: value)
    }

    /// Whether centrals may read and write it, and which security that needs. A change takes effect the next time that the
    /// service is added.
    open var permissions: CBAttributePermissions {
        get { core.withLock { $0.permissions } }
        set { core.withLock { $0.permissions = newValue } }
    }

    /// The centrals that have subscribed, as far as BlueZ names them.
    open var subscribedCentrals: [CBCentral]? { core.withLock { $0.subscribed } }

    /// What centrals can do with it. A change takes effect the next time that the service is added.
    open override var properties: CBCharacteristicProperties {
        get { super.properties }
        set { fields.withLock { $0.properties = newValue } }
    }

    /// The fixed value, or `nil`. A change takes effect the next time that the service is added.
    open override var value: Data? {
        get { super.value }
        set { fields.replace(\.value, with: newValue) }
    }

    /// The descriptors: ``CBMutableDescriptor``s. A change takes effect the next time that the service is added.
    open override var descriptors: [CBDescriptor]? {
        get { super.descriptors }
        set {
            fields.replace(\.descriptors, with: newValue)
            for each in newValue ?? [] { each.fields.withLock { $0.characteristic = self } }
        }
    }

    /// The same characteristic in BlueCap's interface, since its service was added last; `nil` before.
    public var blueCap: MutableCharacteristic? { core.withLock { $0.made } }

    var needsPairing: Bool {
        permissions.security(reading: true) != nil || permissions.security(reading: false) != nil
            || properties.security(notifying: true) != nil || properties.security(notifying: false) != nil
    }

    /// Whether the delegate receives the reads.
    var isDynamic: Bool { value == nil }

    var problem: String? {
        let writes: CBAttributePermissions = [.writeable, .writeEncryptionRequired]
        let isWritten = !properties.isDisjoint(with: [.write, .writeWithoutResponse, .authenticatedSignedWrites])
        if !isDynamic, isWritten || !permissions.isDisjoint(with: writes) {
            return "characteristic \(uuid) has a fixed value and so must be read-only: create it with the value nil"
        }
        return descriptors?.lazy.compactMap { descriptor in
            guard let descriptor = descriptor as? CBMutableDescriptor else {
                return "descriptor \(descriptor.uuid) must be a CBMutableDescriptor"
            }
            return descriptor.problem
        }.first
    }

    func make() -> MutableCharacteristic {
        let made = MutableCharacteristic(uuid: uuid, properties: properties, permissions: permissions, value: value)
        made.descriptors = (descriptors ?? []).compactMap { ($0 as? CBMutableDescriptor)?.make() }
        configure(made)
        core.withLock { ($0.made, $0.subscribed) = (made, []) }
        return made
    }

    convenience init(restored made: MutableCharacteristic) {
        self.init(type: made.uuid, properties: made.properties, value: made.value, permissions: made.permissions)
        descriptors = made.descriptors.map { CBMutableDescriptor(type: $0.uuid, value: $0.value) }
        configure(made)
        core.withLock { $0.made = made }
    }

    /// As on Apple's platforms, an update that no central has subscribed to is not kept, and the queue is short.
    private func configure(_ made: MutableCharacteristic) {
        made.unsubscribedUpdatePolicy = .discard
        made.updateQueueLimit = 64
    }

    /// Returns the subscribed ones of these centrals, which alone receive an update; `nil` if all subscribers receive it.
    func someOnly(_ centrals: [CBCentral]?) -> [CBCentral]? {
        guard let centrals else { return nil }
        let subscribed = core.withLock { $0.subscribed }
        let chosen = subscribed.filter { each in centrals.contains { $0 === each } }
        return chosen.count == subscribed.count ? nil : chosen
    }

    /// Replaces the subscribed centrals. Returns those that are new and those that left.
    func subscribersChanged(to centrals: [CBCentral]) -> (new: [CBCentral], left: [CBCentral]) {
        let old = core.replace(\.subscribed, with: centrals)
        return (
            centrals.filter { central in !old.contains { $0 === central } },
            old.filter { central in !centrals.contains { $0 === central } }
        )
    }
}

/// A descriptor of a characteristic that this program offers.
open class CBMutableDescriptor: CBDescriptor {
    /// Creates a descriptor, which centrals can read.
    ///
    /// - Parameters:
    ///   - UUID: `CBUUIDCharacteristicUserDescriptionString` or `CBUUIDCharacteristicFormatString`, or any other
    ///     (unlike on Apple's platforms) but 2900 and 2902, which BlueZ adds.
    ///   - value: A `String` for the user description, `Data` otherwise.
    public init(type UUID: CBUUID, value: Any?) {
        super.init(uuid: UUID, value: value)
    }

    private var bytes: Data? {
        switch value {
        case nil: Data()
        case let text as String: Data(text.utf8)
        case let data as Data: data
        default: nil
        }
    }

    var problem: String? {
        bytes == nil ? "the value of descriptor \(uuid) must be a String or Data" : nil
    }

    func make() -> MutableDescriptor { MutableDescriptor(uuid: uuid, value: bytes) }
}
