import CBlueCapDBus
package import Foundation
import BlueCapFutures
package import BlueCapReactor

/// The address of a bus.
package enum BusAddress: Hashable, Sendable {
    /// The system bus, which BlueZ uses: `DBUS_SYSTEM_BUS_ADDRESS` if it is set, else the socket at its usual path.
    case system
    /// The user's session bus: `DBUS_SESSION_BUS_ADDRESS` if it is set, else the socket in the user's runtime directory.
    case session
    /// Any address in the form of the D-Bus specification, or "loopback:name=…" for a `LoopbackBus` of this process.
    case custom(String)

    /// Whether a text has the form of an address, `method:key=value,…`, of which there may be several, with `;` between them.
    package static func isWellFormed(_ text: String) -> Bool { cdbus_is_address(text) && !text.utf8.contains(0) }

    /// The address's text. An empty variable counts as one that is not set.
    package func resolved(environment: [String: String] = ProcessInfo.processInfo.environment) -> String {
        func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        switch self {
        case .system:
            return value("DBUS_SYSTEM_BUS_ADDRESS") ?? "unix:path=/var/run/dbus/system_bus_socket"
        case .session:
            let directory = value("XDG_RUNTIME_DIR") ?? "/run/user/\(getuid())"
            return value("DBUS_SESSION_BUS_ADDRESS") ?? "unix:path=\(directory)/bus"
        case .custom(let text):
            return text
        }
    }
}

/// A change of a connection's state.
package enum ConnectionState: Hashable, Sendable {
    /// The bus has accepted the connection and given it this name.
    case opened(uniqueName: String)
    /// The connection was refused or has ended. Sent once, as the last state.
    case closed(DBusError)
}

/// The result of org.freedesktop.DBus.RequestName.
package enum NameReply: UInt32, Sendable {
    case primaryOwner = 1
    /// Another connection owns the name; this one is in the queue.
    case inQueue = 2
    /// Another connection owns the name, and the flags exclude the queue.
    case exists = 3
    case alreadyOwner = 4
}

/// The flags of org.freedesktop.DBus.RequestName.
package struct NameFlags: OptionSet, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    package static let allowReplacement = NameFlags(rawValue: 1)
    package static let replaceExisting = NameFlags(rawValue: 2)
    package static let doNotQueue = NameFlags(rawValue: 4)
}

/// A connection to a message bus: calls, signals, names, and the objects that this side exports.
///
/// One implementation for all buses, over a socket or a `LoopbackBus`. Every method may be called on any thread, never
/// blocks, and takes effect on the loop, in the order of the calls. Every completion and handler runs on the loop, never
/// inside the call that received it. Messages are handled in the order of the wire: a reply and a signal in the order in
/// which the bus has sent them.
///
/// A connection that has ended is not reopened: create another one. Releasing the last reference closes it.
package final class Connection: Sendable {
    package typealias Completion = @Sendable (Result<Message, DBusError>) -> Void

    /// The default time-out of a call, which is libdbus's.
    package static let defaultTimeout: TimeInterval = 25

    package let loop: any EventLoop
    private let core: ConnectionCore

    private init(core: ConnectionCore) {
        self.core = core
        loop = core.loop
    }

    deinit {
        close()
    }

    /// Starts to connect; calls wait until the bus has accepted the connection.
    ///
    /// - Parameters:
    ///   - loop: The loop on which everything runs; nil for a new thread. A loopback bus has its own loop.
    ///   - stateChanged: Called on the loop with `.opened` at most once, then with `.closed` exactly once.
    package static func open(
        _ address: BusAddress, loop: (any EventLoop)? = nil,
        stateChanged: @escaping @Sendable (ConnectionState) -> Void = { _ in }
    ) -> Connection {
        let text = address.resolved()
        let name = LoopbackBus.name(inAddress: text)
        let bus = name.flatMap(LoopbackBus.named)
        let loop = bus?.loop ?? loop ?? ThreadLoop(name: "dbus")
        let core = ConnectionCore(
            loop: loop,
            transport: name.map { LoopbackTransport(bus: bus, name: $0) } ?? SocketTransport(address: text, loop: loop),
            stateChanged: stateChanged)
        loop.perform { core.start() }
        return Connection(core: core)
    }

    /// The name that the bus has given to this connection; nil before, and after the end. Any thread.
    package var uniqueName: String? { core.uniqueName.withLock { $0 } }

    /// Ends the connection: every pending call fails with `…Error.Disconnected`, once.
    package func close() {
        perform { $0.close(.closed) }
    }

    private func perform(_ work: @escaping @Sendable (ConnectionCore) -> Void) {
        let core = core
        loop.perform { work(core) }
    }

    // MARK: Calls

    /// Calls a method. Exactly one completion follows: the reply, the peer's error, a time-out (`…Error.NoReply`) or the
    /// end of the connection (`…Error.Disconnected`). At most a hundred calls are sent at a time, the rest wait.
    package func call(
        _ message: Message, timeout: TimeInterval = Connection.defaultTimeout, completion: @escaping Completion
    ) {
        // On the loop without a closure, which would be allocated for each call.
        guard !loop.isCurrent else { return core.call(message, timeout: timeout, completion: completion) }
        let core = core
        loop.post { core.call(message, timeout: timeout, completion: completion) }
    }

    /// Sends a message without a reply: a signal, a reply, or a call, which is sent with the flag that it expects no reply.
    package func send(_ message: Message) {
        guard !loop.isCurrent else { return core.send(message) }
        perform { $0.send(message) }
    }

    /// Runs the work when the bus has received everything that was sent before: for senders that produce more than a bus
    /// can carry. The work does not run if the connection ends before.
    package func whenDrained(_ work: @escaping @Sendable () -> Void) {
        perform { $0.whenDrained(work) }
    }

    // MARK: Signals

    /// Delivers the signals that the rule selects, until the result is cancelled or released. If it is cancelled on the
    /// loop, the handler does not run afterwards.
    ///
    /// Each distinct rule is added to the bus once, for all its subscribers. Signals that were sent before the bus has read
    /// the rule are not delivered. The replies to calls after the subscription come after that.
    /// - Parameter accepted: Called with the result of adding the rule, of which the bus allows a limited number.
    package func subscribe(
        _ rule: MatchRule, accepted: (@Sendable (Result<Void, DBusError>) -> Void)? = nil,
        handler: @escaping @Sendable (Message) -> Void
    ) -> CancelHandle {
        let entry = SubscriptionEntry(rule, handler: handler)
        perform { $0.signals.add(entry, on: $0, accepted: accepted) }
        return CancelHandle(loop: loop) { [weak core] in core.map { $0.signals.remove(entry, on: $0) } }
    }

    /// Calls the handler with the owner of a name, soon and at every change, in the order of the wire, until the result is
    /// cancelled or released. Nil means that there is no owner. A direct change from one owner to another is one call.
    package func watchName(_ name: String, handler: @escaping @Sendable (_ owner: String?) -> Void) -> CancelHandle {
        let watch = NameWatch(name: name, handler: handler)
        perform { $0.signals.add(watch, on: $0) }
        return CancelHandle(loop: loop) { [weak core] in core.map { $0.signals.remove(watch, on: $0) } }
    }

    /// Calls the handler on the loop after each group of messages that arrived together, at most some hundreds, and after
    /// calls have timed out or failed: the moment to wake other threads once for all of them. Until the connection ends.
    package func onBatchEnd(_ handler: @escaping @Sendable () -> Void) {
        perform { $0.batchHandlers.append(handler) }
    }

    // MARK: Names

    /// Requests a name from the bus.
    package func requestName(
        _ name: String, flags: NameFlags = .doNotQueue,
        completion: @escaping @Sendable (Result<NameReply, DBusError>) -> Void = { _ in }
    ) {
        requireName(name)
        let message = Message.toBus("RequestName") { writer in
            writer.string(name)
            writer.uint32(flags.rawValue)
        }
        call(message) { result in
            completion(
                result.flatMap { reply in
                    var reader = reply.reader
                    return reader.uint32().flatMap(NameReply.init).map { .success($0) }
                        ?? .failure(.failed("The bus has answered RequestName with \(reply)."))
                })
        }
    }

    /// Releases a name; it is no error if this connection does not own it.
    package func releaseName(
        _ name: String, completion: @escaping @Sendable (Result<Void, DBusError>) -> Void = { _ in }
    ) {
        requireName(name)
        call(.toBus("ReleaseName") { $0.string(name) }) { completion($0.map { _ in }) }
    }

    private func requireName(_ name: String) {
        precondition(isValid(name, Syntax.isBusName), "\"\(name)\" is not a bus name, such as org.bluez.")
    }

    // MARK: Objects

    /// Accepts calls of this object from now on; replaces an earlier object at its path. Sends no signal: the owner of the
    /// objects decides when to announce them.
    package func export(_ object: ExportedObject) {
        perform { $0.export(object) }
    }

    /// Stops accepting calls of the object at this path.
    package func unexport(_ path: ObjectPath) {
        perform { $0.objects.remove(path) }
    }

    /// Passes every received call to this handler, on the loop, instead of exported objects. The handler must reply with
    /// `send(.reply(to:…))` or `send(.error(to:…))`, unless the call expects no reply.
    package func answerCalls(with handler: @escaping @Sendable (Message) -> Void) {
        perform { $0.callHandler = handler }
    }
}
