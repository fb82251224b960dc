/// What one version of BlueZ does differently from others: the one place where the daemon's behaviour depends on its version.
///
/// The initial values are those of 5.55; ``changes`` lists, in the order of versions, what each later one changes.
struct DaemonTraits: Hashable, Sendable {
    /// How many sockets a served characteristic has, and to which centrals their packets go.
    enum NotificationSockets: Hashable, Sendable {
        /// One for all subscribers.
        case shared
        /// One for each subscriber; every packet goes to all subscribers.
        case broadcast
        /// One for each subscriber, for its values only.
        case routed
    }

    /// How a program learns that an indication that came out of its socket was confirmed.
    enum SocketConfirmation: Hashable, Sendable {
        /// By a call of `Confirm`.
        case call
        /// Not at all.
        case none
        /// By a packet of one byte, 1, on the socket.
        case packet
    }

    // MARK: Serving
    var notificationSockets = NotificationSockets.shared
    var socketConfirmation = SocketConfirmation.call
    /// Whether a socket for writes belongs to one central.
    var hasWriteSocketPerCentral = false
    /// Whether a characteristic that notifies and indicates sends nothing to subscribers that asked for notifications.
    var losesNotificationsBesideIndications = true

    /// A difference between one version and the one before it.
    struct Change: Sendable {
        /// The first version that has it.
        let version: BlueZVersion
        /// A phrase for the documentation, which lists all changes.
        let summary: String
        let apply: @Sendable (inout DaemonTraits) -> Void

        init(_ minor: Int, _ summary: String, _ apply: @escaping @Sendable (inout DaemonTraits) -> Void) {
            version = BlueZVersion(5, minor)
            self.summary = summary
            self.apply = apply
        }
    }

    static let changes = [
        Change(56, "subscribers get notifications of a characteristic that indicates, too") {
            $0.losesNotificationsBesideIndications = false
        },
        Change(
            69,
            "a notification socket per central, each broadcasting; an unbonded central that leaves closes the oldest"
        ) {
            $0.notificationSockets = .broadcast
        },
        Change(69, "a write socket per central") { $0.hasWriteSocketPerCentral = true },
        Change(76, "packets of a notification socket go to its central only; their confirmations are not reported") {
            $0.notificationSockets = .routed
            $0.socketConfirmation = .none
        },
        Change(80, "a confirmation comes back on the notification socket, as one byte 1") {
            $0.socketConfirmation = .packet
        },
    ]

    init(_ version: BlueZVersion) {
        for change in Self.changes where change.version <= version { change.apply(&self) }
    }
}
