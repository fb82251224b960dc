public import BlueCapKit

/// Names what is kept of one ``Bluejay`` for the next run of the program: letters, digits, `.`, `-` and `_`.
public typealias RestoreIdentifier = String

/// With what Bluejay starts.
public enum StartMode {
    /// With a manager of its own.
    case new(StartOptions)
    /// With a manager that is there already, and its connected peripheral if there is one: the way from BlueCapKit, or
    /// from another Bluejay, to this one.
    case use(manager: CentralManager, peripheral: Peripheral?)
}

/// How Bluejay makes its manager.
public struct StartOptions {
    let backgroundRestore: BackgroundRestoreMode
    let managerOptions: [String: Any]

    /// No restoration, the first adapter, the system bus.
    public static var bluejayDefault: StartOptions {
        StartOptions(enableBluetoothAlert: false, backgroundRestore: .disable)
    }

    /// - Parameters:
    ///   - enableBluetoothAlert: Has no effect on Linux, where nobody shows such an alert.
    ///   - backgroundRestore: Whether what is under way comes back after a crash, a kill or a power cut.
    ///   - managerOptions: Further options of the `CentralManager`, such as `CentralManagerOptionAdapterKey`.
    public init(
        enableBluetoothAlert: Bool, backgroundRestore: BackgroundRestoreMode, managerOptions: [String: Any] = [:]
    ) {
        self.backgroundRestore = backgroundRestore
        self.managerOptions = managerOptions
    }
}

/// Whether the connection and its listens outlive the program.
public enum BackgroundRestoreMode {
    case disable
    /// The connection comes back, listens are ended.
    case enable(RestoreIdentifier)
    /// The connection comes back, and the restorer is asked about each listen.
    case enableWithListenRestorer(RestoreIdentifier, any ListenRestorer)
    /// The connection comes back, one restorer is told of it, and another one is asked about listens; written
    /// `.enable(config)`.
    case enableWithConfig(BackgroundRestoreConfig)

    var identifier: RestoreIdentifier? {
        switch self {
        case .disable: nil
        case .enable(let identifier), .enableWithListenRestorer(let identifier, _): identifier
        case .enableWithConfig(let config): config.restoreIdentifier
        }
    }

    var restorer: (any ListenRestorer)? {
        switch self {
        case .disable, .enable: nil
        case .enableWithListenRestorer(_, let restorer): restorer
        case .enableWithConfig(let config): config.listenRestorer
        }
    }

    var backgroundRestorer: (any BackgroundRestorer)? {
        if case .enableWithConfig(let config) = self { config.backgroundRestorer } else { nil }
    }
}
