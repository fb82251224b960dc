import Foundation
import GATT

/// What a manager with a restore identifier keeps, as a value: all that was under way and is to come back.
struct RestorationState: Equatable, Sendable {
    /// A subscribed characteristic.
    struct Subscription: Equatable, Sendable {
        var service: CBUUID
        var characteristic: CBUUID
        /// Distinguishes characteristics with one UUID.
        var handle: UInt16
        var transport = NotificationTransport.signals
    }

    /// A peripheral that was connected, or to be connected.
    struct Connection: Equatable, Sendable {
        var address: BluetoothAddress
        var addressType: BluetoothAddress.AddressType
        /// The three arguments of `connect`.
        var timeoutRetries = UInt.max
        var disconnectRetries = UInt.max
        var connectionTimeout = TimeInterval.infinity
        var subscriptions: [Subscription] = []

        var key: PeripheralKey { PeripheralKey(address, addressType) }
    }

    /// In ascending order of their keys, so that the same state is the same file.
    var connections: [Connection] = []
    /// The scan that was running.
    var scan: ScanRequest?

    var isEmpty: Bool { connections.isEmpty && scan == nil }
}
