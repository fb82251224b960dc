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
}

extension PeripheralBehavior {
    public func advertisement(of peripheral: VirtualPeripheral, at seconds: TimeInterval) -> Advertisement {
        peripheral.advertisement
    }

    public func rssi(of peripheral: VirtualPeripheral, at seconds: TimeInterval) -> Int? {
        peripheral.rssi.rssi(at: seconds)
    }
}
