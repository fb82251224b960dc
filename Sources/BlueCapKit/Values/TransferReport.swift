public import Foundation

/// The result of a transfer.
public struct TransferReport: Hashable, Sendable {
    /// The number of bytes that were written.
    public let bytes: Int
    /// The time from the first write to the end, in seconds.
    public let seconds: TimeInterval
    /// How often the transfer verified that what it had written was sent; 0 if that was not possible.
    public let fences: Int

    /// Bytes per second; 0 if no time has passed.
    public var bytesPerSecond: Double { seconds > 0 ? Double(bytes) / seconds : 0 }
}
