/// The result of a transfer.
public struct TransferReport: Hashable, Sendable {
    /// The number of bytes that were written.
    public let bytes: Int
    /// The time from the first write to the end.
    public let duration: Duration
    /// How often the transfer verified that what it had written was sent; 0 if that was not possible.
    public let fences: Int

    /// Bytes per second; 0 if no time has passed.
    public var bytesPerSecond: Double { duration > .zero ? Double(bytes) / duration.seconds : 0 }
}
