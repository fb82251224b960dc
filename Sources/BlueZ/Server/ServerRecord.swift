import DBus
import Foundation
import GATT
import Reactor

/// A service of ours while it is exported. On the loop; unchecked because of that, as the other records.
///
/// Records hold the core, and the core them, until what they stand for is withdrawn: an answer may come later than that.
final class ServiceRecord: @unchecked Sendable {
    let core: ApplicationCore
    let service: ServerService
    let includes: [ObjectPath]

    init(_ service: ServerService, includes: [ObjectPath], core: ApplicationCore) {
        self.core = core
        self.service = service
        self.includes = includes
    }
}

/// What a characteristic and a descriptor have in common: values that centrals read and write.
class ValueRecord: @unchecked Sendable {
    /// A value that a central reads in several packets, so that all of them are of one value.
    struct Snapshot {
        let value: Data
        var usedAt: Instant
    }

    let core: ApplicationCore
    let id: ServerAttributeID
    let flags: GattFlags
    let path: ObjectPath
    let parent: ObjectPath
    var snapshots: [ObjectKey?: Snapshot] = [:]
    var assemblies: [ObjectKey?: WriteAssembly] = [:]
    var assemblyTimers: [ObjectKey?: TimerID] = [:]

    init(_ id: ServerAttributeID, _ flags: GattFlags, path: ObjectPath, parent: ObjectPath, core: ApplicationCore) {
        self.core = core
        self.id = id
        self.flags = flags
        self.path = path
        self.parent = parent
    }
}

final class DescriptorRecord: ValueRecord, @unchecked Sendable {
    let descriptor: ServerDescriptor

    init(_ descriptor: ServerDescriptor, path: ObjectPath, parent: ObjectPath, core: ApplicationCore) {
        self.descriptor = descriptor
        super.init(descriptor.id, descriptor.flags, path: path, parent: parent, core: core)
    }
}

final class CharacteristicRecord: ValueRecord, @unchecked Sendable {
    typealias Completion = @Sendable (Result<Void, BlueZError>) -> Void

    let characteristic: ServerCharacteristic
    /// What was sent to all last.
    var value: Data?
    var table = SubscriberTable()
    /// What the delegate knows.
    var reported: [ServerSubscriber] = []
    /// For what ``table`` settles after a time.
    let settlingTimer: LoopTimer
    /// One for all centrals, or, since 5.69, one for each.
    var notifySockets: [SubscriberTable.SocketNumber: AcquiredSocket] = [:]
    var writeSockets: [AcquiredSocket] = []
    private(set) lazy var sender = UpdateSender(self)

    init(_ characteristic: ServerCharacteristic, path: ObjectPath, parent: ObjectPath, core: ApplicationCore) {
        self.characteristic = characteristic
        settlingTimer = LoopTimer(on: core.client.loop)
        super.init(characteristic.id, characteristic.flags, path: path, parent: parent, core: core)
    }

    /// Whether a value that is sent to all reaches a central, as far as BlueZ tells.
    var isSubscribed: Bool { !table.subscribers.isEmpty }
    var givesNotifySocket: Bool { characteristic.givesNotifySocket && canSend }
    var givesWriteSocket: Bool {
        characteristic.givesWriteSocket && characteristic.flags.contains(.writeWithoutResponse)
    }
    var canSend: Bool { characteristic.flags.canBeSubscribedTo }
    /// Whether BlueZ tells of every value that a central has got it.
    var isConfirmed: Bool { characteristic.flags.indicates && !characteristic.flags.notifies }
}

// A flag that asks for encryption says by itself what it asks that for.
extension GattFlags {
    var allowsReading: Bool {
        !isDisjoint(with: [.read, .encryptRead, .encryptAuthenticatedRead, .secureRead])
    }

    var allowsWriting: Bool {
        !isDisjoint(with: [
            .write, .writeWithoutResponse, .reliableWrite, .authenticatedSignedWrites, .encryptWrite,
            .encryptAuthenticatedWrite, .secureWrite,
        ])
    }

    /// Whether BlueZ adds 0x2902.
    var canBeSubscribedTo: Bool { notifies || indicates }

    fileprivate var notifies: Bool {
        !isDisjoint(with: [.notify, .encryptNotify, .encryptAuthenticatedNotify, .secureNotify])
    }

    fileprivate var indicates: Bool {
        !isDisjoint(with: [.indicate, .encryptIndicate, .encryptAuthenticatedIndicate, .secureIndicate])
    }
}
