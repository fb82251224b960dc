public import Logging

extension CentralManager {
    /// How a manager is created.
    ///
    /// ```swift
    /// let manager = try CentralManager(configuration: .init(adapter: "hci1", pairingPolicy: .justWorks))
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
        /// It is used only together with ``restoreIdentifier``, and created if it is missing.
        public var stateDirectory: String?
        /// The largest number of peripherals that the manager remembers, 1 to 1 000 000; 16 384 by default. Above it, the
        /// manager forgets those first from which it has received nothing for the longest time.
        public var maximumPeripherals: Int
        /// What the manager replies when a pairing needs an answer; ``PairingPolicy/reject`` by default.
        public var pairingPolicy: PairingPolicy
        /// Whether links that the manager opened stay up when it is deallocated; `false` by default.
        ///
        /// `bluetoothd` keeps a link after the program that requested it has ended, and a connected peripheral no longer
        /// advertises, so a scan would not find it. The manager never ends links that other programs opened.
        public var keepsLinks: Bool
        /// What the manager logs, and to which handler; `nil`, the default, for nothing.
        ///
        /// | level | what is logged |
        /// |---|---|
        /// | `error` | a scan that BlueZ has refused; a kept state that cannot be restored |
        /// | `warning` | Bluetooth cannot be used; attempts to connect are given up; a subscription has failed; a scan was restarted |
        /// | `notice` | a link was lost; an attempt timed out; a subscription was resumed, with a gap |
        /// | `info` | Bluetooth can be used; scans, links, subscriptions and pairings that begin and end; operations that fail |
        /// | `debug` | the steps: attempts, searches, discoveries of services, subscriptions that are requested |
        /// | `trace` | each discovered peripheral, read and write, with the length of what is written |
        ///
        /// The metadata has `adapter`, `peripheral` (its address), `service`, `characteristic` and `operation`, where there
        /// is one. Values of characteristics, passkeys and keys are never logged. The handler is called on the thread that
        /// communicates with the bus, or inside a read or a write on the thread that makes it, and must return quickly.
        public var logger: Logger?

        /// Creates a configuration; each property has its default unless it is given. The manager checks the values.
        public init(
            busAddress: String? = nil, adapter: String? = nil, restoreIdentifier: String? = nil,
            stateDirectory: String? = nil, maximumPeripherals: Int = 16_384, pairingPolicy: PairingPolicy = .reject,
            keepsLinks: Bool = false, logger: Logger? = nil
        ) {
            self.busAddress = busAddress
            self.adapter = adapter
            self.restoreIdentifier = restoreIdentifier
            self.stateDirectory = stateDirectory
            self.maximumPeripherals = maximumPeripherals
            self.pairingPolicy = pairingPolicy
            self.keepsLinks = keepsLinks
            self.logger = logger
        }
    }
}

extension CentralManager.Configuration: OptionSettable {
    package static let standard = Self()
    package static let rules: [OptionRule<Self>] = [
        OptionRule("busAddress", "CentralManagerOptionBusAddressKey", \.busAddress, .busAddress),
        OptionRule("adapter", "CentralManagerOptionAdapterKey", \.adapter, .adapter),
        OptionRule("pairingPolicy", "CentralManagerOptionPairingPolicyKey", \.pairingPolicy, .pairingPolicy),
        OptionRule(
            "maximumPeripherals", "CentralManagerOptionMaximumPeripheralsKey", \.maximumPeripherals,
            .integer(1...1_000_000, "peripherals")),
        OptionRule("keepsLinks", "CentralManagerOptionKeepsLinksKey", \.keepsLinks, .bool),
        OptionRule("logger", "CentralManagerOptionLoggerKey", \.logger, .logger),
        OptionRule(
            "restoreIdentifier", CBCentralManagerOptionRestoreIdentifierKey, \.restoreIdentifier, .notEmpty),
        OptionRule("stateDirectory", "CentralManagerOptionStateDirectoryKey", \.stateDirectory, .absolutePath),
    ]
}
