import CBlueCapDBus
import BlueCapReactor
import Glibc

/// The memory of received messages, which each of them retains.
///
/// Unchecked: it is written only before the messages exist that it contains.
final class Slab: @unchecked Sendable {
    let start: UnsafeMutableRawPointer
    let capacity: Int

    init(capacity: Int) {
        start = .allocate(byteCount: capacity, alignment: 8)
        self.capacity = capacity
    }

    deinit {
        start.deallocate()
    }
}

/// Reads a socket, and takes the messages from what it has read.
///
/// All messages of a batch are in one slab, which is used again after the batch if none of them was kept. A call is kept
/// until its reply is sent, so it gets a slab of its own.
struct ReceiveBuffer {
    private static let usualCapacity = 1 << 16
    private static let mostDescriptors = CDBUS_MOST_DESCRIPTORS

    private var slab = Slab(capacity: usualCapacity)
    /// The received bytes that were not taken.
    private var start = 0
    private var end = 0
    /// The numbers of all bytes that were received and taken.
    private var received = 0
    private var taken = 0
    /// The descriptors that no message has taken, with the number of bytes received with and before each.
    private var descriptors: [(owned: OwnedDescriptor, received: Int)] = []
    /// A message whose object the next one uses, without memory.
    private var spare: Message?

    /// Takes the next message; nil if there is no complete one.
    mutating func next() throws(DBusError) -> Message? {
        do {
            return try takeMessage()
        } catch {
            throw DBusError(
                name: DBusError.Name.disconnected, message: "The bus has sent a message that is not valid: \(error).")
        }
    }

    private mutating func takeMessage() throws(MalformedMessage) -> Message? {
        let first = slab.start + start
        let length = end - start < MessageParser.fixedLength ? .max : try MessageParser.length(of: first)
        guard length <= end - start else {
            guard descriptors.count <= Self.mostDescriptors else {
                throw MalformedMessage("\(descriptors.count) file descriptors came with it")
            }
            return nil
        }
        let contents = try ReceivedMessage(first, length, of: slab) { count throws(MalformedMessage) in
            guard count <= descriptors.count else {
                throw MalformedMessage("\(count - descriptors.count) of its file descriptors have not arrived")
            }
            defer { descriptors.removeFirst(count) }
            return descriptors.prefix(count).map(\.owned)
        }
        start += length
        taken += length
        // Those that arrived with this message or before, and that none has named, are closed.
        if !descriptors.isEmpty { descriptors.removeAll { $0.received <= taken } }
        guard contents.descriptors.isEmpty, let message = spare.take() else { return Message(contents) }
        message.become(consume contents)
        return message
    }

    /// Takes back a message that the caller has handled: if nothing else retains it, the next one uses its object.
    mutating func recycle(_ message: inout Message) {
        guard isKnownUniquelyReferenced(&message), message.descriptors.isEmpty else { return }
        message.releaseMemory()
        spare = message
    }

    /// Reads what has arrived, once; returns whether something has.
    mutating func receive(from socket: Int32) throws(DBusError) -> Bool {
        makeRoom()
        let count = withUnsafeTemporaryAllocation(of: Int32.self, capacity: Self.mostDescriptors) { room in
            var arrived = 0
            let count = cdbus_receive(socket, slab.start + end, slab.capacity - end, room.baseAddress, &arrived)
            received += max(count, 0)
            for descriptor in room.prefix(arrived) {
                descriptors.append((OwnedDescriptor(owning: descriptor), received))
            }
            return count
        }
        switch count {
        case 0: throw .lost
        case ..<0:
            if -count == Int(EAGAIN) { return false }
            throw -count == Int(EMFILE) ? DBusError(.descriptors(EMFILE)) : .lost
        default: end += count
        }
        return true
    }

    /// Makes room after the received bytes. A message that is longer than the slab gets a larger one as its bytes arrive, so
    /// that a length alone uses no memory.
    private mutating func makeRoom() {
        let rest = end - start
        let isLong = rest >= Self.usualCapacity
        let isUsable = isKnownUniquelyReferenced(&slab) && slab.capacity > rest
        if isUsable, isLong || slab.capacity == Self.usualCapacity {
            if start > 0 { memmove(slab.start, slab.start + start, rest) }
        } else {
            let larger = Slab(capacity: isLong ? min(2 * rest, MessageParser.longestMessage) : Self.usualCapacity)
            memcpy(larger.start, slab.start + start, rest)
            slab = larger
        }
        (start, end) = (0, rest)
    }
}
