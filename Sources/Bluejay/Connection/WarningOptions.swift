/// What iOS is to show of a connection while the program is in the background.
///
/// On Linux nobody shows anything: the options are taken, so that code that has them compiles, and have no effect.
public struct WarningOptions: Hashable, Swift.Sendable {
    public let notifyOnConnection: Bool
    public let notifyOnDisconnection: Bool
    public let notifyOnNotification: Bool

    public init(notifyOnConnection: Bool, notifyOnDisconnection: Bool, notifyOnNotification: Bool) {
        self.notifyOnConnection = notifyOnConnection
        self.notifyOnDisconnection = notifyOnDisconnection
        self.notifyOnNotification = notifyOnNotification
    }
}
