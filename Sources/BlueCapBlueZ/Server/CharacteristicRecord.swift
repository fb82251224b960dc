import BlueCapDBus
import BlueCapFutures
import Foundation
import BlueCapGATT
import Glibc
import BlueCapReactor

final class CharacteristicRecord: ValueRecord, @unchecked Sendable {
    let characteristic: ServerCharacteristic
    /// What was sent to all last.
    var value: Data?
    var table = SubscriberTable()
    /// What the delegate was called with last.
    var reported: [ServerSubscriber] = []
    /// For what ``table`` settles after a time.
    let settlingTimer: LoopTimer
    /// One for all centrals, or, since 5.69, one for each.
    var notifySockets: [SubscriberTable.SocketNumber: AcquiredSocket] = [:]
    var writeSockets: [AcquiredSocket] = []
    private(set) lazy var sender = UpdateSender(self)

    init(
        _ characteristic: ServerCharacteristic, path: ObjectPath, parent: ObjectPath, of application: ServerApplication
    ) {
        self.characteristic = characteristic
        settlingTimer = LoopTimer(on: application.client.loop)
        super.init(
            characteristic.id, characteristic.uuid, characteristic.flags, path: path, parent: parent, of: application)
    }

    /// Whether a value that is sent to all reaches a central, as far as BlueZ reports it.
    var isSubscribed: Bool { !reported.isEmpty }
    var givesNotifySocket: Bool { characteristic.givesNotifySocket && canSend }
    var givesWriteSocket: Bool {
        characteristic.givesWriteSocket && flags.contains(.writeWithoutResponse)
    }
    var canSend: Bool { flags.canBeSubscribedTo }
    /// Whether BlueZ reports for every value that a central has received it.
    var isConfirmed: Bool { flags.indicates && !flags.notifies }
}

extension CharacteristicRecord {
    // MARK: Subscribing

    func startNotifyCalled(_ invocation: Invocation) {
        guard canSend else { return invocation.fail(.refusal(.requestNotSupported, ofRead: false)) }
        invocation.reply()
        change { $0.startNotify() }
    }

    func stopNotifyCalled(_ invocation: Invocation) {
        invocation.reply()
        change { $0.stopNotify() }
    }

    func confirmCalled(_ invocation: Invocation) {
        invocation.reply()
        sender.confirmed()
    }

    func linkChanged(of device: ObjectKey, isConnected: Bool, isBonded: Bool) {
        let now = application.client.loop.now
        guard !isConnected else { return change { $0.linkBegan(device, at: now) } }
        // Its socket ends with the link. One that `bluetoothd` does not know any more would stay open.
        let ended = application.capabilities.opensSocketPerCentral ? table.socket(of: device) : nil
        let socket = ended.flatMap { notifySockets.removeValue(forKey: $0) }
        socket?.close()
        change { table in
            table.linkEnded(device, isBonded: isBonded, at: now)
            if let ended { table.socketEnded(ended, isBonded: isBonded, at: now) }
        }
        if let socket { sender.confirmed(over: socket) }
    }

    /// Reports what has changed, and starts the timer for what is settled after a time.
    private func change(_ event: (inout SubscriberTable) -> Void) {
        event(&table)
        let now = application.client.loop.now
        if let deadline = table.deadline {
            settlingTimer.start(after: deadline.seconds(since: now)) { [weak self] in
                self.map { record in record.change { $0.timePassed(record.application.client.loop.now) } }
            }
        } else {
            settlingTimer.cancel()
        }
        report()
    }

    /// Calls the delegate if the subscribers, or the ways to reach them, have changed.
    func report() {
        let isDirected = application.capabilities.directedUpdates
        let subscribers = table.subscribers.map {
            isDirected ? $0 : ServerSubscriber(peer: $0.peer, directWay: .unsupported)
        }
        let before = reported
        reported = subscribers
        if subscribers.isEmpty { sender.reset() } else { sender.subscribersChanged() }
        guard subscribers != before else { return }
        application.delegate?.subscribersChanged(of: id, to: subscribers)
    }

    // MARK: Sockets

    func acquireNotifyCalled(_ invocation: Invocation) {
        guard givesNotifySocket else { return invocation.fail(.refusal(.requestNotSupported, ofRead: false)) }
        // BlueZ has closed the sockets of earlier subscriptions before.
        for (_, socket) in notifySockets.ordered(by: { $0.key < $1.key }) { socket.catchUp() }
        let peer = ServerOptions(invocation).peer
        guard !hasSocket(peer) else { return invocation.fail(.secondSocket) }
        guard let socket = makeSocket(invocation, for: peer) else { return }
        let number = application.client.makeID()
        notifySockets[number] = socket
        socket.start(
            onPackets: { [weak self, weak socket] packets in
                // From 5.80 on, a byte for each confirmation of an indication that was written to the socket.
                guard let self, let socket else { return }
                for _ in packets { sender.confirmed(over: socket) }
            },
            onClosed: { [weak self, weak socket] in
                guard let self, let socket else { return }
                notifySockets[number] = nil
                socketEnded(number)
                sender.confirmed(over: socket)
            })
        change { $0.acquired(number, by: peer) }
    }

    /// Whether `bluetoothd` has asked for a socket before it has read that there is one, since the central wrote its 0x2902 twice.
    /// It would not use the second one.
    private func hasSocket(_ peer: ServerPeer) -> Bool {
        guard application.capabilities.opensSocketPerCentral, let device = peer.device else { return false }
        return table.socket(of: device) != nil
    }

    private func socketEnded(_ number: SubscriberTable.SocketNumber) {
        guard application.capabilities.notificationSockets != .shared else { return change { $0.sharedSocketEnded() } }
        // BlueZ keeps what a bonded central has subscribed to when its link ends (`device_is_bonded`).
        let isBonded = table.peer(of: number)?.device.flatMap { daemon.objects[$0]?.keepsKeys } ?? false
        let now = application.client.loop.now
        change { $0.socketEnded(number, isBonded: isBonded, at: now) }
    }

    func acquireWriteCalled(_ invocation: Invocation) {
        guard givesWriteSocket else { return invocation.fail(.refusal(.requestNotSupported, ofRead: false)) }
        let peer = ServerOptions(invocation).peer
        guard let socket = makeSocket(invocation, for: peer) else { return }
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
        let request = ServerRequest(attribute: id, peer: peer, value: value, expectsAnswer: false)
        application.delegate?.requested(request, ServerAnswer(loop: application.client.loop) { _ in })
    }

    /// Replies with one end of a pair of sockets; returns the other.
    private func makeSocket(_ invocation: Invocation, for peer: ServerPeer) -> AcquiredSocket? {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else {
            // BlueZ goes on without a socket after any error but `Failed`.
            invocation.fail(.refusal(.insufficientResources, ofRead: false))
            return nil
        }
        let theirs = OwnedDescriptor(owning: ends[1])
        let mtu = peer.mtu ?? 23
        let socket = AcquiredSocket(OwnedDescriptor(owning: ends[0]), mtu: mtu, loop: application.client.loop)
        invocation.reply { writer in
            writer.descriptor(theirs.rawValue ?? -1)
            writer.uint16(UInt16(clamping: mtu))
        }
        return socket
    }

    // MARK: Sending

    /// Each value is one signal, also one that equals the last.
    func emit(_ value: Data) {
        self.value = value
        application.connection?.send(
            .propertiesChanged(path, ServerTables.characteristic.bound(to: self), ["Value"]))
    }

    /// The open socket of a central, if what is written to it goes to that central alone.
    func socket(of device: ObjectKey) -> AcquiredSocket? {
        guard application.capabilities.directedUpdates else { return nil }
        return table.socket(of: device).flatMap { notifySockets[$0] }
    }

    /// Whether `bluetoothd` has not read all that was written to the sockets.
    var hasUnreadPackets: Bool { notifySockets.values.contains { $0.hasUnreadPackets } }

    /// Closes the sockets that `bluetoothd` does not read although it replies to calls.
    func closeUnreadSockets() {
        for (number, socket) in notifySockets.ordered(by: { $0.key < $1.key }) where socket.hasUnreadPackets {
            notifySockets[number] = nil
            socket.close()
            change { $0.socketIsDead(number) }
        }
    }

    // MARK: Ending

    /// The registration is over, and with it all subscriptions.
    func close() {
        forget()
        let wasSubscribed = isSubscribed
        table = SubscriberTable()
        settlingTimer.cancel()
        for socket in Array(notifySockets.values) + writeSockets { socket.close() }
        notifySockets = [:]
        writeSockets = []
        sender.reset()
        reported = []
        guard wasSubscribed, let delegate = application.delegate else { return }
        // Not inside what the machine has ordered: the delegate may have new requests.
        application.client.loop.post { [id] in delegate.subscribersChanged(of: id, to: []) }
    }
}

extension DBusError {
    /// After this one BlueZ does nothing more; after any other one it calls `StartNotify`.
    fileprivate static let secondSocket = DBusError(
        name: "org.bluez.Error.Failed", message: "The central has a socket.")
}
