/// How the values of a subscription come from `bluetoothd`.
public enum NotificationTransport: Hashable, Sendable, CaseIterable {
    /// One D-Bus signal for each value (`StartNotify`): the default. It serves notifications and indications, shares the
    /// characteristic with other programs, and loses nothing from the first value on.
    case signals
    /// A socket between `bluetoothd` and this program (`AcquireNotify`): about ten times less work for each value.
    ///
    /// BlueZ sets limits to it. At 5.66 it serves `notify` only, not `indicate` (from 5.80 on both); one program alone
    /// can have it, and nobody else may be subscribed to the characteristic meanwhile; and values that come before
    /// `bluetoothd` has answered are lost. Up to 5.83 it does not answer where the peripheral refuses the subscription:
    /// `startNotifying` then fails with its time-out, and `bluetoothd` keeps the characteristic occupied until the link ends
    /// (``BluetoothCapabilities/refusedSocketsAnswered``). Use ``signals`` for a peripheral that may refuse.
    case socket
}
