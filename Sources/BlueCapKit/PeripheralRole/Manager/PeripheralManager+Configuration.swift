import BlueCapGATT
public import Logging

extension PeripheralManager {
    /// How a manager is created.
    ///
    /// ```swift
    /// let manager = try PeripheralManager(configuration: .init(adapter: "hci1", pairingPolicy: .justWorks))
    /// ```
    public struct Configuration: Sendable {
        /// As ``CentralManager/Configuration/busAddress``.
        public var busAddress: String?
        /// The adapter to use, as ``CentralManager/Configuration/adapter``; `nil` for the one with the lowest number.
        public var adapter: String?
        /// The identifier, not empty, under which the state is kept and restored; `nil`, the default, keeps no state.
        public var restoreIdentifier: String?
        /// The folder of the kept state, an absolute path, as ``CentralManager/Configuration/stateDirectory``.
        public var stateDirectory: String?
        /// What the manager replies when a pairing needs an answer; ``PairingPolicy/reject`` by default.
        public var pairingPolicy: PairingPolicy
        /// What the manager logs, and to which handler; `nil`, the default, for nothing.
        ///
        /// | level | what is logged |
        /// |---|---|
        /// | `error` | a kept state that cannot be restored |
        /// | `warning` | Bluetooth cannot be used; a service or an advertisement was refused; a pairing has failed |
        /// | `notice` | BlueZ has lost a registration, which is made again |
        /// | `info` | Bluetooth can be used; services and advertisements begin and end; centrals come, go and pair |
        /// | `debug` | registrations that are requested; requests for a pairing |
        /// | `trace` | each request of a central, with the length of what it writes |
        ///
        /// The metadata has `adapter`, `central` (its address), `service` and `characteristic`, where there is one. Values,
        /// passkeys and keys are never logged. The handler is called on the thread that communicates with the bus, and must
        /// return quickly.
        public var logger: Logger?

        /// Creates a configuration; each property has its default unless it is given. The manager checks the values.
        public init(
            busAddress: String? = nil, adapter: String? = nil, restoreIdentifier: String? = nil,
            stateDirectory: String? = nil, pairingPolicy: PairingPolicy = .reject, logger: Logger? = nil
        ) {
            self.busAddress = busAddress
            self.adapter = adapter
            self.restoreIdentifier = restoreIdentifier
            self.stateDirectory = stateDirectory
            self.pairingPolicy = pairingPolicy
            self.logger = logger
        }
    }
}

extension PeripheralManager.Configuration: OptionSettable {
    package static let standard = Self()
    package static let rules: [OptionRule<Self>] = [
        OptionRule("busAddress", "PeripheralManagerOptionBusAddressKey", \.busAddress, .busAddress),
        OptionRule("adapter", "PeripheralManagerOptionAdapterKey", \.adapter, .adapter),
        OptionRule("pairingPolicy", "PeripheralManagerOptionPairingPolicyKey", \.pairingPolicy, .pairingPolicy),
        OptionRule("logger", "PeripheralManagerOptionLoggerKey", \.logger, .logger),
        OptionRule(
            "restoreIdentifier", CBPeripheralManagerOptionRestoreIdentifierKey, \.restoreIdentifier, .notEmpty),
        OptionRule("stateDirectory", "PeripheralManagerOptionStateDirectoryKey", \.stateDirectory, .absolutePath),
    ]
}
