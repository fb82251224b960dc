public import Foundation

/// What has become of a transfer.
public struct TransferReport: Hashable, Sendable {
    /// How many bytes were written.
    public let bytes: Int
    /// From the first write to the end, in seconds.
    public let seconds: TimeInterval
    /// How often it was made sure that what was written had gone out; 0 where that was not possible.
    public let fences: Int

    /// Bytes per second; 0 where no time has passed.
    public var bytesPerSecond: Double { seconds > 0 ? Double(bytes) / seconds : 0 }
}
