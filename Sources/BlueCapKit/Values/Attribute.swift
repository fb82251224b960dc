import BlueCapBlueZ
import BlueCapGATT

/// Identifies an attribute among those of its peripheral: a service, a characteristic or a descriptor.
///
/// The identifier stays the same for as long as the manager keeps the peripheral, even if the attribute gets another
/// handle. It has no meaning after that.
public struct AttributeID: Hashable, Comparable, Sendable {
    let rawValue: Int

    /// Orders identifiers by the time at which their attributes became known.
    public static func < (left: AttributeID, right: AttributeID) -> Bool { left.rawValue < right.rawValue }
}

extension AttributeID: TableKey {
    var number: UInt64 { UInt64(truncatingIfNeeded: rawValue) }
}

/// The position of an attribute on the peripheral: the number that BlueZ gives it.
///
/// Numbers up to 0xFFFF are those in BlueZ's object paths, which are ATT handles. Higher numbers are attributes that
/// have no object: they are derived from other reports of BlueZ.
struct AttributeHandle: Hashable, Sendable {
    let rawValue: UInt32

    init(_ handle: UInt16) { rawValue = UInt32(handle) }

    private init(virtual number: UInt16) { rawValue = 0x1_0000 + UInt32(number) }

    /// The battery service and its level, if BlueZ does not export them (C4).
    static let batteryService = AttributeHandle(virtual: 0)
    static let batteryLevel = AttributeHandle(virtual: 1)

    var isVirtual: Bool { rawValue > 0xFFFF }
    /// The ATT handle; `nil` for a virtual attribute.
    var attHandle: UInt16? { isVirtual ? nil : UInt16(truncatingIfNeeded: rawValue) }
}

/// What a peripheral declares about one of its attributes.
struct AttributeDeclaration: Hashable, Sendable {
    let handle: AttributeHandle
    let kind: AttributeKind
    let uuid: CBUUID
    /// The service of a characteristic, or the characteristic of a descriptor.
    var parent: AttributeHandle?
    /// Whether it is a primary service.
    var isPrimary = false
    /// The properties of a characteristic.
    var properties: CBCharacteristicProperties = []
    /// The services that a service includes.
    var includes: [AttributeHandle] = []
}

extension AttributeDeclaration {
    /// The battery service of a peripheral if BlueZ does not export it because one of BlueZ's plug-ins is its client.
    static let virtualBattery = [
        AttributeDeclaration(handle: .batteryService, kind: .service, uuid: .battery, isPrimary: true),
        AttributeDeclaration(
            handle: .batteryLevel, kind: .characteristic, uuid: CBUUID(0x2A19), parent: .batteryService,
            properties: [.read, .notify]),
    ]
}

extension CBUUID {
    static let battery = CBUUID(0x180F)
    static let userDescription = CBUUID(0x2901)

    /// Whether BlueZ exports a service with this UUID if the peripheral has one.
    ///
    /// BlueZ does not export a service if a part of BlueZ is its client: up to 5.79 the services that a profile claims,
    /// later according to `ExportClaimedServices` in `main.conf`. A device's UUIDs also contain classes of Bluetooth
    /// Classic, which are not GATT services.
    var isExportedService: Bool {
        guard let number = assignedNumber else { return true }
        switch number {
        // Service classes of SDP.
        case 0x1000...0x17FF: return false
        // Generic Access, Human Interface Device, Scan Parameters.
        case 0x1800, 0x1812, 0x1813: return false
        // LE Audio: volume, coordinated sets, media, calls, streams, broadcasts, capabilities, common audio, hearing.
        case 0x1843...0x1855: return false
        default: return true
        }
    }
}

extension AttributeKey {
    /// BlueZ's name of an attribute of a device; `nil` for the service of a battery that BlueZ does not export.
    init?(_ device: ObjectKey, _ handle: AttributeHandle) {
        if handle == .batteryLevel {
            self = .battery(of: device)
        } else {
            guard let handle = handle.attHandle else { return nil }
            self.init(device: device, handle: handle)
        }
    }
}
