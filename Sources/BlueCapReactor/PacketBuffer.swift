import CBlueCapReactor
import Glibc

/// A buffer that receives up to thirty-two packets from a socket with one system call.
///
/// Unchecked, because it is confined to the loop of its reader.
package final class PacketBuffer: @unchecked Sendable {
    /// The result of one call.
    package enum Outcome: Hashable, Sendable {
        /// The number of packets and the number of those that are not empty. `isFull`: there may be more.
        case packets(count: Int, filled: Int, isFull: Bool)
        /// No packet is there now.
        case nothing
        /// The error number.
        case failed(Int32)
    }

    private static let most = Int(CREACTOR_MOST_PACKETS)

    private let size: Int
    private let bytes: UnsafeMutableRawBufferPointer
    private let lengths = UnsafeMutableBufferPointer<UInt32>.allocate(capacity: PacketBuffer.most)

    /// - Parameter size: The longest packet, in bytes; longer ones are truncated.
    package init(packetSize size: Int) {
        self.size = max(size, 1)
        bytes = .allocate(byteCount: self.size * PacketBuffer.most, alignment: 16)
        lengths.initialize(repeating: 0)
    }

    deinit {
        bytes.deallocate()
        lengths.deallocate()
    }

    /// Calls `each` with every packet that the socket has now, up to the limit of one call; the bytes are valid only during
    /// `each`. Never waits, not even on a blocking descriptor.
    package func receive(_ descriptor: Int32, _ each: (UnsafeRawBufferPointer) -> Void) -> Outcome {
        let received = creactor_receive_packets(
            descriptor, bytes.baseAddress, size, lengths.baseAddress, UInt32(PacketBuffer.most))
        guard received >= 0 else { return received == -EAGAIN ? .nothing : .failed(-received) }
        var filled = 0
        for index in 0..<Int(received) {
            let length = min(Int(lengths[index]), size)
            if length > 0 { filled += 1 }
            each(UnsafeRawBufferPointer(rebasing: bytes[index * size..<index * size + length]))
        }
        return .packets(count: Int(received), filled: filled, isFull: Int(received) == PacketBuffer.most)
    }
}

/// Sends one packet without waiting. Returns `nil`, or the error number: `EAGAIN` if the socket's buffer is full.
package func sendPacket(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int32? {
    while true {
        let sent = send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        guard sent < 0 else { return nil }
        if errno != EINTR { return errno }
    }
}

/// The number of sent bytes that the other end of a local socket has not read, including the kernel's overhead.
package func unreadBytes(_ descriptor: Int32) -> Int { max(Int(creactor_unread_bytes(descriptor)), 0) }

/// Whether the other end of a socket is closed.
package func isHungUp(_ descriptor: Int32) -> Bool {
    var polled = pollfd(fd: descriptor, events: 0, revents: 0)
    return poll(&polled, 1, 0) > 0 && Int32(polled.revents) & Int32(POLLHUP) != 0
}
