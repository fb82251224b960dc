import DBus
import Reactor

/// Subscriptions over signals. BlueZ counts its subscribers by connections to the bus, so all who subscribe in this process
/// are one to it: it is told of the end when the last of them leaves.
extension BlueZClient {
    /// Turns notifications on, or indications where there are no notifications. Values are changes of the tree from then on.
    ///
    /// - Parameter holder: Who subscribes. Each counts once, however often it starts.
    package func startNotify(
        _ key: AttributeKey, for holder: AnyObject? = nil, timeout: Double = BlueZClient.attributeTimeout,
        completion: @escaping @Sendable (Result<Void, BlueZError>) -> Void
    ) {
        let holder = ObjectIdentifier(holder ?? self)
        notifyHolders[key, default: []].insert(holder)
        // For a second subscriber too: BlueZ answers when notifications are on, and writes nothing to the peer again.
        call(key, "StartNotify", timeout: timeout) { result in
            if case .failure = result { self.removeHolder(holder, of: key) }
            completion(BlueZClient.done(result))
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
        call(key, "StopNotify", timeout: timeout) { completion(BlueZClient.done($0)) }
    }

    private func removeHolder(_ holder: ObjectIdentifier, of key: AttributeKey) {
        notifyHolders[key]?.remove(holder)
        if notifyHolders[key]?.isEmpty == true { notifyHolders[key] = nil }
    }

    /// With an object BlueZ forgets who had subscribed to it.
    func followAttributes(_ change: Change) {
        guard !notifyHolders.isEmpty, case .attributeRemoved(let key, _) = change else { return }
        notifyHolders[key] = nil
    }
}
