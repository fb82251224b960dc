public import Foundation

/// The way in which `bluetoothd` delivers the values of a subscription.
public enum NotificationTransport: Hashable, Sendable, CaseIterable {
    /// One D-Bus signal for each value (`StartNotify`): the default. It supports notifications and indications, shares
    /// the characteristic with other programs, and loses no value from the first one on.
    case signals
    /// A socket between `bluetoothd` and this program (`AcquireNotify`): about a tenth of the work for each value.
    ///
    /// BlueZ limits its use. BlueZ 5.66 supports it for `notify` only, and not for `indicate` (from 5.80 on for both).
    /// Only one program can have the socket, and no other program may be subscribed to the characteristic at the same
    /// time. Values that arrive before `bluetoothd` has replied are lost. Up to 5.83 `bluetoothd` does not reply if the
    /// peripheral refuses the subscription: `startNotifying` then fails with its time-out, and `bluetoothd` keeps the
    /// characteristic occupied until the link ends (``BluetoothCapabilities/refusedSocketsAnswered``). Use ``signals``
    /// for a peripheral that may refuse.
    ///
    /// Up to 5.83, if the peripheral is not paired and the manager's ``PairingPolicy`` pairs for operations, the
    /// subscription is made over signals and ended before the socket is acquired, because a refusal of the socket has
    /// no reply. The peripheral receives three writes of its configuration, and what it sends after the first one is
    /// lost.
    case socket
}

/// An element of ``Characteristic/notificationEvents(over:capacity:timeout:)``.
public enum NotificationEvent: Hashable, Sendable {
    /// A value that the peripheral has notified or indicated.
    case value(Data)
    /// The subscription was interrupted and has been resumed: values may have been missed.
    case gap
}
