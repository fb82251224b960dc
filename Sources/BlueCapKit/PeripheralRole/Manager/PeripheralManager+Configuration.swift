import BlueCapGATT
public import Logging

extension PeripheralManager {
    /// How a manager is created.
    ///
    /// ```swift
    /// let manager = try PeripheralManager(configuration: .init(adapter: "hci1", pairingPolicy: .justWorks))
    /// ```
    public struct Configuration: Sendable {
        /// The D-Bus address of the bus to use, such as a simulator's; `nil`, the default, for the system bus
        /// (`DBUS_SYSTEM_BUS_ADDRESS` is honoured).
        public var busAddress: String?
        /// The adapter to use: a name such as `hci0`, or an address such as `00:1A:7D:DA:71:13`; `nil`, the default, for the
        /// adapter with the lowest number, which the manager then keeps, by its address, while it is present.
        ///
        /// If several adapters have one address, the manager uses the one that it used last, by its name, or else the one
        /// with the lowest number. That also holds if the property is their address.
        public var adapter: String?
        /// The identifier, not empty, under which the state is kept and restored; `nil`, the default, keeps no state.
        public var restoreIdentifier: String?
        /// The folder of the kept state, an absolute path, such as the one that systemd passes to a service in
        /// `STATE_DIRECTORY`; `nil`, the default, for `$XDG_STATE_HOME/bluecap` or `~/.local/state/bluecap`.
        ///
        /// It is used only together with ``restoreIdentifier``, and created if it is missing. It must belong to the user of
        /// this process or to root, and must not be writable by others unless it is sticky. A symbolic link is followed only
        /// if it belongs to the system, as those of systemd do. Otherwise no state is restored or kept.
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
