package import BlueCapGATT

/// Identifies an attribute of this process. The caller chooses the numbers; each is used once in a service.
package struct ServerAttributeID: Hashable, Sendable {
    package let rawValue: UInt64
    package init(_ rawValue: UInt64) { self.rawValue = rawValue }
}

/// A service that this process offers, in the words of BlueZ (`doc/gatt-api.txt`, "Service hierarchy").
package struct ServerService: Hashable, Sendable {
    package var id: ServerAttributeID
    package var uuid: CBUUID
    package var isPrimary: Bool
    /// In the order of their handles.
    package var characteristics: [ServerCharacteristic]

    package init(
        id: ServerAttributeID, uuid: CBUUID, isPrimary: Bool = true, characteristics: [ServerCharacteristic] = []
    ) {
        self.id = id
        self.uuid = uuid
        self.isPrimary = isPrimary
        self.characteristics = characteristics
    }
}

package struct ServerCharacteristic: Hashable, Sendable {
    package var id: ServerAttributeID
    package var uuid: CBUUID
    package var flags: GattFlags
    /// In the order of their handles. BlueZ adds 0x2902 and 0x2900, as the flags require them.
    package var descriptors: [ServerDescriptor]
    /// Whether BlueZ shall fetch sockets for subscribers (`AcquireNotify`): by that it names them, up to 5.68 the first one only,
    /// and from 5.76 on a value can be sent to one of them.
    package var givesNotifySocket: Bool
    /// Whether BlueZ shall fetch a socket for writes without response (`AcquireWrite`). Of the values that come over
    /// it, only the first one's central is known.
    package var givesWriteSocket: Bool

    package init(
        id: ServerAttributeID, uuid: CBUUID, flags: GattFlags, descriptors: [ServerDescriptor] = [],
        givesNotifySocket: Bool = false, givesWriteSocket: Bool = false
    ) {
        self.id = id
        self.uuid = uuid
        self.flags = flags
        self.descriptors = descriptors
        self.givesNotifySocket = givesNotifySocket
        self.givesWriteSocket = givesWriteSocket
    }
}

package struct ServerDescriptor: Hashable, Sendable {
    package var id: ServerAttributeID
    package var uuid: CBUUID
    package var flags: GattFlags

    package init(id: ServerAttributeID, uuid: CBUUID, flags: GattFlags) {
        self.id = id
        self.uuid = uuid
        self.flags = flags
    }
}

extension HandleLayout {
    /// Returns handles for all attributes of a service, the same for the same services in the same order, and none if the
    /// service has more attributes than there are handles. A further attribute gives all of its service new handles.
    mutating func place(_ service: ServerService) -> [ServerAttributeID: UInt16] {
        var offsets = [service.id: 0]
        var offset = 1
        for characteristic in service.characteristics {
            offsets[characteristic.id] = offset + 1
            offset += 2
            if characteristic.flags.canBeSubscribedTo { offset += 1 }
            if characteristic.flags.hasExtendedProperties { offset += 1 }
            for descriptor in characteristic.descriptors {
                offsets[descriptor.id] = offset
                offset += 1
            }
        }
        guard let first = reserve(offset) else { return [:] }
        return offsets.mapValues { first + UInt16($0) }
    }
}

extension ServerService {
    /// It, its characteristics and their descriptors.
    var attributes: [ServerAttributeID] { [id] + characteristics.flatMap { [$0.id] + $0.descriptors.map(\.id) } }

    /// Returns the first flag that a daemon would refuse, or accept and not enforce; `nil` if there is none.
    package func firstUnenforcedFlag(by daemon: DaemonCapabilities) -> (attribute: CBUUID, flag: String)? {
        var unenforced: GattFlags = daemon.enforcesSecureConnections ? [] : [.secureRead, .secureWrite]
        if !daemon.securedSubscriptions {
            unenforced.formUnion([
                .encryptNotify, .encryptAuthenticatedNotify, .secureNotify, .encryptIndicate,
                .encryptAuthenticatedIndicate, .secureIndicate,
            ])
        }
        for characteristic in characteristics {
            let descriptors = characteristic.descriptors.map { ($0.uuid, $0.flags) }
            for (uuid, flags) in [(characteristic.uuid, characteristic.flags)] + descriptors {
                if let flag = flags.intersection(unenforced).texts.first { return (uuid, flag) }
            }
        }
        return nil
    }
}

extension GattFlags {
    /// Whether BlueZ adds 0x2900.
    fileprivate var hasExtendedProperties: Bool { !isDisjoint(with: [.reliableWrite, .writableAuxiliaries]) }

    // A flag that requires encryption implies what it requires that for.
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
    package var canBeSubscribedTo: Bool { notifies || indicates }

    var notifies: Bool {
        !isDisjoint(with: [.notify, .encryptNotify, .encryptAuthenticatedNotify, .secureNotify])
    }

    var indicates: Bool {
        !isDisjoint(with: [.indicate, .encryptIndicate, .encryptAuthenticatedIndicate, .secureIndicate])
    }
}
