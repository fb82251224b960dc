public import Foundation

/// Why ``CentralManager/waitUntilPoweredOn(timeout:)`` and
/// ``PeripheralManager/waitUntilPoweredOn(timeout:)`` stopped waiting: Bluetooth
/// was not usable when the time-out passed, or the manager ended.
public struct BluetoothUnavailableError: Error, Hashable, Sendable, LocalizedError, CustomStringConvertible {
    /// The manager's state at that time: `unauthorized` if the bus refuses this process, `poweredOff` if the adapter is
    /// off or blocked, `unsupported` if there is no bus, no `bluetoothd` or no adapter, `resetting` if `bluetoothd` has
    /// ended, `unknown` if there is no reply yet or the manager has ended.
    public let state: ManagerState
    /// The reason for the state and what can be done about it, in one sentence; it names what is missing.
    public let explanation: String

    init(state: ManagerState, explanation: String) {
        self.state = state
        self.explanation = explanation
    }

    public var description: String { explanation }
    public var errorDescription: String? { explanation }
}

/// The former name of ``BluetoothUnavailableError``.
@available(*, deprecated, renamed: "BluetoothUnavailableError")
public typealias BluetoothUnavailable = BluetoothUnavailableError
