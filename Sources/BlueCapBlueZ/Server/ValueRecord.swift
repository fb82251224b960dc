import BlueCapDBus
import Foundation
import BlueCapGATT
import BlueCapReactor

/// What a characteristic and a descriptor have in common: values that centrals read and write.
class ValueRecord: AttributeRecord, @unchecked Sendable {
    /// A value that a central reads in several packets, so that all of them are of one value.
    struct Snapshot {
        let value: Data
        var usedAt: Instant
    }

    let flags: GattFlags
    let path: ObjectPath
    let parent: ObjectPath
    var snapshots: [ObjectKey?: Snapshot] = [:]
    var assemblies: [ObjectKey?: WriteAssembly] = [:]
    var assemblyTimers: [ObjectKey?: TimerID] = [:]

    init(
        _ id: ServerAttributeID, _ uuid: CBUUID, _ flags: GattFlags, path: ObjectPath, parent: ObjectPath,
        of application: ServerApplication
    ) {
        self.flags = flags
        self.path = path
        self.parent = parent
        super.init(id, uuid, of: application)
    }
}

extension ValueRecord {
    /// How long the rest of a long read is of the same value as its beginning, in seconds.
    private static let snapshotLife = 10.0

    // MARK: Reading

    func readCalled(_ invocation: Invocation) {
        // An attribute that may be neither read nor written has no permissions in 5.66, which then allows both.
        guard flags.allowsReading else { return invocation.fail(.refusal(.readNotPermitted, ofRead: true)) }
        let options = ServerOptions(invocation)
        if let value = snapshot(options) { return reply(value, options, invocation) }
        give(nil, at: options.offset, options, invocation)
    }

    private func snapshot(_ options: ServerOptions) -> Data? {
        let now = application.client.loop.now
        guard options.offset > 0, let snapshot = snapshots[options.peer.device],
            now.seconds(since: snapshot.usedAt) < Self.snapshotLife
        else {
            snapshots[options.peer.device] = nil
            return nil
        }
        return snapshot.value
    }

    /// BlueZ sends the reply as the packet for that offset, and cuts it to the packet's size.
    private func reply(_ value: Data, _ options: ServerOptions, _ invocation: Invocation) {
        guard options.offset <= value.count else {
            snapshots[options.peer.device] = nil
            return invocation.fail(.refusal(.invalidOffset, ofRead: true))
        }
        let rest = value.dropFirst(options.offset)
        let isLong = rest.count >= (options.peer.mtu ?? 23) - 1
        snapshots[options.peer.device] =
            isLong ? Snapshot(value: value, usedAt: application.client.loop.now) : nil
        invocation.reply { $0.bytes(rest) }
    }

    // MARK: Writing

    func writeCalled(_ invocation: Invocation) {
        guard flags.allowsWriting else { return invocation.fail(.refusal(.writeNotPermitted, ofRead: false)) }
        var reader = invocation.reader
        guard let value = reader.data() else {
            return invocation.fail(.refusal(.invalidPdu, ofRead: false))
        }
        let options = ServerOptions(&reader)
        if options.asksForAuthorization {
            return give(value, at: options.offset, options, invocation) { $0.writeAuthorizationRequested($1, $2) }
        }
        let key = options.peer.device
        if assemblies[key]?.isContinued(at: options.offset) == false { giveCollected(key, options) }
        cancelAssemblyTimer(key)
        switch assemblies[key, default: WriteAssembly()].written(value, at: options.offset, mtu: options.peer.mtu) {
        case .give(let offset, let value):
            give(value, at: offset, options, invocation)
        case .collect:
            assemblyTimers[key] = application.client.loop.schedule(after: WriteAssembly.pause) { [weak self] in
                self?.giveCollected(key, options)
            }
            invocation.reply()
        case .refuse(let code):
            invocation.fail(.refusal(code, ofRead: false))
        }
    }

    /// Gives a request to the delegate, and replies to BlueZ when the delegate does.
    /// - Parameter value: What the central writes; `nil` in a read.
    private func give(
        _ value: Data?, at offset: Int, _ options: ServerOptions, _ invocation: Invocation?,
        _ ask: (any ServerDelegate, ServerRequest, ServerAnswer) -> Void = { $0.requested($1, $2) }
    ) {
        let isRead = value == nil
        guard let delegate = application.delegate else {
            invocation?.fail(.refusal(.unlikelyError, ofRead: isRead))
            return
        }
        let request = ServerRequest(
            attribute: id, peer: options.peer, offset: offset, value: value,
            expectsAnswer: invocation.map { !$0.message.expectsNoReply } ?? false)
        let answer = ServerAnswer(loop: application.client.loop) { result in
            switch result {
            case .success(let value):
                if isRead, let invocation { self.reply(value, options, invocation) } else { invocation?.reply() }
            case .failure(let error): invocation?.fail(.refusal(error.code, ofRead: isRead))
            }
        }
        ask(delegate, request, answer)
    }

    private func giveCollected(_ key: ObjectKey?, _ options: ServerOptions) {
        cancelAssemblyTimer(key)
        guard let (offset, value) = assemblies[key]?.collected() else { return }
        give(value, at: offset, options, nil)
    }

    private func cancelAssemblyTimer(_ key: ObjectKey?) {
        if let timer = assemblyTimers.removeValue(forKey: key) { application.client.loop.cancel(timer) }
    }

    /// The attribute is not there any more.
    func forget() {
        for key in Array(assemblyTimers.keys) { cancelAssemblyTimer(key) }
        assemblies = [:]
        snapshots = [:]
    }
}

/// The `a{sv}` that comes with the calls of an application's attributes (`append_options` in `src/gatt-database.c`).
struct ServerOptions {
    var peer = ServerPeer()
    var offset = 0
    /// Whether a long write is only asked for.
    var asksForAuthorization = false

    init(_ invocation: Invocation) {
        var reader = invocation.reader
        self.init(&reader)
    }

    init(_ reader: inout MessageReader) {
        reader.dictionary { entry in
            guard let key = entry.string() else { return }
            _ = entry.variant { take(key, &$0) }
        }
    }

    private mutating func take(_ key: String, _ value: inout MessageReader) {
        switch key {
        case "device":
            guard var path = value.objectPath()?.rawValue else { return }
            peer.device = path.withUTF8 { ObjectKey(path: $0) }
        case "mtu": peer.mtu = value.uint16().map(Int.init)
        case "offset": offset = Int(value.uint16() ?? 0)
        case "prepare-authorize": asksForAuthorization = value.bool() ?? false
        default: break
        }
    }
}

/// Assembles the parts of a long write, so that the application receives it as one value.
///
/// `bluetoothd` 5.66 does so itself while the parts touch each other; older ones hand them in one by one, each with its
/// offset, and the next one only after the last was answered. They do not mark the last part: it is one that does not
/// fill its packet, or a full one that nothing follows within ``pause`` seconds.
struct WriteAssembly {
    static let pause = 0.05

    /// What becomes of a write.
    enum Step: Hashable {
        /// Give it to the application, which decides the reply.
        case give(offset: Int, Data)
        /// Grant it: more may come. Give what is `collected` when the pause is over.
        case collect
        case refuse(CBATTError.Code)
    }

    /// What the same central wrote before: perhaps the beginning of what follows.
    private var offset = 0
    private var bytes = Data()
    /// Whether it waits to be given.
    private(set) var isCollecting = false

    /// - Parameter mtu: Of the central's link. A part of a long write carries at most that less 5 (prepare write request).
    mutating func written(_ value: Data, at offset: Int, mtu: Int?) -> Step {
        guard offset + value.count <= AttributeProtocol.longestValue else {
            return .refuse(.invalidAttributeValueLength)
        }
        if isContinued(at: offset) {
            bytes += value
        } else {
            self.offset = offset
            bytes = value
        }
        let isFull = value.count == (mtu ?? 23) - 5
        isCollecting = offset > 0 && isFull
        return isCollecting ? .collect : .give(offset: self.offset, bytes)
    }

    /// Whether a part at this offset belongs to what came before.
    func isContinued(at offset: Int) -> Bool { offset > 0 && offset == self.offset + bytes.count && !bytes.isEmpty }

    /// Nothing came any more.
    mutating func collected() -> (offset: Int, value: Data)? {
        guard isCollecting else { return nil }
        isCollecting = false
        return (offset, bytes)
    }
}

extension DBusError {
    /// The error from which BlueZ makes this code (`dbus_error_to_att_ecode` in `src/gatt-database.c` of 5.66; 0xFD
    /// since 5.76). A name that it does not know becomes 0x0E, "unlikely error".
    static func refusal(_ code: CBATTError.Code, ofRead isRead: Bool) -> DBusError {
        func bluez(_ name: String, _ message: String) -> DBusError {
            DBusError(name: "org.bluez.Error." + name, message: message)
        }
        switch code {
        case _ where code.isApplicationError:
            return bluez("Failed", "0x" + String(code.rawValue, radix: 16))
        case .readNotPermitted where isRead, .writeNotPermitted where !isRead:
            return bluez("NotPermitted", "\(code)")
        case .requestNotSupported: return bluez("NotSupported", "\(code)")
        case .invalidOffset: return bluez("InvalidOffset", "\(code)")
        case .insufficientAuthorization: return bluez("NotAuthorized", "\(code)")
        case .invalidAttributeValueLength: return bluez("InvalidValueLength", "\(code)")
        case _ where code.rawValue == 0xFE: return bluez("InProgress", "\(code)")
        case _ where code.rawValue == 0xFD: return bluez("ImproperlyConfigured", "\(code)")
        default: return bluez("UnlikelyError", "\(code)")
        }
    }
}
