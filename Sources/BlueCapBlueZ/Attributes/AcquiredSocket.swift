import BlueCapDBus
package import Foundation
import BlueCapFutures
import BlueCapGATT
import Glibc
import BlueCapReactor

/// A socket of `AcquireNotify` or `AcquireWrite`: packets past the bus, one for each value.
///
/// Everything here is on the client's loop. Releasing it is allowed on any thread and closes the socket, which ends the
/// subscription, or the right to write. Unchecked because of that confinement.
package final class AcquiredSocket: @unchecked Sendable {
    /// A value that waits for space in the socket.
    private struct Unsent {
        let value: Data
        let completion: BlueZCompletion<Void>
    }

    /// The MTU that BlueZ has named, in bytes.
    package let mtu: Int
    private let loop: any EventLoop
    private let descriptor: OwnedDescriptor
    private var watch: Watch?
    private var buffer: PacketBuffer?
    private var values = PacketValues()
    private var onPackets: @Sendable ([Data]) -> Void = { _ in }
    private var onClosed: @Sendable () -> Void = {}
    private var flood = FloodDetector()
    private var unsent = Ring<Unsent>()
    /// Completions that one post to the loop will call together.
    private var completed: [(BlueZCompletion<Void>, Result<Void, BlueZError>)] = []

    /// The limit for one wake-up, so that one socket with many packets does not delay the rest of the loop.
    private static let mostPacketsPerWake = 512

    init(_ descriptor: OwnedDescriptor, mtu: Int, loop: any EventLoop) {
        self.descriptor = descriptor
        self.mtu = mtu
        self.loop = loop
    }

    deinit {
        guard let watch else { return }
        loop.perform { [descriptor] in
            watch.cancel()
            descriptor.close()
        }
    }

    private func requireLoop() {
        assert(loop.isCurrent, "An acquired socket belongs to the client's loop: wrap this in client.loop.post { … }.")
    }

    // MARK: Reading

    /// Begins to read; earlier packets wait in the socket until then. To be called once, also for a socket to write with,
    /// because it reports the end of the socket.
    ///
    /// - Parameters:
    ///   - onPackets: Receives values in their order, those of one system call together.
    ///   - onClosed: Called once when the other end has closed the socket (the link is down), after all that it had sent.
    ///     Not called after ``close()``.
    package func start(
        onPackets: @escaping @Sendable ([Data]) -> Void = { _ in }, onClosed: @escaping @Sendable () -> Void
    ) {
        requireLoop()
        guard let number = descriptor.rawValue else { return loop.post(onClosed) }
        self.onPackets = onPackets
        self.onClosed = onClosed
        buffer = PacketBuffer(packetSize: max(mtu, AttributeProtocol.longestValue))
        watch(number).update(unsent.isEmpty ? .readable : [.readable, .writable])
    }

    /// Reports now what has arrived, also the end. Bus and sockets are read independently of each other; this restores the order
    /// before something is done for a message of the bus that `bluetoothd` has sent later.
    func catchUp() {
        requireLoop()
        if buffer != nil { readAll(.readable) }
    }

    private func watch(_ number: Int32) -> Watch {
        if let watch { return watch }
        let watch = loop.watch(number, for: []) { [weak self] in self?.ready($0) }
        self.watch = watch
        return watch
    }

    private func ready(_ events: IOEvents) {
        if events.contains(.writable) { sendWaiting() }
        if buffer != nil {
            if !events.isDisjoint(with: [.readable, .hangup, .error]) { readAll(events) }
        } else if !events.isDisjoint(with: [.hangup, .error]) {
            end()
        }
    }

    private func readAll(_ events: IOEvents) {
        var isHungUp = !events.isDisjoint(with: [.hangup, .error])
        var isAtEnd = false
        var received = 0
        // A receiver may cause another call of this method, which then uses memory of its own.
        var values = PacketValues()
        swap(&values, &self.values)
        // A receiver may also close the socket.
        reading: while received < Self.mostPacketsPerWake, let buffer, let number = descriptor.rawValue {
            values.removeAll()
            switch buffer.receive(number, { values.append($0) }) {
            case .packets(let count, let filled, let isFull):
                received += count
                // A packet without bytes is an empty value or the end of the socket, which only its state distinguishes.
                var packets = values.all
                if filled < count {
                    isHungUp = isHungUp || BlueCapReactor.isHungUp(number)
                    if isHungUp {
                        packets.removeAll(where: \.isEmpty)
                        isAtEnd = filled == 0
                    }
                }
                if !packets.isEmpty { onPackets(packets) }
                if isAtEnd || (!isFull && !isHungUp) { break reading }
            case .nothing:
                isAtEnd = isHungUp
                break reading
            case .failed(ECONNRESET):
                // Reported once, for packets that were sent; received packets can still be read.
                isHungUp = true
            case .failed:
                isAtEnd = true
                break reading
            }
        }
        if self.buffer != nil { self.values = values }
        if isAtEnd { return end() }
        flood.received(received)
        if flood.batchEnded(at: loop.now) { loop.restBeforeWait() }
    }
}

/// The values of the packets that one system call has received.
///
/// A value that the program has not kept is overwritten by a later packet of the same length, so that no memory is allocated. A value
/// that it has kept does not change, because `Data` with another reference is copied before it is changed.
private struct PacketValues {
    /// Never more than the packets of one system call.
    private var slots: [Data] = []
    private var count = 0

    var all: [Data] { count == slots.count ? slots : Array(slots.prefix(count)) }

    mutating func removeAll() { count = 0 }

    mutating func append(_ packet: UnsafeRawBufferPointer) {
        if count < slots.count, slots[count].count == packet.count {
            slots[count].withUnsafeMutableBytes { $0.copyMemory(from: packet) }
        } else {
            let value = packet.baseAddress.map { Data(bytes: $0, count: packet.count) } ?? Data()
            if count < slots.count { slots[count] = value } else { slots.append(value) }
        }
        count += 1
    }
}

// MARK: - Writing

extension AcquiredSocket {
    /// Writes a value, at most MTU - 3 bytes: of a longer one BlueZ says nothing and sends nothing.
    ///
    /// - Parameter completion: Called once, never before this returns: when BlueZ has taken the value, which it does as fast as
    ///   the link carries, or with ``BlueZError/socketClosed`` when the socket is closed before. In the order of the writes.
    package func send(_ value: Data, completion: @escaping BlueZCompletion<Void>) {
        requireLoop()
        guard let number = descriptor.rawValue else { return complete(completion, .failure(.socketClosed)) }
        let value = Unsent(value: value, completion: completion)
        guard !unsent.isEmpty || !write(value, to: number) else { return }
        unsent.append(value)
        let watch = watch(number)
        watch.update(watch.events.union(.writable))
    }

    private func sendWaiting() {
        guard let number = descriptor.rawValue else { return }
        while let value = unsent.first {
            guard write(value, to: number) else { return }
            unsent.popFirst()
        }
        if let watch { watch.update(watch.events.subtracting(.writable)) }
    }

    /// Writes a value, or fails; returns false if the socket has no space for it.
    private func write(_ unsent: Unsent, to number: Int32) -> Bool {
        switch unsent.value.withUnsafeBytes({ sendPacket($0, to: number) }) {
        case nil: complete(unsent.completion, .success(()))
        case EAGAIN?: return false
        case EPIPE?, ECONNRESET?: complete(unsent.completion, .failure(.socketClosed))
        case let error?: complete(unsent.completion, .failure(.notSent(error)))
        }
        return true
    }

    /// Calls completions in their order, never inside a call of the writer.
    private func complete(_ completion: @escaping BlueZCompletion<Void>, _ result: Result<Void, BlueZError>) {
        completed.append((completion, result))
        guard completed.count == 1 else { return }
        loop.post { [self] in
            let completed = completed
            self.completed = []
            for (completion, result) in completed { completion(result) }
        }
    }
}

extension AcquiredSocket {
    /// Whether the other end has not read all that was written.
    var hasUnreadPackets: Bool {
        guard let number = descriptor.rawValue else { return false }
        return !unsent.isEmpty || unreadBytes(number) > 0
    }
}

// MARK: - Ending

extension AcquiredSocket {
    /// Closes the socket. Writes that wait fail with ``BlueZError/socketClosed``; no other callback follows. A second call
    /// does nothing.
    package func close() {
        requireLoop()
        finish()
    }

    /// The other end has closed it.
    private func end() {
        guard descriptor.rawValue != nil else { return }
        let onClosed = onClosed
        finish()
        onClosed()
    }

    private func finish() {
        guard descriptor.rawValue != nil else { return }
        watch?.cancel()
        watch = nil
        descriptor.close()
        buffer = nil
        values = PacketValues()
        onPackets = { _ in }
        onClosed = {}
        while let value = unsent.popFirst() { complete(value.completion, .failure(.socketClosed)) }
    }
}

extension BlueZError {
    /// One end of an acquired socket is closed. The link may be up nevertheless.
    package static let socketClosed = BlueZError(
        name: DBusError.Name.inputOutput, message: "The socket that BlueZ had given is closed.")

    fileprivate static func notSent(_ error: Int32) -> BlueZError {
        BlueZError(name: DBusError.Name.inputOutput, message: "\(String(cString: strerror(error))).")
    }
}
