import BlueCapKit
public import Foundation
import BlueCapFutures
public import BlueCapGATT

// The attributes of a remote peripheral. The attributes that the program publishes itself inherit from these classes.

/// What services, characteristics and descriptors have in common.
open class CBAttribute: NSObject {
    private let id: CBUUID

    /// The type of the attribute.
    open var uuid: CBUUID { id }

    init(uuid: CBUUID) { id = uuid }

    /// BlueCapKit's object for the same attribute; `nil` for an attribute that the program publishes.
    var known: (any PeripheralAttribute)? { nil }

    /// The service that the attribute is, or belongs to.
    var owner: CBService? { nil }
}

/// A service of a peripheral.
open class CBService: CBAttribute {
    struct Fields {
        weak var peripheral: CBPeripheral?
        var isPrimary = true
        var includedServices: [CBService]?
        var characteristics: [CBCharacteristic]?
    }

    let fields: Locked<Fields>
    /// BlueCapKit's object for the same service; `nil` for a service that the program publishes.
    let service: Service?

    /// - Parameter service: `nil` for a service that the program publishes.
    init(uuid: CBUUID, isPrimary: Bool, service: Service? = nil, peripheral: CBPeripheral? = nil) {
        fields = Locked(Fields(peripheral: peripheral, isPrimary: isPrimary))
        self.service = service
        super.init(uuid: uuid)
    }

    /// The peripheral that has the service.
    open var peripheral: CBPeripheral? { fields.withLock { $0.peripheral } }

    /// Whether the service is a primary service; a secondary service exists only to be included by other services.
    open var isPrimary: Bool { fields.withLock { $0.isPrimary } }

    /// The included services that were discovered; `nil` before.
    open var includedServices: [CBService]? { fields.withLock { $0.includedServices } }

    /// The characteristics that were discovered; `nil` before.
    open var characteristics: [CBCharacteristic]? { fields.withLock { $0.characteristics } }

    override open var description: String {
        "<CBService: \(ObjectIdentifier(self)), isPrimary = \(isPrimary ? "YES" : "NO"), UUID = \(uuid)>"
    }

    override var known: (any PeripheralAttribute)? { service }
    override var owner: CBService? { self }
}

/// A characteristic of a peripheral's service.
open class CBCharacteristic: CBAttribute {
    struct Fields {
        weak var service: CBService?
        var properties: CBCharacteristicProperties
        var value: Data?
        var descriptors: [CBDescriptor]?
        var isNotifying = false
        /// Whether notified values are passed to the delegate.
        var isReceiving = false
    }

    let fields: Locked<Fields>
    /// BlueCapKit's object for the same characteristic; `nil` for a characteristic that the program publishes.
    let characteristic: Characteristic?

    /// - Parameter characteristic: `nil` for a characteristic that the program publishes.
    init(
        uuid: CBUUID, properties: CBCharacteristicProperties, value: Data?, characteristic: Characteristic? = nil,
        service: CBService? = nil
    ) {
        fields = Locked(Fields(service: service, properties: properties, value: value))
        self.characteristic = characteristic
        super.init(uuid: uuid)
    }

    /// The service that the characteristic belongs to.
    open var service: CBService? { fields.withLock { $0.service } }

    /// The operations that the characteristic supports.
    open var properties: CBCharacteristicProperties { fields.withLock { $0.properties } }

    /// The value that was reported to the delegate last; `nil` before.
    open var value: Data? { fields.withLock { $0.value } }

    /// The descriptors that were discovered; `nil` before.
    open var descriptors: [CBDescriptor]? { fields.withLock { $0.descriptors } }

    /// Whether the value is broadcast in advertisements. Always false, as on iOS since version 8.
    open var isBroadcasted: Bool { false }

    /// Whether the delegate receives the values that the peripheral notifies or indicates.
    open var isNotifying: Bool { fields.withLock { $0.isNotifying } }

    override open var description: String {
        "<CBCharacteristic: \(ObjectIdentifier(self)), UUID = \(uuid), properties = 0x"
            + String(properties.rawValue, radix: 16, uppercase: true)
            + ", value = \(value.map { "\($0.count) bytes" } ?? "(null)"), notifying = \(isNotifying ? "YES" : "NO")>"
    }

    override var known: (any PeripheralAttribute)? { characteristic }
    override var owner: CBService? { service }
}

/// A descriptor of a peripheral's characteristic.
open class CBDescriptor: CBAttribute {
    struct Fields {
        weak var characteristic: CBCharacteristic?
        var value: Any?
    }

    let fields: Locked<Fields>
    /// BlueCapKit's object for the same descriptor; `nil` for a descriptor that the program publishes.
    let descriptor: Descriptor?

    /// - Parameter descriptor: `nil` for a descriptor that the program publishes.
    init(uuid: CBUUID, value: Any?, descriptor: Descriptor? = nil, characteristic: CBCharacteristic? = nil) {
        fields = Locked(Fields(characteristic: characteristic, value: value))
        self.descriptor = descriptor
        super.init(uuid: uuid)
    }

    /// The characteristic that it describes.
    open var characteristic: CBCharacteristic? { fields.withLock { $0.characteristic } }

    /// The value that was reported to the delegate last; `nil` before.
    ///
    /// Its type follows from the UUID: a `String` for the user description (2901), an `NSNumber` for the extended
    /// properties and the two configurations (2900, 2902, 2903), a `UInt16` for the L2CAP channel, and `Data` for all
    /// others.
    open var value: Any? { fields.withLock { $0.value } }

    override open var description: String { "<CBDescriptor: \(ObjectIdentifier(self)), UUID = \(uuid)>" }

    override var known: (any PeripheralAttribute)? { descriptor }
    override var owner: CBService? { characteristic?.service }

    /// Returns the value of a descriptor in the type that its UUID has.
    static func value(_ data: Data, of uuid: CBUUID) -> Any {
        switch uuid {
        case CBUUID(string: CBUUIDCharacteristicUserDescriptionString):
            return String(decoding: data, as: UTF8.self)
        case CBUUID(string: CBUUIDCharacteristicExtendedPropertiesString),
            CBUUID(string: CBUUIDClientCharacteristicConfigurationString),
            CBUUID(string: CBUUIDServerCharacteristicConfigurationString):
            return NSNumber(value: number(data))
        case CBUUID(string: CBUUIDL2CAPPSMCharacteristicString):
            return number(data)
        default:
            return data
        }
    }

    private static func number(_ data: Data) -> UInt16 {
        data.prefix(2).reversed().reduce(0) { $0 << 8 | UInt16($1) }
    }
}
