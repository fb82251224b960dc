import Foundation

/// A packet of a central for which a program may be called.
struct PacketID: Hashable, Sendable {
    let number: UInt64
    let link: DeviceKey
    /// False for a command.
    let wantsResponse: Bool
}

/// A central's link to an adapter that serves, at the server's end.
struct ServerLink: Sendable {
    var central: VirtualCentral
    let end: CentralEnd
    var security = LinkSecurity.none
    /// Writes that are prepared and not executed. Parts that follow each other are joined.
    var prepared: [PreparedWrite] = []
    /// The packet that waits for a program.
    var pending: PendingPacket?
    /// Indications in their order; the first is sent, and not confirmed. The confirmation is reported to the program by a call
    /// of the object, or by a packet to the socket.
    var indications: [(value: CentralValue, object: ObjectID?, socket: SocketID?)] = []

    struct PendingPacket: Sendable {
        let id: PacketID
        let object: ObjectID
        /// What is kept if the program allows it.
        var prepared: PreparedWrite?
        var isExecuting = false
    }

    struct PreparedWrite: Sendable {
        var handle: UInt16
        var offset: Int
        var bytes: [UInt8]
    }

    /// The prepare queue of `src/shared/gatt-server.c`.
    static let longestQueue = 30

    /// Keeps a part of a long write.
    mutating func prepare(_ part: PreparedWrite) {
        if let last = prepared.last, last.handle == part.handle, last.offset + last.bytes.count == part.offset {
            prepared[prepared.count - 1].bytes += part.bytes
        } else {
            prepared.append(part)
        }
    }
}
