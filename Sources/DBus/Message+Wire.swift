import CDBus
import Synchronization

extension Message {
    /// The arguments in wire form where libdbus keeps them, for those messages of which it says where; a copy costs a
    /// twentieth of all that a signal costs.
    var bodyInPlace: UnsafeRawPointer? { cdbus_message_body(pointer) }

    /// The arguments in wire form, in this machine's byte order; empty also where there was no memory for them.
    ///
    /// The bytes are a copy, made at the first reading and kept as long as the message. Of two threads that read a
    /// message for the first time at once each makes one, and one of the two stays.
    var body: UnsafeRawBufferPointer {
        guard let wire = wire.load(ordering: .acquiring) ?? makeWire() else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        var length = 0
        let start = cdbus_wire_body(wire, &length)
        return UnsafeRawBufferPointer(start: start, count: length)
    }

    private func makeWire() -> UnsafeMutablePointer<CChar>? {
        guard let made = cdbus_message_wire(pointer) else { return nil }
        let (isOurs, other) = wire.compareExchange(
            expected: nil, desired: made, successOrdering: .acquiringAndReleasing, failureOrdering: .acquiring)
        guard !isOurs else { return made }
        cdbus_free(made)
        return other
    }

    /// The types of the arguments; valid as long as the message.
    var signatureBytes: UnsafeBufferPointer<UInt8> {
        cdbus_message_signature(pointer).map(bytes(of:)) ?? UnsafeBufferPointer(start: nil, count: 0)
    }
}
