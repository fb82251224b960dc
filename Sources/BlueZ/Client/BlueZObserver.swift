import Futures

package import Foundation

/// Somebody who follows `bluetoothd` through a ``BlueZClient``. Everything is called on the client's loop.
///
/// What an observer is told, in this order, whenever it is added:
/// - while the daemon's objects are not known, ``availabilityChanged(_:in:)`` with how far the client is;
/// - once they are known, ``treeChanged(_:in:)`` for each adapter and device, then `.ready`, then ``batchEnded()``.
///
/// When the daemon goes, each device and adapter is reported as removed, then `.noDaemon` or `.noBus` comes.
package protocol BlueZObserver: AnyObject, Sendable {
    func availabilityChanged(_ availability: Availability, in client: BlueZClient)

    /// One change. The values are those after the whole message; a removed device can be read here for the last time.
    func treeChanged(_ change: Change, in tree: borrowing ObjectTree)

    /// All messages that had arrived together are worked off: the moment to wake up users.
    func batchEnded()

    /// Somebody in this process reads a characteristic. BlueZ signals what is read as it signals what is notified.
    func readBegan(_ key: AttributeKey)

    /// That read was answered, or has failed; told before whoever reads is. What was read is signalled before this comes.
    func readEnded(_ key: AttributeKey, offset: Int, reply: Data?)
}

extension BlueZObserver {
    package func readBegan(_ key: AttributeKey) {}
    package func readEnded(_ key: AttributeKey, offset: Int, reply: Data?) {}
}

/// The observer's bond with the client; it ends with this value.
///
/// The client keeps the observer alive until then, and the bond keeps the client alive: whoever owns an observer owns its
/// observation, and drops it when nobody needs the observer any more.
package final class Observation: Sendable {
    package let client: BlueZClient
    private let id: UInt64
    private let isOver = Locked(false)

    init(client: BlueZClient, id: UInt64) {
        self.client = client
        self.id = id
    }

    deinit { cancel() }

    /// Nothing is reported after this returns on the loop; on another thread, after what the loop is doing now. The last
    /// observation of a client that ends takes its discovery sessions and its connection with it. Any thread; a second
    /// call does nothing.
    package func cancel() {
        // Told once: the client keeps the number of an observer that it does not know until that one comes.
        let wasOver = isOver.withLock { isOver in
            defer { isOver = true }
            return isOver
        }
        if !wasOver { client.removeObserver(id) }
    }
}
