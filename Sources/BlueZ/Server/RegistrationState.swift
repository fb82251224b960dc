/// How far something of ours (an application, an advertisement) has come on its way into `bluetoothd`.
package enum RegistrationState: Hashable, Sendable {
    /// There is nothing to register, or it was taken back.
    case idle
    case waiting(Obstacle)
    /// BlueZ has been asked, or is asked again soon.
    case registering
    /// BlueZ has refused it with an error that may pass, and is asked again after a pause.
    case retrying(BlueZError)
    case registered
    /// BlueZ does not want it. Another content, or another daemon, gets another try.
    case refused(BlueZError)

    /// What has to happen first. All of it is waited for without end.
    package enum Obstacle: Hashable, Sendable {
        /// No bus, no daemon, or no such adapter.
        case adapter
        /// The adapter is off.
        case power
        /// The adapter has not the interface that is needed: its controller cannot do this.
        case support
    }
}
