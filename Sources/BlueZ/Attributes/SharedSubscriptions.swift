import DBus
package import Foundation
import Reactor

/// The subscriptions of this process to the characteristics of peers. BlueZ counts its subscribers by connections to the bus,
/// so this process is one subscriber, however many of its managers subscribe, and BlueZ gives it one socket for each
/// characteristic. BlueZ receives the end when the last manager unsubscribes.
///
/// On the loop only, and unchecked because of that.
package final class SharedSubscriptions: @unchecked Sendable {
    /// How a characteristic's values come to this process.
    package enum Transport { case signals, socket }

    /// A share in a characteristic's notification socket.
    package final class SocketShare: @unchecked Sendable {
        fileprivate let request: SocketRequest
        private let key: AttributeKey
        private weak var subscriptions: SharedSubscriptions?

        fileprivate init(of key: AttributeKey, in subscriptions: SharedSubscriptions, _ request: SocketRequest) {
            self.key = key
            self.subscriptions = subscriptions
            self.request = request
        }

        /// Ends the share: its callbacks are not called any more. The last one closes the socket. A second call does nothing.
        package func close() { subscriptions?.remove(self, of: key) }
    }

    /// A manager's request for a share in a socket.
    fileprivate struct SocketRequest {
        let subscriber: ObjectIdentifier
        let onPackets: @Sendable ([Data]) -> Void
        let onClosed: @Sendable () -> Void
        let completion: @Sendable (Result<SocketShare, BlueZError>) -> Void
    }

    private enum Socket {
        /// `AcquireNotify` is under way, under that number.
        case acquiring(UInt64, [SocketRequest])
        case open(AcquiredSocket, [SocketShare])
    }

    /// A `StartNotify` under way, with the completions that wait for its reply.
    private final class Start: @unchecked Sendable {
        var waiting: [(subscriber: ObjectIdentifier, completion: @Sendable (Result<Void, BlueZError>) -> Void)] = []
    }

    private let daemon: DaemonLink
    private var subscribers: [AttributeKey: Set<ObjectIdentifier>] = [:]
    private var starts: [AttributeKey: Start] = [:]
    private var sockets: [AttributeKey: Socket] = [:]

    init(_ daemon: DaemonLink) { self.daemon = daemon }

    /// How this process is subscribed to a characteristic already; `nil` if it is not.
    package func transport(of key: AttributeKey) -> Transport? {
        if sockets[key] != nil { return .socket }
        return subscribers[key] == nil ? nil : .signals
    }

    // MARK: Signals

    /// Turns notifications on, or indications if there are no notifications. Values are changes of the tree from then on.
    ///
    /// - Parameter subscriber: Counts once, however often it starts.
    package func startNotify(
        _ key: AttributeKey, for subscriber: AnyObject? = nil, timeout: Double = DaemonLink.attributeTimeout,
        completion: @escaping @Sendable (Result<Void, BlueZError>) -> Void
    ) {
        daemon.requireLoop()
        let subscriber = ObjectIdentifier(subscriber ?? self)
        subscribers[key, default: []].insert(subscriber)
        // BlueZ 5.66 replies `InProgress` to a second call before it has replied to the first.
        if let start = starts[key] { return start.waiting.append((subscriber, completion)) }
        let start = Start()
        start.waiting = [(subscriber, completion)]
        starts[key] = start
        // For a second subscriber too: BlueZ replies when notifications are on, and writes nothing to the peer again.
        daemon.call(key, "StartNotify", timeout: timeout) { [self] result in
            if starts[key] === start { starts[key] = nil }
            for (subscriber, completion) in start.waiting {
                if case .failure = result { remove(subscriber, of: key) }
                completion(result.done)
            }
        }
    }

    /// Unsubscribes; turns notifications off if no other subscriber in this process remains. Possible without a link too:
    /// BlueZ does not turn them on again at the next one then.
    package func stopNotify(
        _ key: AttributeKey, for subscriber: AnyObject? = nil, timeout: Double = DaemonLink.attributeTimeout,
        completion: @escaping @Sendable (Result<Void, BlueZError>) -> Void
    ) {
        daemon.requireLoop()
        remove(ObjectIdentifier(subscriber ?? self), of: key)
        guard subscribers[key] == nil else { return daemon.loop.post { completion(.success(())) } }
        // The next subscriber needs a call after this one.
        starts[key] = nil
        daemon.call(key, "StopNotify", timeout: timeout) { completion($0.done) }
    }

    private func remove(_ subscriber: ObjectIdentifier, of key: AttributeKey) {
        subscribers[key]?.remove(subscriber)
        if subscribers[key]?.isEmpty == true { subscribers[key] = nil }
    }

    // MARK: Sockets

    /// Turns notifications on; they come by a socket, past the bus: one socket for all subscribers in this process.
    ///
    /// - Parameters:
    ///   - subscriber: ``stopNotify(_:for:timeout:completion:)`` unsubscribes it; closing the share does not.
    ///   - onPackets: Receives values in their order, all of a wake-up together; not before `completion`.
    ///   - onClosed: Called once when BlueZ has closed the socket; not after the share was closed.
    ///   - completion: Called exactly once, never before this returns; with `notConnected` if the link falls before.
    package func shareNotify(
        _ key: AttributeKey, for subscriber: AnyObject, onPackets: @escaping @Sendable ([Data]) -> Void,
        onClosed: @escaping @Sendable () -> Void,
        completion: @escaping @Sendable (Result<SocketShare, BlueZError>) -> Void
    ) {
        daemon.requireLoop()
        let request = SocketRequest(
            subscriber: ObjectIdentifier(subscriber), onPackets: onPackets, onClosed: onClosed, completion: completion)
        subscribers[key, default: []].insert(request.subscriber)
        switch sockets[key] {
        case .acquiring(let number, let requests):
            sockets[key] = .acquiring(number, requests + [request])
        case .open(let socket, let shares):
            let share = SocketShare(of: key, in: self, request)
            sockets[key] = .open(socket, shares + [share])
            daemon.loop.post { completion(.success(share)) }
        case nil:
            let number = daemon.makeID()
            sockets[key] = .acquiring(number, [request])
            daemon.acquireNotify(key) { self.acquired(key, number, $0) }
        }
    }

    private func acquired(_ key: AttributeKey, _ number: UInt64, _ result: Result<AcquiredSocket, BlueZError>) {
        guard case .acquiring(number, let requests) = sockets[key] else {
            // The link it was for is gone.
            if case .success(let socket) = result { socket.close() }
            return
        }
        switch result {
        case .failure(let error):
            sockets[key] = nil
            fail(requests, of: key, error)
        case .success(let socket):
            let shares = requests.map { SocketShare(of: key, in: self, $0) }
            sockets[key] = .open(socket, shares)
            for share in shares { share.request.completion(.success(share)) }
            // Unless all shares are closed already.
            guard !self.shares(of: key).isEmpty else { return }
            socket.start { [weak self] packets in
                for share in self?.shares(of: key) ?? [] { share.request.onPackets(packets) }
            } onClosed: { [weak self] in
                guard let self else { return }
                let shares = self.shares(of: key)
                sockets[key] = nil
                for share in shares { share.request.onClosed() }
            }
        }
    }

    private func shares(of key: AttributeKey) -> [SocketShare] {
        if case .open(_, let shares)? = sockets[key] { shares } else { [] }
    }

    private func fail(_ requests: [SocketRequest], of key: AttributeKey, _ error: BlueZError) {
        for request in requests {
            remove(request.subscriber, of: key)
            request.completion(.failure(error))
        }
    }

    private func remove(_ share: SocketShare, of key: AttributeKey) {
        daemon.requireLoop()
        guard case .open(let socket, let shares)? = sockets[key], shares.contains(where: { $0 === share }) else {
            return
        }
        let others = shares.filter { $0 !== share }
        sockets[key] = others.isEmpty ? nil : .open(socket, others)
        if others.isEmpty { socket.close() }
    }

    // MARK: Changes

    /// With an object BlueZ forgets its subscribers. A request for a socket does not outlive the link: BlueZ may never reply,
    /// and the next link requests again.
    func follow(_ change: Change) {
        if case .attributeRemoved(let key, _) = change { subscribers[key] = nil }
        guard !sockets.isEmpty, let handle = daemon.objects.disconnected(by: change) else { return }
        let device = daemon.objects.key(of: handle)
        for key in sockets.keys.filter({ $0.device == device }).sorted(by: { $0.handle < $1.handle }) {
            guard case .acquiring(_, let requests)? = sockets[key] else { continue }
            sockets[key] = nil
            // Not inside a report.
            daemon.loop.post { self.fail(requests, of: key, .linkGone) }
        }
    }
}

extension BlueZError {
    fileprivate static let linkGone = BlueZError(name: "org.bluez.Error.NotConnected", message: "Not connected")
}
