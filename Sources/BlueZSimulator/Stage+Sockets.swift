import BlueCapDBus
import Foundation
import BlueCapFutures
import Glibc
import BlueCapReactor

/// The daemon's end of a socket that it shares with a client.
struct PeerSocket: Sendable {
    let descriptor: OwnedDescriptor
    let watch: Watch
    /// Packets that the socket buffer cannot hold yet. BlueZ drops them; the simulator sends them later.
    var waiting = Ring<[UInt8]>()
    /// Whether it is to be closed when all packets are sent.
    var isClosing = false
}

extension Stage {
    /// Makes a pair of sockets, and replies to the call with one of them.
    func openSocket(_ id: SocketID, call: CallID, mtu: Int) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else {
            decide { $0.daemon.socketClosed(id) }
            return perform(.fail(call, .failed("Too many open files")))
        }
        let theirs = OwnedDescriptor(owning: ends[1])
        adopt(OwnedDescriptor(owning: ends[0]), as: id)
        answerCall(call) { call in
            .reply(to: call) { writer in
                writer.descriptor(theirs.rawValue ?? -1)
                writer.uint16(UInt16(mtu))
            }
        }
    }

    /// Takes the daemon's end of a socket.
    func adopt(_ owned: OwnedDescriptor, as id: SocketID) {
        guard let descriptor = owned.rawValue else { return }
        let watch = loop.watch(descriptor, for: .readable) { [weak self] events in self?.socketReady(id, events) }
        wire.withLock { $0.sockets[id] = PeerSocket(descriptor: owned, watch: watch) }
    }

    func transmit(_ bytes: [UInt8], to id: SocketID) {
        wire.withLock { wire in
            wire.sockets[id]?.waiting.append(bytes)
            if wire.sockets[id]?.waiting.count == 1 { wire.sockets[id]?.flush() }
        }
    }

    func closeSocket(_ id: SocketID) {
        let socket = wire.withLock { wire -> PeerSocket? in
            guard wire.sockets[id]?.waiting.isEmpty == true else {
                wire.sockets[id]?.isClosing = true
                return nil
            }
            return wire.sockets.removeValue(forKey: id)
        }
        socket?.watch.cancel()
        socketsMoved()
    }

    /// The socket is writable again, or packets have come, or the other end is closed.
    private func socketReady(_ id: SocketID, _ events: IOEvents) {
        guard let socket = wire.withLock({ $0.sockets[id] }), let descriptor = socket.descriptor.rawValue else {
            return
        }
        if events.contains(.writable) {
            wire.withLock { $0.sockets[id]?.flush() }
            if socket.isClosing { return closeSocket(id) }
            socketsMoved()
        }
        guard !events.isDisjoint(with: [.readable, .hangup, .error]) else { return }
        var packets: [[UInt8]] = []
        let outcome = packetBuffer.receive(descriptor) { packets.append(Array($0)) }
        // At the end of the stream every packet is empty.
        if case .packets(_, let filled, _) = outcome, filled > 0 || !isHungUp(descriptor) {
            return decide { $0.daemon.packetsCame(packets, from: id) }
        }
        guard outcome != .nothing else { return }
        wire.withLock { $0.sockets[id]?.waiting.removeAll() }
        closeSocket(id)
        decide { $0.daemon.socketClosed(id) }
    }

    /// Calls back when no packet waits to be sent on any socket.
    func whenSocketsDrained(_ work: @escaping @Sendable () -> Void) {
        wire.withLock { $0.socketWaiters.append(work) }
        socketsMoved()
    }

    private func socketsMoved() {
        let waiters = wire.withLock {
            $0.sockets.values.allSatisfy(\.waiting.isEmpty) ? exchange(&$0.socketWaiters, with: []) : []
        }
        for waiter in waiters { loop.post(waiter) }
    }
}

extension PeerSocket {
    /// Sends what the socket buffer holds, and watches the socket if packets are left.
    fileprivate mutating func flush() {
        guard let descriptor = descriptor.rawValue else { return waiting.removeAll() }
        while let first = waiting.first {
            switch first.withUnsafeBytes({ sendPacket($0, to: descriptor) }) {
            case nil: waiting.popFirst()
            case EAGAIN?: return watch.update([.readable, .writable])
            // The other end is closed; `socketReady` handles that.
            default: waiting.removeAll()
            }
        }
        watch.update(.readable)
    }
}
