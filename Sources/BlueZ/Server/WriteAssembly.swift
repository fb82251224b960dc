import Foundation
import GATT

/// Puts the parts of a long write together, so that it is given to the application as one value.
///
/// `bluetoothd` 5.66 does so itself while the parts touch each other; older ones hand them in one by one, each with its
/// offset, and the next one only after the last was answered. Which is the last they do not say: a part that does not fill
/// its packet is, and behind a full one nothing comes any more after ``pause`` seconds.
struct WriteAssembly {
    /// An attribute's longest value, in bytes (Core Specification, Vol 3, Part F, 3.2.9).
    static let longestValue = 512
    static let pause = 0.05

    /// What becomes of a write.
    enum Step: Hashable {
        /// Give it to the application, whose answer is the answer.
        case give(offset: Int, Data)
        /// Grant it: more may come. Give what is `collected` when the pause is over.
        case collect
        case refuse(CBATTError.Code)
    }

    /// What the same central wrote before: the beginning of what follows, it may be.
    private var offset = 0
    private var bytes = Data()
    /// Whether it waits to be given.
    private(set) var isCollecting = false

    /// - Parameter mtu: Of the central's link. A part of a long write carries at most that less 5 (prepare write request).
    mutating func written(_ value: Data, at offset: Int, mtu: Int?) -> Step {
        guard offset + value.count <= Self.longestValue else { return .refuse(.invalidAttributeValueLength) }
        if isContinued(at: offset) {
            bytes += value
        } else {
            self.offset = offset
            bytes = value
        }
        let isFull = value.count == (mtu ?? 23) - 5
        isCollecting = offset > 0 && isFull
        return isCollecting ? .collect : .give(offset: self.offset, bytes)
    }

    /// Whether a part at this offset belongs to what came before.
    func isContinued(at offset: Int) -> Bool { offset > 0 && offset == self.offset + bytes.count && !bytes.isEmpty }

    /// Nothing came any more.
    mutating func collected() -> (offset: Int, value: Data)? {
        guard isCollecting else { return nil }
        isCollecting = false
        return (offset, bytes)
    }
}
