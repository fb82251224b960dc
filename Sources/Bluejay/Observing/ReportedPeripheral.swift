public import BlueCapKit

/// A form in which Bluejay reports a peripheral to a ``DisconnectHandler``.
///
/// There are two: `Peripheral`, as the guide has it, and ``PeripheralIdentifier``, as Bluejay has it since version 0.8. A
/// handler names the one that it wants in the parameter of its method.
public protocol ReportedPeripheral: Swift.Sendable {
    /// Returns the form of a peripheral.
    static func reporting(_ peripheral: Peripheral) -> Self
}

extension Peripheral: ReportedPeripheral {
    public static func reporting(_ peripheral: Peripheral) -> Peripheral { peripheral }
}

extension PeripheralIdentifier: ReportedPeripheral {
    public static func reporting(_ peripheral: Peripheral) -> PeripheralIdentifier { PeripheralIdentifier(peripheral) }
}
