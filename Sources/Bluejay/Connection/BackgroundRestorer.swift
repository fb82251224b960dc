/// The object that receives the result when the connection of an earlier run of the program is restored, as in Bluejay
/// since version 0.8. It is called on the callback queue of ``Bluejay``, which holds it weakly.
///
/// Its methods have no defaults: a class that misspells one does not compile.
public protocol BackgroundRestorer: AnyObject {
    /// Called when the connection is back, before the observers' `connected(to:)`.
    func didRestoreConnection(to peripheral: PeripheralIdentifier) -> BackgroundRestoreCompletion

    /// Called when the connection did not come back within 15 seconds, or the attempt was ended by the application. Bluejay
    /// does not try again.
    ///
    /// - `error`: ``BluejayError/connectionTimedOut``; ``BluejayError/bluetoothUnavailable`` if Bluetooth is
    ///   off; ``BluejayError/explicitDisconnect`` or ``BluejayError/stopped`` if the application ended the attempt.
    func didFailToRestoreConnection(
        to peripheral: PeripheralIdentifier, error: any Error
    ) -> BackgroundRestoreCompletion
}

/// What follows a restoration.
public enum BackgroundRestoreCompletion {
    /// Calls the closure, on the callback queue, right after the restorer has returned.
    case callback(() -> Void)
    /// Does nothing.
    case `continue`
}

/// The options with which an iOS program was launched. A Linux program has none: `nil`.
public typealias LaunchOptions = [String: Any]?

/// The settings for the restoration of the connection and its listens, as in Bluejay since version 0.8.
public struct BackgroundRestoreConfig {
    /// The name of the saved state; one for each Bluejay.
    public let restoreIdentifier: RestoreIdentifier
    /// Receives the result of the restoration. Bluejay holds it weakly.
    public let backgroundRestorer: any BackgroundRestorer
    /// Decides on listens that have no closure. Bluejay holds it weakly.
    public let listenRestorer: any ListenRestorer
    /// The options with which the program was launched.
    public let launchOptions: LaunchOptions

    /// Creates the settings. `launchOptions` is `nil` on Linux, where the state is in a file.
    public init(
        restoreIdentifier: RestoreIdentifier, backgroundRestorer: any BackgroundRestorer,
        listenRestorer: any ListenRestorer, launchOptions: LaunchOptions = nil
    ) {
        (self.restoreIdentifier, self.launchOptions) = (restoreIdentifier, launchOptions)
        (self.backgroundRestorer, self.listenRestorer) = (backgroundRestorer, listenRestorer)
    }
}
