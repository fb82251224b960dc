import DBus
package import Foundation
package import Reactor

/// The subscriptions of this process to the characteristics of peers. BlueZ counts its subscribers by connections to the bus,
/// so this process is one subscriber, however many of its managers subscribe, and BlueZ gives it one socket for each
/// characteristic. BlueZ receives the end when the last manager unsubscribes.
///
/// On the loop only, and unchecked because of that.
package final class SharedSubscriptions: @unchecked Sendable {
    /// How a characteristic's values come to this process.
    package enum Transport { case signals, socket }

    private struct Entry {
        var subscribers: Set<ObjectIdentifier> = []
        /// The last call of `StartNotify`, until its reply.
        var start: Start?
        var socket: SharedSocket?
    }

    /// A `StartNotify` under way, with the completions that wait for its reply.
    private final class Start: @unchecked Sendable {
        var waiting: [(subscriber: ObjectIdentifier, completion: BlueZCompletion<Void>)] = []
    }

    /// A notification socket, and the managers that share it.
    private final class SharedSocket: @unchecked Sendable {
        /// `nil` while `AcquireNotify` is under way.
        var acquired: AcquiredSocket?
        var shares: [Share] = []
    }

    private struct Share {
        let id: UInt64
        let subscriber: ObjectIdentifier
        let onPackets: @Sendable ([Data]) -> Void
        let onClosed: @Sendable () -> Void
        let completion: BlueZCompletion<CancelHandle>
    }

    private let daemon: DaemonLink
    private var entries: [AttributeKey: Entry] = [:]

    init(_ daemon: DaemonLink) { self.daemon = daemon }

    /// How this process is subscribed to a characteristic already; `nil` if it is not.
    package func transport(of key: AttributeKey) -> Transport? {
        guard let entry = entries[key] else { return nil }
        if entry.socket != nil { return .socket }
        return entry.subscribers.isEmpty ? nil : .signals
    }

    private func remove(_ subscriber: ObjectIdentifier, of key: AttributeKey) {
        entries[key]?.subscribers.remove(subscriber)
        removeIfUnused(key)
    }

    private func removeIfUnused(_ key: AttributeKey) {
        guard let entry = entries[key], entry.subscribers.isEmpty else { return }
        if entry.start == nil, entry.socket == nil { entries[key] = nil }
    }

    // MARK: Signals

    /// Turns notifications on, or indications if there are no notifications. Values are changes of the tree from then on.
    ///
    /// - Parameter subscriber: Counts once, however often it starts.
    package func startNotify(
        _ key: AttributeKey, for subscriber: AnyObject, completion: @escaping BlueZCompletion<Void>
    ) {
        daemon.requireLoop()
        let subscriber = ObjectIdentifier(subscriber)
        entries[key, default: Entry()].subscribers.insert(subscriber)
        // BlueZ 5.66 replies `InProgress` to a second call before it has replied to the first.
        if let start = entries[key]?.start { return start.waiting.append((subscriber, completion)) }
        let start = Start()
        start.waiting = [(subscriber, completion)]
        entries[key]?.start = start
        // For a second subscriber too: BlueZ replies when notifications are on, and writes nothing to the peer again.
        daemon.call(key, "StartNotify", timeout: DaemonLink.attributeTimeout) { [self] result in
            if entries[key]?.start === start { entries[key]?.start = nil }
            for (subscriber, completion) in start.waiting {
                if case .failure = result { remove(subscriber, of: key) }
                completion(result.done)
            }
            removeIfUnused(key)
        }
    }

    /// Unsubscribes; turns notifications off if no other subscriber in this process remains. Possible without a link too:
    /// BlueZ does not turn them on again at the next one then.
    package func stopNotify(
        _ key: AttributeKey, for subscriber: AnyObject, completion: @escaping BlueZCompletion<Void>
    ) {
        daemon.requireLoop()
        remove(ObjectIdentifier(subscriber), of: key)
        guard entries[key]?.subscribers.isEmpty ?? true else { return daemon.loop.post { completion(.success(())) } }
        // The next subscriber needs a call after this one.
        entries[key]?.start = nil
        removeIfUnused(key)
        daemon.call(key, "StopNotify", timeout: DaemonLink.attributeTimeout) { completion($0.done) }
    }

    // MARK: Sockets

    /// Turns notifications on; they come by a socket, past the bus: one socket for all subscribers in this process.
    ///
    /// - Parameters:
    ///   - subscriber: ``stopNotify(_:for:completion:)`` unsubscribes it; the end of its share does not.
    ///   - onPackets: Receives values in their order, all of a wake-up together; not before `completion`.
    ///   - onClosed: Called once when BlueZ has closed the socket; not after the share has ended.
    ///   - completion: Called exactly once, never before this returns: with the share, or with `notConnected` if the link
    ///     ends before. The share ends when it is cancelled or released: its callbacks are not called any more, and the last
    ///     share closes the socket.
    package func shareNotify(
        _ key: AttributeKey, for subscriber: AnyObject, onPackets: @escaping @Sendable ([Data]) -> Void,
        onClosed: @escaping @Sendable () -> Void, completion: @escaping BlueZCompletion<CancelHandle>
    ) {
        daemon.requireLoop()
        let share = Share(
            id: daemon.makeID(), subscriber: ObjectIdentifier(subscriber), onPackets: onPackets, onClosed: onClosed,
            completion: completion)
        entries[key, default: Entry()].subscribers.insert(share.subscriber)
        if let socket = entries[key]?.socket {
            socket.shares.append(share)
            guard socket.acquired != nil else { return }
            return daemon.loop.post { completion(.success(self.handle(of: share.id, in: socket, key))) }
        }
        let socket = SharedSocket()
        socket.shares = [share]
        entries[key]?.socket = socket
        daemon.acquireNotify(key) { self.acquired(socket, of: key, $0) }
    }

    private func acquired(_ socket: SharedSocket, of key: AttributeKey, _ result: Result<AcquiredSocket, BlueZError>) {
        guard entries[key]?.socket === socket else {
            // The link for which it was requested has ended.
            if case .success(let acquired) = result { acquired.close() }
            return
        }
        switch result {
        case .failure(let error):
            entries[key]?.socket = nil
            fail(socket.shares, of: key, error)
        case .success(let acquired):
            socket.acquired = acquired
            for share in socket.shares { share.completion(.success(handle(of: share.id, in: socket, key))) }
            // Unless all shares have ended already.
            guard !socket.shares.isEmpty else { return }
            acquired.start { [weak socket] packets in
                for share in socket?.shares ?? [] { share.onPackets(packets) }
            } onClosed: { [weak self, weak socket] in
                guard let self, let socket else { return }
                close(socket, of: key)
                for share in socket.shares { share.onClosed() }
            }
        }
    }

    private func handle(of share: UInt64, in socket: SharedSocket, _ key: AttributeKey) -> CancelHandle {
        CancelHandle(loop: daemon.loop) { [weak self, weak socket] in
            guard let self, let socket, let index = socket.shares.firstIndex(where: { $0.id == share }) else { return }
            socket.shares.remove(at: index)
            guard socket.shares.isEmpty else { return }
            socket.acquired?.close()
            close(socket, of: key)
        }
    }

    private func close(_ socket: SharedSocket, of key: AttributeKey) {
        guard entries[key]?.socket === socket else { return }
        entries[key]?.socket = nil
        removeIfUnused(key)
    }

    private func fail(_ shares: [Share], of key: AttributeKey, _ error: BlueZError) {
        for share in shares {
            remove(share.subscriber, of: key)
            share.completion(.failure(error))
        }
    }

    // MARK: Changes

    /// With an object BlueZ forgets its subscribers. A request for a socket does not outlive the link: BlueZ may never reply,
    /// and the next link requests again.
    func follow(_ change: Change) {
        guard !entries.isEmpty else { return }
        if case .attributeRemoved(let key, _) = change {
            entries[key]?.subscribers = []
            removeIfUnused(key)
        }
        guard let handle = daemon.objects.disconnected(by: change) else { return }
        let device = daemon.objects.key(of: handle)
        for key in entries.keys.filter({ $0.device == device }).sorted(by: { $0.handle < $1.handle }) {
            guard let socket = entries[key]?.socket, socket.acquired == nil else { continue }
            entries[key]?.socket = nil
            // Not inside a report.
            daemon.loop.post { self.fail(socket.shares, of: key, .linkGone) }
        }
    }
}

extension BlueZError {
    fileprivate static let linkGone = BlueZError(name: "org.bluez.Error.NotConnected", message: "Not connected")
}
