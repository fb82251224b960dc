import DBus
import Reactor

/// Subscriptions. BlueZ counts its subscribers by connections to the bus, so all who subscribe in this process
/// are one to it: it is told of the end when the last of them leaves.
extension BlueZClient {
    /// Turns notifications on, or indications where there are no notifications. Values are changes of the tree from then on.
    ///
    /// - Parameter holder: Who subscribes. Each counts once, however often it starts.
    package func startNotify(
        _ key: AttributeKey, for holder: AnyObject? = nil, timeout: Double = BlueZClient.attributeTimeout,
        completion: @escaping @Sendable (Result<Void, BlueZError>) -> Void
    ) {
        requireLoop()
        let wish = NotifyStart.Wish(holder: ObjectIdentifier(holder ?? self), completion: completion)
        notifyHolders[key, default: []].insert(wish.holder)
        // BlueZ 5.66 says `InProgress` to who asks while it is about it.
        if let start = notifyStarts[key] { return start.wishes.append(wish) }
        let start = NotifyStart(wish)
        notifyStarts[key] = start
        // For a second subscriber too: BlueZ answers when notifications are on, and writes nothing to the peer again.
        call(key, "StartNotify", timeout: timeout) { result in
            if self.notifyStarts[key] === start { self.notifyStarts[key] = nil }
            for wish in start.wishes {
                if case .failure = result { self.removeHolder(wish.holder, of: key) }
                wish.completion(BlueZClient.done(result))
            }
        }
    }

    /// Turns them off, if nobody else in this process wants them. Possible without a link too, and then BlueZ does not turn
    /// them on again when there is one.
    package func stopNotify(
        _ key: AttributeKey, for holder: AnyObject? = nil, timeout: Double = BlueZClient.attributeTimeout,
        completion: @escaping @Sendable (Result<Void, BlueZError>) -> Void
    ) {
        requireLoop()
        removeHolder(ObjectIdentifier(holder ?? self), of: key)
        guard notifyHolders[key] == nil else { return loop.post { completion(.success(())) } }
        // Who asks from now on needs a call behind this one.
        notifyStarts[key] = nil
        call(key, "StopNotify", timeout: timeout) { completion(BlueZClient.done($0)) }
    }

    func removeHolder(_ holder: ObjectIdentifier, of key: AttributeKey) {
        notifyHolders[key]?.remove(holder)
        if notifyHolders[key]?.isEmpty == true { notifyHolders[key] = nil }
    }

    /// With an object BlueZ forgets who had subscribed to it.
    func followAttributes(_ change: Change) {
        guard !notifyHolders.isEmpty, case .attributeRemoved(let key, _) = change else { return }
        notifyHolders[key] = nil
    }
}

/// A `StartNotify` under way, and who waits for its answer. On the client's loop only; unchecked because of that confinement.
final class NotifyStart: @unchecked Sendable {
    struct Wish {
        let holder: ObjectIdentifier
        let completion: @Sendable (Result<Void, BlueZError>) -> Void
    }

    var wishes: [Wish]

    init(_ wish: Wish) { wishes = [wish] }
}
