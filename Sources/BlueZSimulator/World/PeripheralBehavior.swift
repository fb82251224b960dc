public import Foundation

/// What a virtual peripheral does where a value cannot say it. Every requirement has a default answer, which is the
/// value's own; implement only what is to be different.
///
/// Called on the simulator's loop, never under a lock; answer at once and do not wait there. One behaviour may serve
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
    /// What it sends out now. Default: the peripheral's ``VirtualPeripheral/advertisement``.
    func advertisement(of peripheral: VirtualPeripheral, at seconds: TimeInterval) -> Advertisement
    /// How strongly it is heard now, in dBm; nil when this one is not heard at all. Default: the peripheral's course.
    func rssi(of peripheral: VirtualPeripheral, at seconds: TimeInterval) -> Int?

    /// Somebody wants to connect. Default: accepted at once.
    func connectRequested(to peripheral: VirtualPeripheral, at seconds: TimeInterval) -> ConnectionAnswer
    /// The link is up, or has ended. Default: nothing.
    func linkChanged(of peripheral: VirtualPeripheral, isUp: Bool, at seconds: TimeInterval)
    /// An attribute is read. `value` is what the peripheral has stored. Default: that value.
    func read(
        _ attribute: VirtualAttribute, of peripheral: VirtualPeripheral, value: [UInt8], at seconds: TimeInterval
    ) -> AttributeAnswer
    /// An attribute is written, the bytes complete however many packets they came in. What is answered with success is
    /// stored. Default: success.
    func write(
        _ bytes: [UInt8], to attribute: VirtualAttribute, of peripheral: VirtualPeripheral, type: VirtualWriteType,
        at seconds: TimeInterval
    ) -> AttributeAnswer
    /// The subscription to a characteristic began or ended, with an end of the link too. Default: nothing.
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
