import BlueCapGATT
public import Logging

extension PeripheralManager {
    /// How a manager is created: the same choices as the keys of its `[String: Any]` options, with their types.
    ///
    /// ```swift
    /// var configuration = PeripheralManager.Configuration()
    /// configuration.adapter = "hci1"
    /// let manager = PeripheralManager(configuration: configuration)
    /// ```
    ///
    /// An initializer cannot fail: a value out of range makes each `add` and `startAdvertising` fail with
    /// ``PeripheralManagerError/invalidOption(_:)``, and ``PeripheralManager/stateExplanation`` names it.
    public struct Configuration: Sendable {
        /// The D-Bus address of the bus to use, such as a simulator's; `nil`, the default, for the system bus
        /// (`DBUS_SYSTEM_BUS_ADDRESS` is honoured). The same as ``PeripheralManagerOptionBusAddressKey``.
        public var busAddress: String?
        /// The adapter to use: a name such as `hci0`, or an address; `nil`, the default, for the adapter with the lowest
        /// number. The same as ``PeripheralManagerOptionAdapterKey``.
        public var adapter: String?
        /// The identifier, not empty, under which the state is kept and restored; `nil`, the default, keeps no state.
        /// The same as `CBPeripheralManagerOptionRestoreIdentifierKey`.
        public var restoreIdentifier: String?
        /// The folder of the kept state, an absolute path; `nil`, the default, for `$XDG_STATE_HOME/bluecap` or
        /// `~/.local/state/bluecap`. The same as ``PeripheralManagerOptionStateDirectoryKey``.
        public var stateDirectory: String?
        /// What the manager replies when a pairing needs an answer; ``PairingPolicy/reject`` by default. The same as
        /// ``PeripheralManagerOptionPairingPolicyKey``.
        public var pairingPolicy = PairingPolicy.reject
        /// What the manager logs, and to which handler; `nil`, the default, for nothing. ``PeripheralManagerOptionLoggerKey``
        /// describes the levels.
        public var logger: Logger?

        /// Creates a configuration in which everything has its default.
        public init() {}
    }
}

extension PeripheralManager.Configuration {
    /// Reads the documents' dictionary. What follows a wrong value keeps its default.
    /// - Returns: The configuration, and what is wrong with it.
    static func reading(_ options: [String: Any]?) -> (Self, problem: PeripheralManagerError?) {
        let (result, problem) = OptionReader(options).apply(to: Self()) { try $0.read($1) }
        return (result, problem.map { .invalidOption($0) })
    }

    private mutating func read(_ options: OptionReader) throws {
        busAddress = try options.string(PeripheralManagerOptionBusAddressKey)
        adapter = try options.string(PeripheralManagerOptionAdapterKey)
        pairingPolicy = try options.pairingPolicy(PeripheralManagerOptionPairingPolicyKey) ?? pairingPolicy
        logger = try options.logger(PeripheralManagerOptionLoggerKey)
        restoreIdentifier = try options.restoreIdentifier(CBPeripheralManagerOptionRestoreIdentifierKey)
        stateDirectory = try options.stateDirectory(PeripheralManagerOptionStateDirectoryKey)
    }

    /// This configuration with the defaults in place of values that are out of range, and what is wrong with it.
    var checked: (Self, problem: PeripheralManagerError?) {
        var result = self
        (result.restoreIdentifier, result.stateDirectory) = (nil, nil)
        var values: [String: Any] = [:]
        values["Configuration.restoreIdentifier"] = restoreIdentifier
        values["Configuration.stateDirectory"] = stateDirectory
        let (checked, problem) = OptionReader(values).apply(to: result) { result, reader in
            result.restoreIdentifier = try reader.restoreIdentifier("Configuration.restoreIdentifier")
            result.stateDirectory = try reader.stateDirectory("Configuration.stateDirectory")
        }
        return (checked, problem.map { .invalidOption($0) })
    }
}
