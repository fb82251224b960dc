package import Foundation
package import Futures
package import Reactor

/// What has become of a connection.
package enum ConnectionState: Hashable, Sendable {
    /// The bus has let us in, under this name.
    case opened(uniqueName: String)
    /// There was no way in, or the connection ended. Once, and nothing follows.
    case closed(DBusError)
}

/// A connection to a message bus: calls, signals, names, and the objects that this side exports.
///
/// One implementation for all buses; a socket or a `LoopbackBus` is below it. Every method may be called on any thread,
/// never blocks, and takes effect on the loop, in the order of the calls; every completion and handler runs on the loop,
/// never inside the call that it was given to. What the bus sends is handled in the order of the wire: an answer and a
/// signal come in the order in which the bus has sent them.
///
/// A connection that ends is not reopened: make another. Releasing the last reference closes it.
package final class Connection: Sendable {
    package typealias Completion = @Sendable (Result<Message, DBusError>) -> Void

    /// How long an answer may take where the caller does not say: libdbus's own default.
    package static let defaultTimeout: TimeInterval = 25

    package let loop: any EventLoop
    let core: ConnectionCore

    private init(core: ConnectionCore) {
        self.core = core
        loop = core.loop
    }

    deinit {
        let core = core
        loop.perform { core.close(.closed) }
    }

    /// Begins to connect; calls that are made meanwhile wait.
    ///
    /// - Parameters:
    ///   - loop: Where everything runs; nil for a thread of the connection's own. A loopback bus brings its own loop.
    ///   - stateChanged: Hears `.opened` at most once, then `.closed` exactly once, on the loop.
    package static func open(
        _ address: BusAddress, loop: (any EventLoop)? = nil,
        stateChanged: @escaping @Sendable (ConnectionState) -> Void = { _ in }
    ) -> Connection {
        let text = address.resolved()
        let core: ConnectionCore
        if let name = LoopbackBus.name(inAddress: text) {
            let bus = LoopbackBus.named(name)
            core = ConnectionCore(
                loop: bus?.loop ?? loop ?? ThreadLoop(name: "dbus"), transport: LoopbackTransport(bus: bus, name: name),
                stateChanged: stateChanged)
        } else {
            let loop = loop ?? ThreadLoop(name: "dbus")
            core = ConnectionCore(
                loop: loop, transport: SocketTransport(address: text, loop: loop), stateChanged: stateChanged)
        }
        core.loop.perform { core.start() }
        return Connection(core: core)
    }

    /// The name that the bus has given us; nil before, and after the end. Any thread.
    package var uniqueName: String? { core.uniqueName.withLock { $0 } }

    /// Ends the connection: every unanswered call fails with `…Error.Disconnected`, once.
    package func close() {
        let core = core
        loop.perform { core.close(.closed) }
    }

    // MARK: Calls

    /// Calls a method. Exactly one completion follows: the reply, the peer's error, a time-out (`…Error.NoReply`) or the
    /// end of the connection (`…Error.Disconnected`). At most a hundred calls are under way at once, the rest wait.
    package func call(
        _ message: Message, timeout: TimeInterval = Connection.defaultTimeout, completion: @escaping Completion
    ) {
        let core = core
        loop.perform { core.call(message, timeout: timeout, completion: completion) }
    }

    /// Calls a method and gives its result as a future, which fails with a `DBusError`, or with what `decode` throws. The
    /// reply is decoded on the loop.
    package func call<T: Sendable>(
        _ message: Message, timeout: TimeInterval = Connection.defaultTimeout,
        decode: @escaping @Sendable (inout MessageReader) throws -> T
    ) -> Future<T> {
        let promise = Promise<T>()
        call(message, timeout: timeout) { result in
            promise.complete(
                Try {
                    var reader = try result.get().reader
                    return try decode(&reader)
                })
        }
        return promise.future
    }

    /// Sends a message that has no answer: a signal, a reply, or a call whose answer nobody wants.
    package func send(_ message: Message) {
        let core = core
        loop.perform { core.send(message) }
    }

    /// Runs the work once everything that was sent before is with the bus: for senders that produce more than a bus can
    /// carry. It does not run on a connection that ends before.
    package func whenDrained(_ work: @escaping @Sendable () -> Void) {
        let core = core
        loop.perform { core.whenDrained(work) }
    }

    // MARK: Signals

    /// Delivers the signals that the rule asks for, until the subscription is cancelled or released.
    ///
    /// The bus is asked once for each distinct rule, however many subscribe with it. Signals sent before the bus has read
    /// the rule do not come; whatever is called after subscribing is answered after that.
    /// `accepted` says whether the bus took the rule (it allows a limited number).
    package func subscribe(
        _ rule: MatchRule, accepted: (@Sendable (Result<Void, DBusError>) -> Void)? = nil,
        handler: @escaping @Sendable (Message) -> Void
    ) -> Subscription {
        let entry = SubscriptionEntry(rule, handler: handler)
        let core = core
        loop.perform { core.subscribe(entry, accepted: accepted) }
        return Subscription(loop: loop) { [weak core] in core?.unsubscribe(entry) }
    }

    /// Tells who owns a name: once soon, then at every change, in the order of the wire, until cancelled or released. Nil
    /// is nobody. A change from one owner to another directly is one call.
    package func watchName(_ name: String, handler: @escaping @Sendable (_ owner: String?) -> Void) -> Subscription {
        let watch = NameWatch(name: name, handler: handler)
        let core = core
        loop.perform { core.watch(watch) }
        return Subscription(loop: loop) { [weak core] in core?.unwatch(watch) }
    }

    /// Calls the handler on the loop after each group of messages that came together, at most some hundreds, and after
    /// calls have timed out or failed: the moment to wake others once for all of it. For the connection's life.
    package func onBatchEnd(_ handler: @escaping @Sendable () -> Void) {
        let core = core
        loop.perform { core.batchHandlers.append(handler) }
    }
}

/// Something that goes on until it is cancelled: by hand, or by releasing this.
package final class Subscription: Sendable {
    private let loop: any EventLoop
    private let end: Locked<(@Sendable () -> Void)?>

    init(loop: any EventLoop, end: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.end = Locked(end)
    }

    deinit {
        cancel()
    }

    /// Ends it; called on the loop, the handler does not run after this. A second call does nothing.
    package func cancel() {
        let end = end.withLock { end in
            defer { end = nil }
            return end
        }
        if let end { loop.perform(end) }
    }
}
