import Foundation

/// An adapter and the address of a device: one end of a link as that adapter sees it.
struct DeviceKey: Hashable, Sendable, Comparable {
    var adapter: Int
    var address: VirtualAddress

    static func < (left: Self, right: Self) -> Bool { (left.adapter, left.address) < (right.adapter, right.address) }
}

/// The central's end of a link, which names the link.
enum CentralEnd: Hashable, Sendable, Comparable {
    /// An adapter, and the address that it connects to.
    case adapter(DeviceKey)
    /// A ``VirtualCentral``, which has no adapter; each of its links has a number.
    case virtual(UInt64)
}

/// A link between a central and a server, or an attempt to connect.
struct Link: Sendable {
    enum Server: Hashable, Sendable {
        case peripheral(VirtualAddress)
        /// An adapter, and the address of the central; bluetoothd serves the attributes of programs.
        case adapter(DeviceKey, VirtualCentral)
    }

    let server: Server
    var isUp = false
    /// Requests in their order; the first is under way.
    private var requests: [AttributeRequest] = []
    /// The packets of the first, if an adapter serves.
    var exchange: ServerExchange?
    /// The result of the first, once it is known and until the response arrives.
    var result: AttributeResult?
    /// Values that the server sent after that result was known. They must not overtake the response.
    private var following: [CentralValue] = []
    /// The number of requests so far that want a response.
    private(set) var requestCount = 0
    /// By the handle of the descriptor that they are written to: 1 for notifications or 2 for indications, and the number
    /// of values that the peripheral has sent unasked.
    var subscriptions: [UInt16: (bits: UInt8, sent: Int)] = [:]

    init(to server: Server) { self.server = server }

    var request: AttributeRequest? { requests.first }

    /// Appends a request. Returns whether it is under way at once.
    mutating func append(_ request: AttributeRequest) -> Bool {
        requestCount += 1
        requests.append(request)
        return requests.count == 1
    }

    /// Keeps a value back if a response must come before it. Returns whether it did.
    mutating func holdBack(_ value: CentralValue) -> Bool {
        guard result != nil else { return false }
        following.append(value)
        return true
    }

    /// Removes the request under way with its result and the values that follow it; nil if its result is not known.
    mutating func takeResult() -> (AttributeRequest, AttributeResult, [CentralValue])? {
        guard !requests.isEmpty, let result else { return nil }
        let values = following
        (self.result, following) = (nil, [])
        return (requests.removeFirst(), result, values)
    }
}

/// A request of the attribute protocol, or several that belong together.
struct AttributeRequest: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        case read(offset: Int)
        case write(offset: Int, bytes: [UInt8], type: VirtualWriteType)

        /// Writes the descriptor for subscriptions: 0 for none, 1 for notifications, 2 for indications.
        static func configure(_ bits: UInt8) -> Kind { .write(offset: 0, bytes: [bits, 0], type: .request) }
    }

    var id: UInt64
    /// The handle of the value or the descriptor.
    var handle: UInt16
    var kind: Kind

    /// Whether it gets no response.
    var isCommand: Bool { if case .write(_, _, .command) = kind { true } else { false } }

    /// The number of packets that the central sends; a result of nil means that none comes.
    func packets(mtu: Int, result: AttributeResult?) -> Int {
        if case .bytes(let bytes)? = result, case .read = kind { return bytes.count / (mtu - 1) + 1 }
        return ServerExchange(self, mtu: mtu).queue.count
    }
}

/// One packet of the attribute protocol that goes to a server.
enum ServerPacket: Hashable, Sendable {
    case read(handle: UInt16, offset: Int)
    case write(handle: UInt16, [UInt8])
    case prepare(handle: UInt16, offset: Int, [UInt8])
    case execute(Bool)
}

/// A request of a central to an adapter: one packet after another, as BlueZ's own client sends them (`src/shared/gatt-client.c`).
struct ServerExchange: Hashable, Sendable {
    private let mtu: Int
    /// The packet that is under way, and those that follow if it succeeds.
    private(set) var queue: [ServerPacket]
    private var collected: [UInt8] = []
    /// The error of a part that was refused.
    private var refusal: UInt8?

    init(_ request: AttributeRequest, mtu: Int) {
        self.mtu = mtu
        let handle = request.handle
        switch request.kind {
        case .read(let offset): queue = [.read(handle: handle, offset: offset)]
        case .write(let offset, let bytes, let type):
            queue = [.write(handle: handle, bytes)]
            guard offset > 0 || type == .reliable || bytes.count > mtu - 3 else { return }
            // Prepared in parts of a packet less opcode, handle and offset; then executed.
            let size = mtu - 5
            queue = stride(from: 0, to: max(1, bytes.count), by: size).map { start in
                .prepare(handle: handle, offset: offset + start, Array(bytes.dropFirst(start).prefix(size)))
            }
            queue.append(.execute(true))
        }
    }

    var first: ServerPacket { queue[0] }

    /// Takes the response to a packet. Returns the result of the request; nil if another packet is under way.
    mutating func answered(_ result: AttributeResult) -> AttributeResult? {
        switch (queue.removeFirst(), result) {
        case (.read(let handle, let offset), .bytes(let bytes)):
            collected += bytes
            let end = offset + bytes.count
            guard !bytes.isEmpty, bytes.count >= mtu - 1, end < Limits.valueLength.upperBound else {
                return .bytes(collected)
            }
            queue = [.read(handle: handle, offset: end)]
        case (.prepare, .error(let code)):
            refusal = code
            queue = [.execute(false)]
        case (.execute(false), _): return .error(refusal ?? ATTError.unlikely)
        case (_, .error): return result
        case (_, .bytes): if queue.isEmpty { return .bytes([]) }
        }
        return nil
    }
}

/// What a request returns: bytes, or an error code of the attribute protocol.
enum AttributeResult: Hashable, Sendable {
    case bytes([UInt8])
    case error(UInt8)
}

/// A command of bluetoothd to the link layer.
enum LinkLayerCommand: Hashable, Sendable {
    // An adapter is the central.
    case connect(DeviceKey)
    /// End the link, or the attempt to connect.
    case disconnect(DeviceKey)
    /// Read the services, characteristics and descriptors.
    case discover(DeviceKey)
    case request(DeviceKey, AttributeRequest)

    // An adapter is the server.
    /// What the adapters send from now on; those that are not listed send nothing.
    case announce([HostAnnouncement])
    case hangUp(CentralEnd)
    /// The response to the packet that has come last.
    case respond(CentralEnd, AttributeResult)
    case deliver(CentralEnd, CentralValue)

    // Either.
    /// Encrypt the link, with the keys that there are or with a pairing, for which a program may give the capability.
    case secure(DeviceKey, LinkSecurity, PairingCapability? = nil)
    /// `keepsLink`: the link stays up if the pairing fails with this answer.
    case answer(DeviceKey, PairingProcedure.Answer, keepsLink: Bool = false)
    case cancelPairing(DeviceKey)
    /// Delete the keys of a device, also those that are stored for the next start.
    case forget(DeviceKey, isStored: Bool)
    /// Load the stored keys of the adapter with this address.
    case loadKeys(VirtualAddress)
}

enum LinkLayerEvent: Hashable, Sendable {
    case central(CentralEnd, CentralNews)

    // To an adapter that is the central.
    /// The services, and the name that the peripheral reports once it is connected.
    case discovered(DeviceKey, [AttributeDatabase.Service], name: String?)
    /// The services that an adapter serves, given by its number, are to be read.
    case hostDiscovered(DeviceKey, host: Int)

    // To an adapter that is the server, by it and the central's address.
    case centralCame(DeviceKey, VirtualCentral, CentralEnd)
    case centralLeft(DeviceKey, LinkEndCause)
    case asked(DeviceKey, ServerPacket, isCommand: Bool)

    /// To an adapter that is either.
    case security(DeviceKey, SecurityNews)
}

/// What a central receives: an adapter, or a ``VirtualCentral``.
enum CentralNews: Hashable, Sendable {
    case connected(VirtualLink)
    /// The attempt to connect was refused, has timed out, or was cancelled.
    case failed
    case disconnected(LinkEndCause)
    case response(id: UInt64, AttributeResult)
    case value(CentralValue)
    /// For a virtual central only.
    case security(SecurityNews)
}

/// Why a link has ended, as BlueZ reports it from 5.83 on.
public enum LinkEndCause: String, CaseIterable, Sendable {
    /// BlueZ has no name for the reason.
    case unknown = "Unknown"
    /// Nothing was received within the supervision timeout.
    case timeout = "Timeout"
    /// This computer has ended the link.
    case local = "Local"
    /// The device at the other end has ended the link.
    case remote = "Remote"
    /// A key was missing or refused.
    case authentication = "Authentication"
    /// This computer was about to be suspended.
    case suspend = "Suspend"

    var name: String { "org.bluez.Reason." + rawValue }

    var message: String {
        switch self {
        case .unknown: "Unspecified"
        case .timeout: "Connection timeout"
        case .local: "Connection terminated by local host"
        case .remote: "Connection terminated by remote user"
        case .authentication: "Connection terminated due to authentication failure"
        case .suspend: "Connection terminated by local host for suspend"
        }
    }
}
