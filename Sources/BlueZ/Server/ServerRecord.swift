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
    /// Between `StartNotify` and `StopNotify`.
    var isNotifying = false
    /// What was notified last over the bus.
    var value: Data?
    /// One for all centrals, or, since 5.69, one for each.
    var notifySockets: [AcquiredSocket] = []
    var writeSockets: [AcquiredSocket] = []
    /// Indications that wait for the one before to be confirmed; the first is with BlueZ.
    var indications: [(value: Data, completion: Completion)] = []
    let confirmTimer: LoopTimer
    /// Values on their way to the bus.
    var unsent: [UInt64: Completion] = [:]

    init(_ characteristic: ServerCharacteristic, path: ObjectPath, parent: ObjectPath, core: ApplicationCore) {
        self.characteristic = characteristic
        confirmTimer = LoopTimer(on: core.client.loop)
        super.init(characteristic.id, characteristic.flags, path: path, parent: parent, core: core)
    }

    var isSubscribed: Bool { isNotifying || !notifySockets.isEmpty }
    var givesNotifySocket: Bool { characteristic.givesNotifySocket && characteristic.flags.notifies }
    var givesWriteSocket: Bool {
        characteristic.givesWriteSocket && characteristic.flags.contains(.writeWithoutResponse)
    }
    var canSend: Bool { characteristic.flags.notifies || characteristic.flags.indicates }
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

    fileprivate var notifies: Bool {
        !isDisjoint(with: [.notify, .encryptNotify, .encryptAuthenticatedNotify, .secureNotify])
    }

    fileprivate var indicates: Bool {
        !isDisjoint(with: [.indicate, .encryptIndicate, .encryptAuthenticatedIndicate, .secureIndicate])
    }
}
