public import Foundation

/// What a virtual peripheral does beyond what its value describes. Every requirement has a default, which follows the value;
/// implement only what is to differ.
///
/// Called on the simulator's loop, never under a lock; return at once and do not wait there. One behaviour may serve
/// many peripherals.
///
/// ```swift
/// final class Counter: PeripheralBehavior {
///     func advertisement(of peripheral: VirtualPeripheral, at seconds: TimeInterval) -> Advertisement {
///         var advertisement = peripheral.advertisement
///         advertisement.manufacturerData[0xFFFF] = [UInt8(truncatingIfNeeded: Int(seconds))]
///         return advertisement
///     }
/// }
/// simulator.add(peripheral, behavior: Counter())
/// ```
public protocol PeripheralBehavior: AnyObject, Sendable {
    /// Returns what it sends now. Default: the peripheral's ``VirtualPeripheral/advertisement``.
    func advertisement(of peripheral: VirtualPeripheral, at seconds: TimeInterval) -> Advertisement
    /// Returns its strength now, in dBm; nil if this advertisement is not received at all. Default: the peripheral's course.
    func rssi(of peripheral: VirtualPeripheral, at seconds: TimeInterval) -> Int?

    /// Decides about an attempt to connect. Default: accepted at once.
    func connectRequested(to peripheral: VirtualPeripheral, at seconds: TimeInterval) -> ConnectionAnswer
    /// Called when the link is up, and when it has ended. Default: nothing.
    func linkChanged(of peripheral: VirtualPeripheral, isUp: Bool, at seconds: TimeInterval)
    /// Reads an attribute. `value` is what the peripheral has stored. Default: that value.
    func read(
        _ attribute: VirtualAttribute, of peripheral: VirtualPeripheral, value: [UInt8], at seconds: TimeInterval
    ) -> AttributeAnswer
    /// Writes an attribute, the bytes complete however many packets they came in. They are stored if this returns success.
    /// Default: success.
    func write(
        _ bytes: [UInt8], to attribute: VirtualAttribute, of peripheral: VirtualPeripheral, type: VirtualWriteType,
        at seconds: TimeInterval
    ) -> AttributeAnswer
    /// Called when the subscription to a characteristic begins or ends, also if the link ends. Default: nothing.
    func subscriptionChanged(
        to attribute: VirtualAttribute, of peripheral: VirtualPeripheral, isOn: Bool, at seconds: TimeInterval)
}

extension PeripheralBehavior {
    public func advertisement(of peripheral: VirtualPeripheral, at seconds: TimeInterval) -> Advertisement {
        peripheral.advertisement
    }

    public func rssi(of peripheral: VirtualPeripheral, at seconds: TimeInterval) -> Int? {
        peripheral.rssi.rssi(at: seconds)
    }

    public func connectRequested(to peripheral: VirtualPeripheral, at seconds: TimeInterval) -> ConnectionAnswer {
        .accept(after: 0)
    }

    public func linkChanged(of peripheral: VirtualPeripheral, isUp: Bool, at seconds: TimeInterval) {}

    public func read(
        _ attribute: VirtualAttribute, of peripheral: VirtualPeripheral, value: [UInt8], at seconds: TimeInterval
    ) -> AttributeAnswer {
        .value(value)
    }

    public func write(
        _ bytes: [UInt8], to attribute: VirtualAttribute, of peripheral: VirtualPeripheral, type: VirtualWriteType,
        at seconds: TimeInterval
    ) -> AttributeAnswer {
        .done
    }

    public func subscriptionChanged(
        to attribute: VirtualAttribute, of peripheral: VirtualPeripheral, isOn: Bool, at seconds: TimeInterval
    ) {}
}

/// The behaviour of a peripheral that has none of its own.
final class PlainBehavior: PeripheralBehavior {
    static let shared = PlainBehavior()
}

/// An attribute that a behaviour reads or writes.
public struct VirtualAttribute: Hashable, Sendable {
    /// UUIDs in their long form, lower case.
    public var service: String
    /// The UUID of the characteristic, in its long form, lower case.
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
    /// Without a response; what the behaviour returns is ignored.
    case command
    /// Prepared, read back, and then executed.
    case reliable
}

/// The result of a request to a peripheral, and when it arrives.
public struct AttributeAnswer: Hashable, Sendable {
    /// The result of a request.
    public enum Outcome: Hashable, Sendable {
        /// A read: these bytes, from the beginning of the value on. A write: done.
        case success([UInt8])
        /// Refused with an error code of the attribute protocol, such as 0x02 for "read not permitted" (core
        /// specification 5.3, volume 3, part F, 3.4.1.1), or 0x80 to 0x9F for the application's own.
        case error(UInt8)
        /// No response ever. BlueZ ends the link after 30 seconds.
        case never
        /// The link ends in place of a response.
        case linkLoss
    }

    /// The result.
    public var outcome: Outcome
    /// Seconds that are added to the time that the link takes; in `init` a negative number is 0.
    public var delay: TimeInterval

    /// Creates an answer with this result, which arrives so many seconds later than the link takes.
    public init(_ outcome: Outcome, after delay: TimeInterval = 0) {
        self.outcome = outcome
        self.delay = max(0, delay)
    }

    /// The bytes of a read.
    public static func value(_ bytes: [UInt8], after delay: TimeInterval = 0) -> AttributeAnswer {
        AttributeAnswer(.success(bytes), after: delay)
    }

    /// A write that is done.
    public static let done = AttributeAnswer(.success([]))
    /// There is no response, so the request times out.
    public static let never = AttributeAnswer(.never)
    /// The link ends in place of a response.
    public static let linkLoss = AttributeAnswer(.linkLoss)

    /// Returns a refusal with an error code, as for ``Outcome/error(_:)``.
    public static func error(_ code: UInt8, after delay: TimeInterval = 0) -> AttributeAnswer {
        AttributeAnswer(.error(code), after: delay)
    }
}

/// The decision of a peripheral about an attempt to connect.
public enum ConnectionAnswer: Hashable, Sendable {
    /// The link comes up, that many seconds later than it would.
    case accept(after: TimeInterval)
    /// The attempt fails, after the time that a connection takes.
    case refuse
    /// Nothing happens, until the attempt times out.
    case ignore
}

/// A call of a behaviour, which is made outside of every lock. Returns what follows; nil if the behaviour decides nothing.
typealias Question = @Sendable () -> (@Sendable (inout LinkLayer) -> Void)?
