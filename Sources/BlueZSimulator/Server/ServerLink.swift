import Foundation

/// A packet of a central for which a program may be called.
struct PacketID: Hashable, Sendable {
    let number: UInt64
    let link: DeviceKey
    /// False for a command.
    let wantsResponse: Bool
}

/// A central's link to an adapter that serves, at the server's end.
struct ServerLink: Hashable, Sendable {
    var central: VirtualCentral
    let end: CentralEnd
    var security = LinkSecurity.none
    /// Writes that are prepared and not executed. Parts that follow each other are joined.
    var prepared: [PreparedWrite] = []
    /// The packet that waits for a program.
    var pending: PendingPacket?
    /// Indications in their order; the first is sent, and not confirmed.
    var indications: [Indication] = []

    struct PendingPacket: Hashable, Sendable {
        let id: PacketID
        let object: ObjectID
        /// What is kept if the program allows it.
        var prepared: PreparedWrite?
        var isExecuting = false
    }

    struct PreparedWrite: Hashable, Sendable {
        var handle: UInt16
        var offset: Int
        var bytes: [UInt8]
    }

    struct Indication: Hashable, Sendable {
        var value: CentralValue
        var confirmation: Confirmation
    }

    /// How BlueZ reports to the program that the central has confirmed an indication.
    enum Confirmation: Hashable, Sendable {
        case none
        case call(ObjectID)
        case packet(SocketID)
    }

    /// The prepare queue of `src/shared/gatt-server.c`.
    static let longestQueue = 30

    /// Keeps a part of a long write.
    mutating func prepare(_ handle: UInt16, _ offset: Int, _ bytes: [UInt8]) {
        if let last = prepared.indices.last, prepared[last].handle == handle,
            prepared[last].offset + prepared[last].bytes.count == offset
        {
            prepared[last].bytes += bytes
        } else {
            prepared.append(PreparedWrite(handle: handle, offset: offset, bytes: bytes))
        }
    }
}
