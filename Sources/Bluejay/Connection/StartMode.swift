public import BlueCapKit

/// The name of the state that one ``Bluejay`` saves for the next run of the program: letters, digits, `.`, `-` and `_`.
public typealias RestoreIdentifier = String

/// The manager with which Bluejay starts.
public enum StartMode {
    /// A new manager.
    case new(StartOptions)
    /// An existing manager of BlueCapKit or another Bluejay, and its connected peripheral if there is one.
    case use(manager: CentralManager, peripheral: Peripheral?)
}

/// The options of a new manager.
public struct StartOptions {
    let backgroundRestore: BackgroundRestoreMode
    let managerConfiguration: CentralManager.Configuration
    /// Options that precede those of the configuration.
    let managerOptions: [String: Any]

    /// No restoration, the first adapter, the system bus.
    public static var bluejayDefault: StartOptions {
        StartOptions(enableBluetoothAlert: false, backgroundRestore: .disable)
    }

    /// - Parameters:
    ///   - enableBluetoothAlert: Has no effect on Linux, which has no such alert.
    ///   - backgroundRestore: Whether the connection and its listens are restored after a crash, a kill or a power cut.
    ///   - managerConfiguration: That of the `CentralManager`. `backgroundRestore` replaces its restore identifier. An
    ///     invalid value makes each scan fail.
    public init(
        enableBluetoothAlert: Bool, backgroundRestore: BackgroundRestoreMode,
        managerConfiguration: CentralManager.Configuration = CentralManager.Configuration()
    ) {
        self.backgroundRestore = backgroundRestore
        self.managerConfiguration = managerConfiguration
        managerOptions = [:]
    }

    /// Creates options with a dictionary of options of the `CentralManager`.
    @available(*, deprecated, message: "Use managerConfiguration.")
    public init(
        enableBluetoothAlert: Bool, backgroundRestore: BackgroundRestoreMode, managerOptions: [String: Any]
    ) {
        self.backgroundRestore = backgroundRestore
        managerConfiguration = CentralManager.Configuration()
        self.managerOptions = managerOptions
    }
}

/// Whether the connection and its listens are restored in the next run of the program.
public enum BackgroundRestoreMode {
    /// Saves nothing, and restores nothing.
    case disable
    /// Restores the connection, and ends the listens.
    case enable(RestoreIdentifier)
    /// Restores the connection, and asks the restorer about each listen.
    case enableWithListenRestorer(RestoreIdentifier, any ListenRestorer)
    /// Restores the connection, reports it to one restorer, and asks another one about each listen; written
    /// `.enable(config)`.
    case enableWithConfig(BackgroundRestoreConfig)
}
