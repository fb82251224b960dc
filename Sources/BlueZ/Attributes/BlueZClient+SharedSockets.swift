import DBus
package import Foundation
import Reactor

/// A part in a characteristic's notification socket, which all who want it in this process have together: BlueZ gives out
/// one. On the client's loop only; unchecked because of that confinement.
package final class SocketShare: @unchecked Sendable {
    fileprivate let onPackets: @Sendable ([Data]) -> Void
    fileprivate let onClosed: @Sendable () -> Void
    private let key: AttributeKey
    private weak var client: BlueZClient?

    fileprivate init(of key: AttributeKey, in client: BlueZClient, _ wish: SharedSocket.Wish) {
        self.key = key
        self.client = client
        onPackets = wish.onPackets
        onClosed = wish.onClosed
    }

    /// Nothing is told any more. The last one closes the socket. A second call does nothing.
    package func close() { client?.leave(self, of: key) }
}

/// What has become of a characteristic's notification socket.
enum SharedSocket {
    struct Wish {
        let holder: ObjectIdentifier
        let onPackets: @Sendable ([Data]) -> Void
        let onClosed: @Sendable () -> Void
        let completion: @Sendable (Result<SocketShare, BlueZError>) -> Void
    }

    /// BlueZ has been asked, under that number.
    case acquiring(UInt64, [Wish])
    case open(AcquiredSocket, [SocketShare])
}

extension BlueZClient {
    /// How somebody in this process is subscribed to a characteristic already; `nil` where nobody is.
    package enum NotifyWay { case signals, socket }

    package func notifyWay(of key: AttributeKey) -> NotifyWay? {
        if notifySockets[key] != nil { return .socket }
        return notifyHolders[key] == nil ? nil : .signals
    }

    /// Turns notifications on and has them come by a socket, past the bus: one socket for all in this process.
    ///
    /// - Parameters:
    ///   - holder: Who subscribes; ``stopNotify(_:for:timeout:completion:)`` takes it back, closing the share does not.
    ///   - onPackets: Told of values in their order, all of a wake together; not before `completion`.
    ///   - onClosed: Told once when BlueZ has closed the socket; not after the share was closed.
    ///   - completion: Exactly once, never before this returns; `notConnected` where the link falls before.
    package func shareNotify(
        _ key: AttributeKey, for holder: AnyObject, onPackets: @escaping @Sendable ([Data]) -> Void,
        onClosed: @escaping @Sendable () -> Void,
        completion: @escaping @Sendable (Result<SocketShare, BlueZError>) -> Void
    ) {
        requireLoop()
        let wish = SharedSocket.Wish(
            holder: ObjectIdentifier(holder), onPackets: onPackets, onClosed: onClosed, completion: completion)
        notifyHolders[key, default: []].insert(wish.holder)
        switch notifySockets[key] {
        case .acquiring(let number, let wishes):
            notifySockets[key] = .acquiring(number, wishes + [wish])
        case .open(let socket, let shares):
            let share = SocketShare(of: key, in: self, wish)
            notifySockets[key] = .open(socket, shares + [share])
            loop.post { completion(.success(share)) }
        case nil:
            let number = makeID()
            notifySockets[key] = .acquiring(number, [wish])
            acquireNotify(key) { self.acquired(key, number, $0) }
        }
    }

    private func acquired(_ key: AttributeKey, _ number: UInt64, _ result: Result<AcquiredSocket, BlueZError>) {
        guard case .acquiring(number, let wishes) = notifySockets[key] else {
            // The link it was for is gone.
            if case .success(let socket) = result { socket.close() }
            return
        }
        switch result {
        case .failure(let error):
            notifySockets[key] = nil
            fail(wishes, of: key, error)
        case .success(let socket):
            let shares = wishes.map { SocketShare(of: key, in: self, $0) }
            notifySockets[key] = .open(socket, shares)
            for (wish, share) in zip(wishes, shares) { wish.completion(.success(share)) }
            // Unless all have left already.
            guard !members(of: key).isEmpty else { return }
            socket.start { [weak self] packets in
                for share in self?.members(of: key) ?? [] { share.onPackets(packets) }
            } onClosed: { [weak self] in
                guard let self else { return }
                let shares = members(of: key)
                notifySockets[key] = nil
                for share in shares { share.onClosed() }
            }
        }
    }

    private func members(of key: AttributeKey) -> [SocketShare] {
        if case .open(_, let shares)? = notifySockets[key] { shares } else { [] }
    }

    private func fail(_ wishes: [SharedSocket.Wish], of key: AttributeKey, _ error: BlueZError) {
        for wish in wishes {
            removeHolder(wish.holder, of: key)
            wish.completion(.failure(error))
        }
    }

    fileprivate func leave(_ share: SocketShare, of key: AttributeKey) {
        requireLoop()
        guard case .open(let socket, let shares)? = notifySockets[key], shares.contains(where: { $0 === share })
        else { return }
        let others = shares.filter { $0 !== share }
        notifySockets[key] = others.isEmpty ? nil : .open(socket, others)
        if others.isEmpty { socket.close() }
    }

    /// What was asked for over a link does not outlive it: BlueZ may never answer, and the next link asks anew.
    func followSockets(_ change: Change) {
        guard !notifySockets.isEmpty else { return }
        let device: ObjectKey?
        switch change {
        case .deviceChanged(let handle, let fields, _):
            guard fields.contains(.isConnected), !objects[handle].isConnected else { return }
            device = objects.key(of: handle)
        case .deviceRemoved(let handle): device = objects.key(of: handle)
        case .deviceAdded, .adapterAdded, .adapterChanged, .adapterRemoved, .attributeAdded, .attributeChanged,
            .attributeRemoved:
            return
        }
        for key in notifySockets.keys.filter({ $0.device == device }).sorted(by: { $0.handle < $1.handle }) {
            guard case .acquiring(_, let wishes)? = notifySockets[key] else { continue }
            notifySockets[key] = nil
            // Not inside a report.
            loop.post { self.fail(wishes, of: key, .linkGone) }
        }
    }
}

extension BlueZError {
    fileprivate static let linkGone = BlueZError(name: "org.bluez.Error.NotConnected", message: "Not connected")
}
