import BlueCapDBus
import Foundation
import BlueCapGATT

/// An attribute of this process while it is exported. On the loop, and unchecked because of that.
///
/// Records and their application retain each other until they are withdrawn: a reply may come later than that.
class AttributeRecord: DaemonCallee, @unchecked Sendable {
    let application: ServerApplication
    let id: ServerAttributeID
    let uuid: CBUUID

    init(_ id: ServerAttributeID, _ uuid: CBUUID, of application: ServerApplication) {
        self.application = application
        self.id = id
        self.uuid = uuid
    }

    var daemon: DaemonLink { application.client.daemon }

    func catchUp() { application.receiveWrites() }
}

/// The interfaces that `bluetoothd` reads in an application of this process (`doc/gatt-api.txt` of 5.66, the parts for
/// servers).
///
/// `Handle` is 0 until BlueZ has given one, which it then writes here. From then on it is asked for the same one again, so
/// that centrals that have stored our table find it unchanged.
enum ServerTables {
    static let service = InterfaceTable<AttributeRecord>(
        "org.bluez.GattService1",
        properties: [.uuid, .init("Primary", "b") { $1.bool($0.application.service.isPrimary) }, .handle])

    static let characteristic = InterfaceTable<CharacteristicRecord>(
        "org.bluez.GattCharacteristic1",
        methods: [
            .readValue, .writeValue,
            .ofDaemon("StartNotify") { $0.startNotifyCalled($1) },
            .ofDaemon("StopNotify") { $0.stopNotifyCalled($1) },
            .ofDaemon("Confirm") { $0.confirmCalled($1) },
            .ofDaemon("AcquireNotify", in: ["options": "a{sv}"], out: ["fd": "h", "mtu": "q"]) {
                $0.acquireNotifyCalled($1)
            },
            .ofDaemon("AcquireWrite", in: ["options": "a{sv}"], out: ["fd": "h", "mtu": "q"]) {
                $0.acquireWriteCalled($1)
            },
        ],
        properties: [
            .uuid,
            .init("Service", "o") { $1.objectPath($0.parent) },
            .init("Flags", "as") { $1.strings($0.flags.texts) },
            .handle,
            .init("Value", "ay", exists: { $0.value != nil }, get: { $1.bytes($0.value ?? Data()) }),
            .init("Notifying", "b", exists: { $0.canSend }, get: { $1.bool($0.table.hasUnnamed) }),
            // By their presence BlueZ knows that it can ask for sockets.
            .init(
                "NotifyAcquired", "b", exists: { $0.givesNotifySocket }, get: { $1.bool(!$0.notifySockets.isEmpty) }),
            .init("WriteAcquired", "b", exists: { $0.givesWriteSocket }, get: { $1.bool(!$0.writeSockets.isEmpty) }),
        ])

    static let descriptor = InterfaceTable<ValueRecord>(
        "org.bluez.GattDescriptor1",
        methods: [.readValue, .writeValue],
        properties: [
            .uuid,
            .init("Characteristic", "o") { $1.objectPath($0.parent) },
            .init("Flags", "as") { $1.strings($0.flags.texts) },
            .handle,
        ])
}

extension InterfaceTable.Property where Target: AttributeRecord {
    fileprivate static var uuid: Self { .init("UUID", "s") { $1.string($0.uuid.busText) } }

    /// BlueZ writes the handle that it has given.
    fileprivate static var handle: Self {
        .init(
            "Handle", "q",
            set: { record, reader, invocation in
                guard record.daemon.isFromDaemon(invocation), let handle = reader.uint16() else {
                    return invocation.fail(.foreignCaller)
                }
                record.application.handles[record.id] = handle
                invocation.reply()
            }, get: { $1.uint16($0.application.handles[$0.id] ?? 0) })
    }
}

extension InterfaceTable.Method where Target: ValueRecord {
    fileprivate static var readValue: Self {
        .ofDaemon("ReadValue", in: ["options": "a{sv}"], out: ["value": "ay"]) { $0.readCalled($1) }
    }

    fileprivate static var writeValue: Self {
        .ofDaemon("WriteValue", in: ["value": "ay", "options": "a{sv}"]) { $0.writeCalled($1) }
    }
}
