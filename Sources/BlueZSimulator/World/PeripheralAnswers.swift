public import Foundation

/// An attribute that a peripheral is asked about.
public struct VirtualAttribute: Hashable, Sendable {
    /// UUIDs in their long form, lower case.
    public var service: String
    public var characteristic: String
    /// Nil for the characteristic's own value.
    public var descriptor: String?
    /// The handle of the value or the descriptor.
    public var handle: UInt16
}

/// How bytes are written.
public enum VirtualWriteType: Hashable, Sendable {
    /// With a response, in as many packets as it takes.
    case request
    /// Without a response; what comes back is not looked at.
    case command
    /// Prepared, read back, and then executed.
    case reliable
}

/// What a peripheral does with a request, and when.
public struct AttributeAnswer: Hashable, Sendable {
    public enum Outcome: Hashable, Sendable {
        /// A read: these bytes, from the beginning of the value on. A write: done.
        case success([UInt8])
        /// Refused with an error code of the attribute protocol, such as 0x02 for "read not permitted" (core
        /// specification 5.3, volume 3, part F, 3.4.1.1), or 0x80 to 0x9F for the application's own.
        case error(UInt8)
        /// No response ever. BlueZ gives the link up after half a minute.
        case never
        /// The link falls in the place of a response.
        case linkLoss
    }

    public var outcome: Outcome
    /// Seconds beside what the link takes anyhow.
    public var delay: TimeInterval

    public init(_ outcome: Outcome, after delay: TimeInterval = 0) {
        self.outcome = outcome
        self.delay = max(0, delay)
    }

    /// A read's bytes.
    public static func value(_ bytes: [UInt8], after delay: TimeInterval = 0) -> AttributeAnswer {
        AttributeAnswer(.success(bytes), after: delay)
    }

    /// A write that is done.
    public static let done = AttributeAnswer(.success([]))
    public static let never = AttributeAnswer(.never)
    public static let linkLoss = AttributeAnswer(.linkLoss)

    public static func error(_ code: UInt8, after delay: TimeInterval = 0) -> AttributeAnswer {
        AttributeAnswer(.error(code), after: delay)
    }
}

/// What a peripheral does when somebody wants to connect to it.
public enum ConnectionAnswer: Hashable, Sendable {
    /// The link comes up, that many seconds later than it would.
    case accept(after: TimeInterval)
    /// The attempt fails, after what a connection takes.
    case refuse
    /// Nothing happens, until the attempt times out.
    case ignore
}
