import DBus
import Foundation
import Futures
import GATT
import Glibc
import Reactor

extension CharacteristicRecord {
    /// How long a central may take to confirm an indication, in seconds (Core Specification, Vol 3, Part F, 3.3.3).
    private static let confirmTimeout = 30.0

    // MARK: Subscribing

    func startNotifyCalled(_ invocation: Invocation) {
        guard core.isFromDaemon(invocation) else { return invocation.fail(.foreignCaller) }
        guard canSend else { return invocation.fail(.refusal(.requestNotSupported, ofRead: false)) }
        invocation.reply()
        guard !isNotifying else { return }
        isNotifying = true
        core.delegate?.subscribed(to: id, peer: nil)
    }

    func stopNotifyCalled(_ invocation: Invocation) {
        guard core.isFromDaemon(invocation) else { return invocation.fail(.foreignCaller) }
        invocation.reply()
        guard isNotifying else { return }
        isNotifying = false
        subscriptionEnded()
    }

    private func subscriptionEnded() {
        guard !isSubscribed else { return }
        failUnsent(.nobodySubscribed)
        core.delegate?.unsubscribed(from: id)
    }

    func confirmCalled(_ invocation: Invocation) {
        guard core.isFromDaemon(invocation) else { return invocation.fail(.foreignCaller) }
        invocation.reply()
        core.delegate?.confirmed(id)
        if isConfirmed, confirmTimer.isRunning { indicationDone(.success(())) }
    }

    // MARK: Sockets

    func acquireNotifyCalled(_ invocation: Invocation) {
        guard givesNotifySocket else { return invocation.fail(.refusal(.requestNotSupported, ofRead: false)) }
        guard let (socket, peer) = makeSocket(invocation) else { return }
        notifySockets.append(socket)
        socket.start(onClosed: { [weak self, weak socket] in
            guard let self, let socket else { return }
            notifySockets.removeAll { $0 === socket }
            if isSubscribed { core.delegate?.left(id, peer: peer) }
            subscriptionEnded()
        })
        core.delegate?.subscribed(to: id, peer: peer)
    }

    func acquireWriteCalled(_ invocation: Invocation) {
        guard givesWriteSocket else { return invocation.fail(.refusal(.requestNotSupported, ofRead: false)) }
        guard let (socket, peer) = makeSocket(invocation) else { return }
        writeSockets.append(socket)
        socket.start(
            onPackets: { [weak self] packets in
                for packet in packets { self?.packetCame(packet, from: peer) }
            },
            onClosed: { [weak self, weak socket] in
                self?.writeSockets.removeAll { $0 === socket }
            })
    }

    private func packetCame(_ value: Data, from peer: ServerPeer) {
        let request = ServerWriteRequest(attribute: id, peer: peer, value: value, expectsAnswer: false)
        core.delegate?.writeRequested(request, ServerAnswer<Void>(loop: core.client.loop) { _ in })
    }

    /// Answers the call with one end of a pair of sockets; gives the other.
    private func makeSocket(_ invocation: Invocation) -> (AcquiredSocket, ServerPeer)? {
        guard core.isFromDaemon(invocation) else {
            invocation.fail(.foreignCaller)
            return nil
        }
        var reader = invocation.reader
        let peer = ServerOptions(&reader).peer
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else {
            // BlueZ goes on without a socket after any error but `Failed`.
            invocation.fail(.refusal(.insufficientResources, ofRead: false))
            return nil
        }
        let theirs = OwnedDescriptor(owning: ends[1])
        let mtu = peer.mtu ?? 23
        let socket = AcquiredSocket(OwnedDescriptor(owning: ends[0]), mtu: mtu, loop: core.client.loop)
        invocation.reply { writer in
            writer.descriptor(theirs.rawValue ?? -1)
            writer.uint16(UInt16(clamping: mtu))
        }
        return (socket, peer)
    }

    // MARK: Sending

    func notify(_ value: Data, completion: @escaping Completion) {
        guard value.count <= WriteAssembly.longestValue else { return fail(completion, .valueTooLong(value.count)) }
        guard isSubscribed else { return fail(completion, .nobodySubscribed) }
        // A packet of nothing is a socket's end to BlueZ, which then reads no more from it (`sock_io_read` of 5.66).
        guard notifySockets.isEmpty || value.isEmpty else { return sendOverSockets(value, completion) }
        guard isConfirmed else { return sendOverBus(value, completion) }
        indications.append((value, completion))
        if indications.count == 1 { sendIndication() }
    }

    private func fail(_ completion: @escaping Completion, _ error: BlueZError) {
        core.client.loop.post { completion(.failure(error)) }
    }

    /// Done when the slowest has it, and well where any has: what one has left behind the others are not to get twice.
    private func sendOverSockets(_ value: Data, _ completion: @escaping Completion) {
        let sockets = notifySockets
        guard sockets.count > 1 else { return sockets[0].send(value, completion: completion) }
        let tally = Locked((open: sockets.count, isTaken: false))
        for socket in sockets {
            socket.send(value) { result in
                let isTaken = tally.withLock { tally -> Bool? in
                    tally.open -= 1
                    if case .success = result { tally.isTaken = true }
                    return tally.open == 0 ? tally.isTaken : nil
                }
                if let isTaken { completion(isTaken ? .success(()) : result) }
            }
        }
    }

    private func sendOverBus(_ value: Data, _ completion: @escaping Completion) {
        let number = core.client.makeID()
        unsent[number] = completion
        emit(value)
        // A bus that takes values slower than they are made must be waited for.
        core.connection?.whenDrained { [weak self] in
            self?.unsent.removeValue(forKey: number)?(.success(()))
        }
    }

    /// Each value is one signal, also one that equals the last.
    private func emit(_ value: Data) {
        self.value = value
        core.connection?.send(
            .propertiesChanged(path, ServerTables.characteristic.bound(to: self), ["Value"]))
    }

    private func sendIndication() {
        guard let first = indications.first else { return }
        emit(first.value)
        confirmTimer.start(after: Self.confirmTimeout) { [weak self] in
            self?.indicationDone(.failure(.notConfirmed))
        }
    }

    private func indicationDone(_ result: Result<Void, BlueZError>) {
        confirmTimer.cancel()
        guard !indications.isEmpty else { return }
        guard case .success = result else {
            // Those behind it, too: whoever sends it again wants them after it.
            let failed = indications
            indications = []
            return failed.forEach { $0.completion(result) }
        }
        let (_, completion) = indications.removeFirst()
        sendIndication()
        completion(result)
    }

    // MARK: Ending

    private func failUnsent(_ error: BlueZError) {
        confirmTimer.cancel()
        let failed = unsent.sorted { $0.key < $1.key }.map(\.value) + indications.map(\.completion)
        unsent = [:]
        indications = []
        for completion in failed { fail(completion, error) }
    }

    /// The registration is over, and with it all subscriptions.
    func close() {
        forget()
        let wasSubscribed = isSubscribed
        isNotifying = false
        for socket in notifySockets + writeSockets { socket.close() }
        notifySockets = []
        writeSockets = []
        failUnsent(.nobodySubscribed)
        guard wasSubscribed, let delegate = core.delegate else { return }
        // Not inside what the machine has ordered: the delegate may have new wishes.
        core.client.loop.post { [id] in delegate.unsubscribed(from: id) }
    }
}

extension BlueZError {
    static let nobodySubscribed = BlueZError(
        name: "org.bluez.Error.NotConnected", message: "No central has subscribed to the characteristic.")
    fileprivate static let notConfirmed = BlueZError(
        name: "org.freedesktop.DBus.Error.NoReply", message: "No central has confirmed the indication in time.")

    fileprivate static func valueTooLong(_ count: Int) -> BlueZError {
        BlueZError(
            name: "org.bluez.Error.InvalidArguments",
            message: "A value has at most \(WriteAssembly.longestValue) bytes, and this one \(count).")
    }
}
