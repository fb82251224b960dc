import BlueCapGATT
public import Logging

extension CentralManager {
    /// How a manager is created: the same choices as the keys of its `[String: Any]` options, with their types.
    ///
    /// ```swift
    /// var configuration = CentralManager.Configuration()
    /// configuration.adapter = "hci1"
    /// let manager = CentralManager(configuration: configuration)
    /// ```
    ///
    /// An initializer cannot fail: a value out of range makes each `startScanning` fail with
    /// ``CentralManagerError/invalidOption(_:)``, and ``CentralManager/stateExplanation`` names it.
    public struct Configuration: Sendable {
        /// The D-Bus address of the bus to use, such as a simulator's; `nil`, the default, for the system bus
        /// (`DBUS_SYSTEM_BUS_ADDRESS` is honoured). The same as ``CentralManagerOptionBusAddressKey``.
        public var busAddress: String?
        /// The adapter to use: a name such as `hci0`, or an address; `nil`, the default, for the adapter with the lowest
        /// number. The same as ``CentralManagerOptionAdapterKey``.
        public var adapter: String?
        /// The identifier, not empty, under which the state is kept and restored; `nil`, the default, keeps no state.
        /// The same as `CBCentralManagerOptionRestoreIdentifierKey`.
        public var restoreIdentifier: String?
        /// The folder of the kept state, an absolute path; `nil`, the default, for `$XDG_STATE_HOME/bluecap` or
        /// `~/.local/state/bluecap`. The same as ``CentralManagerOptionStateDirectoryKey``.
        public var stateDirectory: String?
        /// What the manager replies when a pairing needs an answer; ``PairingPolicy/reject`` by default. The same as
        /// ``CentralManagerOptionPairingPolicyKey``.
        public var pairingPolicy = PairingPolicy.reject
        /// The largest number of peripherals that the manager remembers, 1 to 1 000 000; 16 384 by default. The same as
        /// ``CentralManagerOptionMaximumPeripheralsKey``.
        public var maximumPeripherals = 16_384
        /// Whether links that the manager opened stay up when it is deallocated; `false` by default. The same as
        /// ``CentralManagerOptionKeepsLinksKey``.
        public var keepsLinks = false
        /// What the manager logs, and to which handler; `nil`, the default, for nothing. ``CentralManagerOptionLoggerKey``
        /// describes the levels.
        public var logger: Logger?

        /// Creates a configuration in which everything has its default.
        public init() {}
    }
}

extension CentralManager.Configuration {
    /// Reads the documents' dictionary. What follows a wrong value keeps its default.
    /// - Returns: The configuration, and what is wrong with it.
    static func reading(_ options: [String: Any]?) -> (Self, problem: CentralManagerError?) {
        let (result, problem) = OptionReader(options).apply(to: Self()) { try $0.read($1) }
        return (result, problem.map { .invalidOption($0) })
    }

    private mutating func read(_ options: OptionReader) throws {
        busAddress = try options.string(CentralManagerOptionBusAddressKey)
        adapter = try options.string(CentralManagerOptionAdapterKey)
        pairingPolicy = try options.pairingPolicy(CentralManagerOptionPairingPolicyKey) ?? pairingPolicy
        let count = try options.maximumPeripherals(CentralManagerOptionMaximumPeripheralsKey)
        maximumPeripherals = count ?? maximumPeripherals
        keepsLinks = try options.bool(CentralManagerOptionKeepsLinksKey) ?? keepsLinks
        logger = try options.logger(CentralManagerOptionLoggerKey)
        restoreIdentifier = try options.restoreIdentifier(CBCentralManagerOptionRestoreIdentifierKey)
        stateDirectory = try options.stateDirectory(CentralManagerOptionStateDirectoryKey)
    }

    /// This configuration with the defaults in place of values that are out of range, and what is wrong with it.
    var checked: (Self, problem: CentralManagerError?) {
        var result = self
        result.maximumPeripherals = Self().maximumPeripherals
        (result.restoreIdentifier, result.stateDirectory) = (nil, nil)
        var values: [String: Any] = [:]
        values["Configuration.restoreIdentifier"] = restoreIdentifier
        values["Configuration.stateDirectory"] = stateDirectory
        values["Configuration.maximumPeripherals"] = maximumPeripherals
        let (checked, problem) = OptionReader(values).apply(to: result) { result, reader in
            result.maximumPeripherals =
                try reader.maximumPeripherals("Configuration.maximumPeripherals") ?? result.maximumPeripherals
            result.restoreIdentifier = try reader.restoreIdentifier("Configuration.restoreIdentifier")
            result.stateDirectory = try reader.stateDirectory("Configuration.stateDirectory")
        }
        return (checked, problem.map { .invalidOption($0) })
    }
}
