public import Foundation
public import Futures

extension Characteristic {
    /// How a transfer makes sure, from time to time, that what it has written has gone out.
    public enum Fence: Hashable, Sendable {
        /// By reading this characteristic, else another one of its service; else by `writing`; else not at all.
        case automatic
        /// By reading this one, whatever its value. Choose one that is read without effect.
        case reading(Characteristic)
        /// By having the last part of each window written with response. With several ATT channels (BlueZ up to 5.66
        /// opens three, later ones one, unless `Channels` in `main.conf` says otherwise) that part may overtake others.
        case writing
        /// Not at all: all is queued in `bluetoothd`, which has no limit and tells of no progress.
        case none
    }

    /// Writes any number of bytes without response, in parts that fit into packets, as fast as the link takes them.
    ///
    /// A write without response is over when `bluetoothd` has queued it, so a program that writes many of them fills
    /// its memory, and knows nothing of what has gone out. This makes a cheap request after each window of writes, whose
    /// answer comes when they have; the window follows the link's speed. What is asked of this characteristic meanwhile
    /// waits for the end.
    ///
    /// ```swift
    /// characteristic.transfer(firmware).onSuccess { report in
    ///     print(report.bytes, "bytes at", report.bytesPerSecond, "bytes per second")
    /// }
    /// ```
    /// - Parameters:
    ///   - data: The bytes; where a part ends is up to the size of packets, see ``maximumWriteValueLength(for:)``.
    ///   - fence: What request is made after each window.
    ///   - timeout: For the whole, in seconds. When it is exceeded the future fails with
    ///     ``CharacteristicError/writeTimeout`` and nothing more is written.
    /// - Returns: How much and how fast; or a failure: ``CharacteristicError/writeNotSupported`` at once where its
    ///   properties lack `writeWithoutResponse`, and those of `write(data:)`. The link does not tell which parts of a
    ///   failed transfer have arrived.
    public func transfer(
        _ data: Data, fence: Fence = .automatic, timeout: TimeInterval = .infinity
    ) -> Future<TransferReport> {
        let internalFence: TransferFence =
            switch fence {
            case .automatic: .automatic
            case .reading(let characteristic): .reading(characteristic.id)
            case .writing: .writing
            case .none: .none
            }
        return session.operation(on: peripheral.key) {
            if case .transferred(let report) = $0 { report } else { nil }
        } _: {
            $0.attributes.submit(.transfer(data, internalFence), on: id, $1, timeout: timeout, into: &$2)
        }
    }
}
