package import Foundation
import BlueCapFutures
package import BlueCapGATT
import BlueCapReactor

/// The central that sent a request, as far as BlueZ reports it.
package struct ServerPeer: Hashable, Sendable {
    /// The central's object in the tree.
    package var device: ObjectKey?
    package var address: BluetoothAddress? { device?.address }
    /// The MTU of its link, in bytes.
    package var mtu: Int?
}

/// A central reads or writes a characteristic or a descriptor. A long read is one request, however many packets it takes.
package struct ServerRequest: Hashable, Sendable {
    package let attribute: ServerAttributeID
    package let peer: ServerPeer
    /// At which byte of the value the request begins: other than 0 only if the central reads or writes an end of it without
    /// its beginning. The reply to a read is the whole value nevertheless.
    package var offset = 0
    /// What the central writes; `nil` in a read.
    package var value: Data?
    /// Whether the reply reaches the central. Otherwise one is allowed, and has no effect: for a write without response, and
    /// for every write to a characteristic that takes both kinds, which 5.66 accepts before it calls us.
    package var expectsAnswer = true
}

/// The reply to a request of a central: given once, at any time and on any thread.
///
/// Without a reply within ``limit``, or when the `ServerAnswer` is released, the request is refused with
/// `.unlikelyError`, so that each central receives a reply. Later replies do nothing. The time is short because
/// `bluetoothd` waits for five seconds and then refuses, and because 5.66 crashes five seconds after a request if the
/// central has left before the reply (seen in the radio lab); a central would wait for thirty (Core Specification, Vol
/// 3, Part F, 3.3.3).
package final class ServerAnswer: Sendable {
    /// How long a request may remain unanswered, in seconds.
    package static let limit = 4.0

    private struct Open {
        let settle: @Sendable (Result<Data, CBATTError>) -> Void
        var timer: TimerID?
        var whenReplied: @Sendable (Result<Data, CBATTError>) -> Void = { _ in }
    }

    private let open: Locked<Open?>
    private let loop: any EventLoop

    /// On the loop.
    init(loop: any EventLoop, settle: @escaping @Sendable (Result<Data, CBATTError>) -> Void) {
        self.loop = loop
        open = Locked(Open(settle: settle))
        let timer = loop.schedule(after: Self.limit) { [weak self] in self?.refuse(.unlikelyError) }
        open.withLock { $0?.timer = timer }
    }

    deinit { refuse(.unlikelyError) }

    /// Whether there was no reply yet.
    package var isOpen: Bool { open.withLock { $0 != nil } }

    /// Calls `work` at the reply, on the thread that replies, or on the loop if the time passes without a reply.
    package func whenReplied(_ work: @escaping @Sendable (Result<Data, CBATTError>) -> Void) {
        open.withLock { $0?.whenReplied = work }
    }

    /// - Parameter value: What the central reads; nothing for a write. Of more than 512 bytes, which no attribute has, the
    ///   central receives none: the request is refused with `invalidAttributeValueLength`.
    /// - Returns: Whether this was the reply; `false` if there was one before.
    @discardableResult
    package func succeed(_ value: Data = Data()) -> Bool {
        guard value.count <= AttributeProtocol.longestValue else { return refuse(.invalidAttributeValueLength) }
        return reply(.success(value))
    }

    /// - Parameter code: What the central receives. BlueZ can express 0x80 to 0x9F, `readNotPermitted` for reads,
    ///   `writeNotPermitted` for writes, `requestNotSupported`, `invalidOffset`, `insufficientAuthorization`,
    ///   `invalidAttributeValueLength` and 0xFE; everything else reaches the central as `unlikelyError`.
    @discardableResult
    package func refuse(_ code: CBATTError.Code) -> Bool { reply(.failure(CBATTError(code))) }

    private func reply(_ result: Result<Data, CBATTError>) -> Bool {
        guard let open = open.withLock({ $0.take() }) else { return false }
        if let timer = open.timer { loop.cancel(timer) }
        open.whenReplied(result)
        loop.perform { open.settle(result) }
        return true
    }
}

/// Handles the requests to an application's attributes. Everything is called on the client's loop.
package protocol ServerDelegate: AnyObject, Sendable {
    /// A central reads, or writes; parts of a long value have been put together. The reply to a read is the whole value, at
    /// most 512 bytes, of which the central receives the part that it asked for.
    func requested(_ request: ServerRequest, _ answer: ServerAnswer)

    /// A central begins a long write to an attribute with the flag `authorize`: nothing is written yet.
    func writeAuthorizationRequested(_ request: ServerRequest, _ answer: ServerAnswer)

    /// The centrals that are subscribed to the characteristic have changed, as far as BlueZ reports it: see
    /// ``SubscriberTable``. With none left, or with the registration lost, the list is empty, and no update is under
    /// way any more.
    func subscribersChanged(of characteristic: ServerAttributeID, to subscribers: [ServerSubscriber])
}
