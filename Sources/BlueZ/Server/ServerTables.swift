import DBus
import Foundation
import GATT

/// A service of ours while it is exported. On the loop; unchecked because of that, as the other records.
///
/// Records and the content retain each other until the attribute is withdrawn: a reply may come later than that.
final class ServiceRecord: @unchecked Sendable {
    let content: ApplicationContent
    let service: ServerService
    let includes: [ObjectPath]

    init(_ service: ServerService, includes: [ObjectPath], content: ApplicationContent) {
        self.content = content
        self.service = service
        self.includes = includes
    }
}

/// The interfaces that `bluetoothd` reads in an application of this process (`doc/gatt-api.txt` of 5.66, the parts for
/// servers).
///
/// `Handle` is 0 until BlueZ has given one, which it then writes here. From then on it is asked for the same one again, so
/// that centrals that have stored our table find it unchanged.
enum ServerTables {
    static let service = InterfaceTable<ServiceRecord>(
        "org.bluez.GattService1",
        properties: [
            .init("UUID", "s") { $1.string($0.service.uuid.busText) },
            .init("Primary", "b") { $1.bool($0.service.isPrimary) },
            .init("Includes", "ao", exists: { !$0.includes.isEmpty }, get: { $1.objectPaths($0.includes) }),
            .init(
                "Handle", "q", set: { $0.content.takeHandle(of: $0.service.id, &$1, $2) },
                get: { $1.uint16($0.content.handles[$0.service.id] ?? 0) }),
        ])

    static let characteristic = InterfaceTable<CharacteristicRecord>(
        characteristicName,
        methods: [
            .init("ReadValue", in: ["options": "a{sv}"], out: ["value": "ay"]) { $0.readCalled($1, value: nil) },
            .init("WriteValue", in: ["value": "ay", "options": "a{sv}"]) { $0.writeCalled($1) },
            .init("StartNotify") { $0.startNotifyCalled($1) },
            .init("StopNotify") { $0.stopNotifyCalled($1) },
            .init("Confirm") { $0.confirmCalled($1) },
            .init("AcquireNotify", in: ["options": "a{sv}"], out: ["fd": "h", "mtu": "q"]) {
                $0.acquireNotifyCalled($1)
            },
            .init("AcquireWrite", in: ["options": "a{sv}"], out: ["fd": "h", "mtu": "q"]) {
                $0.acquireWriteCalled($1)
            },
        ],
        properties: [
            .init("UUID", "s") { $1.string($0.characteristic.uuid.busText) },
            .init("Service", "o") { $1.objectPath($0.parent) },
            .init("Flags", "as") { $1.strings($0.characteristic.flags.texts) },
            .init(
                "Handle", "q", set: { $0.content.takeHandle(of: $0.id, &$1, $2) },
                get: { $1.uint16($0.content.handles[$0.id] ?? 0) }),
            .init("Value", "ay", exists: { $0.value != nil }, get: { $1.bytes($0.value ?? Data()) }),
            .init("Notifying", "b", exists: { $0.canSend }, get: { $1.bool($0.table.hasUnnamed) }),
            // By their presence BlueZ knows that it can ask for sockets.
            .init(
                "NotifyAcquired", "b", exists: { $0.givesNotifySocket }, get: { $1.bool(!$0.notifySockets.isEmpty) }),
            .init("WriteAcquired", "b", exists: { $0.givesWriteSocket }, get: { $1.bool(!$0.writeSockets.isEmpty) }),
        ])

    static let characteristicName: StaticString = "org.bluez.GattCharacteristic1"

    static let descriptor = InterfaceTable<DescriptorRecord>(
        "org.bluez.GattDescriptor1",
        methods: [
            .init("ReadValue", in: ["options": "a{sv}"], out: ["value": "ay"]) {
                $0.readCalled($1, value: $0.descriptor.value)
            },
            .init("WriteValue", in: ["value": "ay", "options": "a{sv}"]) { $0.writeCalled($1) },
        ],
        properties: [
            .init("UUID", "s") { $1.string($0.descriptor.uuid.busText) },
            .init("Characteristic", "o") { $1.objectPath($0.parent) },
            .init("Flags", "as") { $1.strings($0.descriptor.flags.texts) },
            .init(
                "Handle", "q", set: { $0.content.takeHandle(of: $0.id, &$1, $2) },
                get: { $1.uint16($0.content.handles[$0.id] ?? 0) }),
        ])
}

extension ApplicationContent {
    /// BlueZ writes the handle of an attribute.
    func takeHandle(of id: ServerAttributeID, _ reader: inout MessageReader, _ invocation: Invocation) {
        guard isFromDaemon(invocation), let handle = reader.uint16() else { return invocation.fail(.foreignCaller) }
        handles[id] = handle
        invocation.reply()
    }
}

extension DBusError {
    static let foreignCaller = DBusError(
        name: DBusError.Name.accessDenied, message: "Only bluetoothd may call this object.")
}
