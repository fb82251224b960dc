import Foundation

/// A packet of a central that a program answers.
struct PacketID: Hashable, Sendable {
    let number: UInt64
    let link: DeviceKey
    /// False for a command.
    let wantsResponse: Bool
}

/// A central's link to an adapter that serves, at the server's end.
struct ServerLink: Hashable, Sendable {
    let central: CentralIdentity
    var security = LinkSecurity.none
    /// Whether BlueZ keeps its subscriptions when the link ends.
    var isBonded = false
    /// What the central has written to each descriptor for subscriptions, by the descriptor's handle.
    var configurations: [UInt16: UInt16] = [:]
    /// Writes that are prepared and not executed. Parts that follow each other are joined.
    var prepared: [PreparedWrite] = []
    /// The request under way.
    var exchange: ServerExchange?
    /// Indications in their order; the first is sent, and not confirmed.
    var indications: [Indication] = []

    struct PreparedWrite: Hashable, Sendable {
        var handle: UInt16
        var offset: Int
        var bytes: [UInt8]
    }

    struct Indication: Hashable, Sendable {
        /// The handle of the value.
        var handle: UInt16
        var bytes: [UInt8]
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

/// One packet of the attribute protocol that goes to a server.
enum ServerPacket: Hashable, Sendable {
    case read(handle: UInt16, offset: Int)
    case write(handle: UInt16, [UInt8])
    case prepare(handle: UInt16, offset: Int, [UInt8])
    case execute(Bool)
}

/// A request of a central: one packet after another, as BlueZ's own client sends them (`src/shared/gatt-client.c`).
struct ServerExchange: Hashable, Sendable {
    enum Step: Hashable, Sendable {
        case send(ServerPacket)
        case finish(AttributeResult)
    }

    private enum State: Hashable {
        case reading(handle: UInt16, offset: Int)
        case writing
        /// The rest is still to be prepared.
        case preparing(handle: UInt16, offset: Int, rest: [UInt8])
        case executing
        /// A part was refused.
        case cancelling(UInt8)
    }

    let id: UInt64
    private let kind: AttributeRequest.Kind
    private let mtu: Int
    private var state: State
    private var collected: [UInt8] = []
    /// The number of packets so far.
    private(set) var packets = 0

    /// The length of the longest attribute, in bytes.
    static let longestValue = Limits.valueLength.upperBound

    init(_ request: AttributeRequest, mtu: Int) {
        id = request.id
        kind = request.kind
        self.mtu = mtu
        switch request.kind {
        case .read(let handle, let offset): state = .reading(handle: handle, offset: offset)
        case .write(let handle, let offset, let bytes, let type):
            let isLong = offset > 0 || type == .reliable || bytes.count > mtu - 3
            state = isLong ? .preparing(handle: handle, offset: offset, rest: bytes) : .writing
        case .configure: state = .writing
        }
    }

    /// Returns the first packet.
    ///
    /// - Parameter configuration: the handle of the descriptor that a subscription is written to.
    mutating func begin(configuration: UInt16?) -> Step {
        switch kind {
        case .read(let handle, let offset): return send(.read(handle: handle, offset: offset))
        case .write(let handle, _, let bytes, _):
            if case .writing = state { return send(.write(handle: handle, bytes)) }
            return nextPart()
        case .configure(_, let bits):
            guard let configuration else { return .finish(.error(ATTError.invalidHandle)) }
            return send(.write(handle: configuration, [bits, 0]))
        }
    }

    /// Takes the response to a packet, and returns the next.
    mutating func answered(_ result: AttributeResult) -> Step {
        switch (state, result) {
        case (.reading(let handle, let offset), .bytes(let bytes)):
            collected += bytes
            let end = offset + collected.count
            guard !bytes.isEmpty, bytes.count >= mtu - 1, end < Self.longestValue else {
                return .finish(.bytes(collected))
            }
            return send(.read(handle: handle, offset: end))
        case (.preparing, .bytes): return nextPart()
        case (.preparing, .error(let code)):
            state = .cancelling(code)
            return send(.execute(false))
        case (.cancelling(let code), _): return .finish(.error(code))
        case (.writing, .bytes), (.executing, .bytes): return .finish(.bytes([]))
        case (.reading, .error), (.writing, .error), (.executing, .error): return .finish(result)
        }
    }

    private mutating func nextPart() -> Step {
        guard case .preparing(let handle, let offset, let rest) = state else { return .finish(.bytes([])) }
        guard !rest.isEmpty || packets == 0 else {
            state = .executing
            return send(.execute(true))
        }
        let part = Array(rest.prefix(mtu - 5))
        state = .preparing(
            handle: handle, offset: offset + part.count, rest: Array(rest.dropFirst(part.count)))
        return send(.prepare(handle: handle, offset: offset, part))
    }

    private mutating func send(_ packet: ServerPacket) -> Step {
        packets += 1
        return .send(packet)
    }
}
