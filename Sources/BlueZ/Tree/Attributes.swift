import DBus
package import Foundation
package import GATT

/// What the three have in common.
protocol Attribute: PropertyOwner where Fields == AttributeFields {
    static var table: PropertyTable<Self> { get }
    /// Which properties there are.
    var fields: AttributeFields { get set }
}

extension Attribute {
    /// Takes over what `PropertiesChanged` says from the dictionary on.
    /// - Returns: The properties that were set or have gone.
    mutating func change(_ reader: inout MessageReader, ignored: inout Int) -> AttributeFields {
        let set = AttributeFields(rawValue: Self.table.read(&reader, into: &self, ignored: &ignored))
        let cleared = AttributeFields(rawValue: Self.table.clear(&reader, in: &self))
        fields.formUnion(set)
        fields.subtract(cleared)
        return set.union(cleared)
    }

    /// The same attribute with the properties of an `a{sv}`.
    func reading(_ reader: inout MessageReader, ignored: inout Int) -> (Self, AttributeFields) {
        var value = self
        value.fields = AttributeFields(rawValue: Self.table.read(&reader, into: &value, ignored: &ignored))
        return (value, value.fields)
    }
}

/// `org.bluez.GattService1` of a remote device.
package struct GattService1: Hashable, Sendable {
    package internal(set) var fields: AttributeFields = []
    var truths: AttributeFields = []
    package internal(set) var uuid = CBUUID(0)
    /// The handles of the services that it includes.
    package internal(set) var includes: [UInt16] = []

    package var isPrimary: Bool { truths.contains(.isPrimary) }
}

/// `org.bluez.GattCharacteristic1` of a remote device.
package struct GattCharacteristic1: Hashable, Sendable {
    package internal(set) var fields: AttributeFields = []
    var truths: AttributeFields = []
    package internal(set) var uuid = CBUUID(0)
    /// The handle of the service that it belongs to.
    package let service: UInt16
    package internal(set) var flags: GattFlags = []
    /// Flags of names that are not known here.
    package internal(set) var otherFlags: [String] = []
    /// What was read, written, notified or indicated last, by whomever on this machine; `nil` before.
    package internal(set) var value: Data?
    var rawMTU: UInt16 = 0

    init(service: UInt16) { self.service = service }

    package var properties: CBCharacteristicProperties { flags.properties }
    /// Whether notifications or indications are on for anybody on this machine.
    package var isNotifying: Bool { truths.contains(.isNotifying) }
    /// The ATT MTU of the link in bytes, three of them ATT's own. Since 5.62.
    package var mtu: Int? { fields.contains(.mtu) ? Int(rawMTU) : nil }
    /// Whether somebody, this process or another, holds the socket of `AcquireNotify`.
    package var isNotifyAcquired: Bool { truths.contains(.isNotifyAcquired) }
    /// Whether somebody, this process or another, holds the socket of `AcquireWrite`.
    package var isWriteAcquired: Bool { truths.contains(.isWriteAcquired) }
}

/// `org.bluez.GattDescriptor1` of a remote device.
package struct GattDescriptor1: Hashable, Sendable {
    package internal(set) var fields: AttributeFields = []
    var truths: AttributeFields = []
    package internal(set) var uuid = CBUUID(0)
    /// The handles of what it belongs to.
    package let service: UInt16
    package let characteristic: UInt16
    package internal(set) var flags: GattFlags = []
    package internal(set) var otherFlags: [String] = []
    /// What was read or written last, by whomever on this machine; `nil` before.
    package internal(set) var value: Data?

    init(service: UInt16, characteristic: UInt16) {
        self.service = service
        self.characteristic = characteristic
    }
}

// MARK: - Tables

/// Each property of the three interfaces that we use, once (BlueZ's `doc/gatt-api.txt`, and `src/gatt-client.c` of 5.66).
///
/// `Device`, `Service` and `Characteristic` are not among them: they repeat what the object's path says.
extension GattService1: Attribute {
    package static let table = PropertyTable<GattService1>(
        "org.bluez.GattService1",
        [
            .value("UUID", .uuid, "s") { readUUID(&$0, into: &$1.uuid) },
            .flag("Primary", .isPrimary),
            .value(
                "Includes", .includes, "ao", isOptional: true,
                read: { reader, service in
                    guard reader.elementType == .objectPath else { return false }
                    var includes: [UInt16] = []
                    reader.array { element in
                        if let handle = element.withString({ AttributePath.serviceHandle($0) }) ?? nil {
                            includes.append(handle)
                        }
                    }
                    service.includes = includes
                    return true
                }, clear: { $0.includes = [] }),
        ])
}

extension GattCharacteristic1: Attribute {
    package static let table = PropertyTable<GattCharacteristic1>(
        "org.bluez.GattCharacteristic1",
        [
            .value("UUID", .uuid, "s") { readUUID(&$0, into: &$1.uuid) },
            .value("Flags", .flags, "as") { readFlags(&$0, into: &$1.flags, &$1.otherFlags) },
            .value(
                "Value", .value, "ay", isOptional: true,
                read: { readValue(&$0, into: &$1.value) }, clear: { $0.value = nil }),
            // There only where the flags have "notify" or "indicate".
            .flag("Notifying", .isNotifying, isOptional: true),
            // Since 5.62.
            .value("MTU", .mtu, "q", isOptional: true) { $0.uint16().set(&$1.rawMTU) },
            // These two only where the flags allow it.
            .flag("NotifyAcquired", .isNotifyAcquired, isOptional: true),
            .flag("WriteAcquired", .isWriteAcquired, isOptional: true),
        ])
}

extension GattDescriptor1: Attribute {
    package static let table = PropertyTable<GattDescriptor1>(
        "org.bluez.GattDescriptor1",
        [
            .value("UUID", .uuid, "s") { readUUID(&$0, into: &$1.uuid) },
            .value("Flags", .flags, "as", isOptional: true) { readFlags(&$0, into: &$1.flags, &$1.otherFlags) },
            .value(
                "Value", .value, "ay", isOptional: true,
                read: { readValue(&$0, into: &$1.value) }, clear: { $0.value = nil }),
        ])
}

private func readUUID(_ reader: inout MessageReader, into place: inout CBUUID) -> Bool {
    (reader.withString { CBUUID(utf8: $0) } ?? nil).set(&place)
}

private func readFlags(_ reader: inout MessageReader, into flags: inout GattFlags, _ others: inout [String]) -> Bool {
    guard reader.elementType == .string else { return false }
    var new: GattFlags = []
    var unknown: [String] = []
    reader.array { element in
        element.withString { name in
            if let flag = GattFlags(name: name) {
                new.insert(flag)
            } else {
                unknown.append(String(decoding: name, as: UTF8.self))
            }
        }
    }
    flags = new
    others = unknown
    return true
}

/// The one copy that is made of a value on its way from the socket to the user.
private func readValue(_ reader: inout MessageReader, into value: inout Data?) -> Bool {
    guard let data = reader.data() else { return false }
    value = data
    return true
}

extension MessageReader {
    /// An array of bytes, in one copy.
    mutating func data() -> Data? {
        withBytes { bytes in bytes.baseAddress.map { Data(bytes: $0, count: bytes.count) } ?? Data() }
    }
}
