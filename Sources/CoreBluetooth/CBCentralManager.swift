public import BlueCapKit
public import Foundation
import BlueCapFutures
public import BlueCapGATT

/// Which devices a manager reports the connections of, to ``CBCentralManager/registerForConnectionEvents(options:)``.
public struct CBConnectionEventMatchingOption: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    /// Those that have one of these services: `[CBUUID]`.
    public static let serviceUUIDs = Self(rawValue: "kCBConnectionEventMatchingOptionServiceUUIDs")
    /// Those with one of these identifiers: `[UUID]`.
    public static let peripheralUUIDs = Self(rawValue: "kCBConnectionEventMatchingOptionPeripheralUUIDs")
}

/// Discovers peripherals, and manages their connections.
///
/// Differences from iOS are in Documentation/CoreBluetooth.md.
open class CBCentralManager: CBManager {
    /// Features that depend on the hardware.
    public struct Feature: OptionSet, Sendable {
        public let rawValue: UInt

        public init(rawValue: UInt) { self.rawValue = rawValue }

        /// Scans and connections with Bluetooth 5's extended advertising, asked for by the program.
        public static let extendedScanAndConnect = Feature(rawValue: 1)
    }

    private struct Fields {
        weak var delegate: (any CBCentralManagerDelegate)?
        /// The objects of the program, by BlueCapKit's object of the same peripheral, which each of them retains.
        var peripherals = WeakTable<ObjectIdentifier, CBPeripheral>()
        /// Those that the program need not retain until the end of their connection: it has cancelled the connection, or it
        /// has no method for the restored ones.
        var retained: Set<CBPeripheral> = []
        /// Those whose link was lost, as long as the end of the power may be the cause.
        var lost: [CBPeripheral] = []
        /// The number of the last scan. Reports of an earlier one are not delivered.
        var scan = 0
        /// Which connections are reported; `nil` for none.
        var eventMatch: (identifiers: Set<UUID>, services: Set<CBUUID>)?
        /// The scan of an earlier process, until the state is `poweredOn`.
        var restoredScan: (services: [CBUUID], options: [String: AnyObject])?
    }

    /// BlueCapKit's manager, for what Core Bluetooth does not have.
    ///
    /// Its promises are completed on the delegate's queue. Connections and subscriptions that the program makes with it
    /// directly are not reported to the delegate.
    public let blueCap: CentralManager
    let callbacks: DelegateQueue
    private let fields: Locked<Fields>

    private static let defaults = Locked(CentralManager.Configuration(pairingPolicy: .justWorks))

    /// The configuration of the managers that the process creates from now on without one; their options precede. Its policy
    /// is `PairingPolicy.justWorks`. An invalid value makes each scan fail.
    ///
    /// ```swift
    /// CBCentralManager.defaultConfiguration.adapter = "hci1"  // once, when the program starts
    /// ```
    public static var defaultConfiguration: CentralManager.Configuration {
        get { defaults.withLock { $0 } }
        set { defaults.withLock { $0 = newValue } }
    }

    /// Creates a manager without a delegate, whose queue is the main queue.
    override public convenience init() { self.init(delegate: nil, queue: nil) }

    /// - Parameters:
    ///   - delegate: Is not retained.
    ///   - queue: The queue on which the delegate is called; `nil` for the main queue.
    ///   - options: `CBCentralManagerOptionRestoreIdentifierKey`. The rest is that of ``defaultConfiguration``.
    public init(delegate: (any CBCentralManagerDelegate)?, queue: DispatchQueue?, options: [String: Any]? = nil) {
        callbacks = DelegateQueue(queue)
        fields = Locked(Fields(delegate: delegate))
        let configuration =
            options?[Self.configurationKey] as? CentralManager.Configuration ?? Self.defaultConfiguration
        let options = Self.options(options, of: "Central")
        blueCap = CentralManager(queue: callbacks.queue, options: options, over: configuration)
        super.init()
        let manager = Handle(self)
        guard configuration.restoreIdentifier != nil || options[CBCentralManagerOptionRestoreIdentifierKey] != nil
        else {
            followState()
            return
        }
        let restored: Future<(peripherals: [Peripheral], scannedServices: [CBUUID], options: [String: AnyObject])> =
            blueCap.whenStateRestored()
        restored.onComplete(context: callbacks) { result in
            switch result {
            case .success(let state): manager.object?.restored(state)
            case .failure(let error): Self.log("\(error)")
            }
            manager.object?.followState()
        }
    }

    /// Creates a manager with a configuration of BlueCapKit, in place of the default one.
    /// - Throws: `ConfigurationError` if the configuration has an invalid value.
    public convenience init(
        delegate: (any CBCentralManagerDelegate)?, queue: DispatchQueue?, configuration: CentralManager.Configuration
    ) throws(ConfigurationError) {
        try configuration.check()
        self.init(delegate: delegate, queue: queue, options: [Self.configurationKey: configuration])
    }

    /// Receives the manager's events. It is not retained.
    open var delegate: (any CBCentralManagerDelegate)? {
        get { fields.withLock { $0.delegate } }
        set { fields.withLock { $0.delegate = newValue } }
    }

    /// Whether a scan is active.
    open var isScanning: Bool { blueCap.isScanning }

    /// Whether the hardware has these features. Always false: BlueZ uses extended advertising without being asked.
    open class func supports(_ features: Feature) -> Bool { features.isEmpty }

    // MARK: Scanning

    /// Starts a scan, or replaces the present one.
    /// - Parameters:
    ///   - serviceUUIDs: The services of which a peripheral must advertise one; `nil` for all peripherals.
    ///   - options: `CBCentralManagerScanOptionAllowDuplicatesKey`.
    open func scanForPeripherals(withServices serviceUUIDs: [CBUUID]?, options: [String: Any]? = nil) {
        guard isReady(for: "scanForPeripherals") else { return }
        defer { callbacks.propertyChanged() }
        let scan = fields.withLock { fields in
            fields.scan += 1
            return fields.scan
        }
        blueCap.stopScanning()
        let manager = Handle(self)
        blueCap.startScanningForReports(forServiceUUIDs: serviceUUIDs, options: options)
            .onComplete(context: callbacks) { result in
                switch result {
                case .success(let report): manager.object?.discovered(report, by: scan)
                case .failure(let error): Self.log("\(error)")
                }
            }
    }

    /// Ends the scan. No peripheral is reported after the call if it is made on the delegate's queue.
    open func stopScan() {
        fields.withLock { $0.scan += 1 }
        blueCap.stopScanning()
        callbacks.propertyChanged()
    }

    private func discovered(_ report: ScanReport, by scan: Int) {
        guard fields.withLock({ $0.scan == scan }) else { return }
        let peripheral = peripheral(report.peripheral)
        peripheral.nameMayHaveChanged()
        peripheral.sighted(rssi: report.rssi)
        delegate?.centralManager(
            self, didDiscover: peripheral, advertisementData: report.advertisements.coreBluetooth,
            rssi: NSNumber(value: report.rssi ?? 127))
    }

    // MARK: Connecting

    /// Connects, however long that takes: the request stays until ``cancelPeripheralConnection(_:)``, also while the adapter is
    /// off.
    ///
    /// As on iOS the program must retain the peripheral; if it is released, the connection is ended. A peripheral of another
    /// manager is ignored, with a message. The options are `CBConnectPeripheralOptionEnableAutoReconnect` and
    /// `CBConnectPeripheralOptionStartDelayKey`.
    open func connect(_ peripheral: CBPeripheral, options: [String: Any]? = nil) {
        guard isOwn(peripheral) else { return }
        defer { callbacks.propertyChanged() }
        let delay = options?[CBConnectPeripheralOptionStartDelayKey] as? NSNumber
        let reconnects = options?[CBConnectPeripheralOptionEnableAutoReconnect] as? NSNumber
        peripheral.connect(after: delay?.doubleValue ?? 0, reconnecting: reconnects?.boolValue ?? false)
    }

    /// Ends a connection, or a request for one. The delegate receives `didDisconnectPeripheral` without an error.
    open func cancelPeripheralConnection(_ peripheral: CBPeripheral) {
        guard isOwn(peripheral) else { return }
        peripheral.cancel()
        callbacks.propertyChanged()
    }

    private func isOwn(_ peripheral: CBPeripheral) -> Bool {
        if peripheral.manager === self { return true }
        Self.misuse("\(peripheral) is not a peripheral of \(self)")
        return false
    }

    /// Asks for `connectionEventDidOccur` of the matching peripherals; `nil` for none.
    ///
    /// The connections of this manager are reported, and not those of other programs.
    open func registerForConnectionEvents(options: [CBConnectionEventMatchingOption: Any]? = nil) {
        let match = options.map { options in
            (
                identifiers: Set(options[.peripheralUUIDs] as? [UUID] ?? []),
                services: Set(options[.serviceUUIDs] as? [CBUUID] ?? [])
            )
        }
        fields.withLock { $0.eventMatch = match }
    }

    func report(_ event: CBConnectionEvent, of peripheral: CBPeripheral) {
        guard let match = fields.withLock({ $0.eventMatch }) else { return }
        let services = peripheral.blueCap.advertisements.serviceUUIDs ?? []
        if match.identifiers.contains(peripheral.identifier) || services.contains(where: match.services.contains) {
            delegate?.centralManager(self, connectionEventDidOccur: event, for: peripheral)
        }
    }

    // MARK: Retrieving

    /// Returns the peripherals with these identifiers that BlueZ or this manager knows.
    open func retrievePeripherals(withIdentifiers identifiers: [UUID]) -> [CBPeripheral] {
        guard isReady(for: "retrievePeripherals") else { return [] }
        return blueCap.retrievePeripherals(withIdentifiers: identifiers).map(peripheral)
    }

    /// Returns the peripherals that are connected to the adapter, by any program, and have one of these services.
    ///
    /// The program must connect them before it uses them.
    open func retrieveConnectedPeripherals(withServices serviceUUIDs: [CBUUID]) -> [CBPeripheral] {
        guard isReady(for: "retrieveConnectedPeripherals") else { return [] }
        return blueCap.retrieveConnectedPeripherals(withServices: serviceUUIDs).map(peripheral)
    }

    /// Returns the object of this manager for a peripheral of ``blueCap``: the same one as long as it is retained.
    public func peripheral(_ blueCap: Peripheral) -> CBPeripheral {
        fields.withLock { $0.peripherals.object(ObjectIdentifier(blueCap)) { CBPeripheral(blueCap, of: self) } }
    }

    /// Retains peripherals until the end of their connections has been reported.
    func retain(_ peripherals: [CBPeripheral]) {
        fields.withLock { $0.retained.formUnion(peripherals) }
    }

    func release(_ peripheral: CBPeripheral) {
        let released = fields.withLock { $0.retained.remove(peripheral) }
        withExtendedLifetime(released) {}
    }

    /// Whether the program has an object for this peripheral. The object is not released under the lock.
    func hasObject(of blueCap: Peripheral) -> Bool {
        fields.withLock { $0.peripherals[ObjectIdentifier(blueCap)] } != nil
    }

    // MARK: State; on the delegate's queue

    private func followState() {
        let manager = Handle(self)
        blueCap.whenStateChanges().onSuccess(context: callbacks) { state in
            manager.object?.stateChanged(CBManagerState(state))
        }
    }

    private func stateChanged(_ new: CBManagerState) {
        // BlueCapKit's scan would continue when the power returns. Programs for iOS start another one.
        if new != .poweredOn { stopScan() }
        setState(new)
        callbacks.observers.check()
        if new == .poweredOn, let scan = fields.withLock({ $0.restoredScan }) {
            fields.withLock { $0.restoredScan = nil }
            scanForPeripherals(withServices: scan.services, options: scan.options)
        }
        delegate?.centralManagerDidUpdateState(self)
        if new != .poweredOn { for peripheral in fields.withLock({ $0.lost }) { peripheral.reportLoss() } }
    }

    /// How long the end of a link is not reported while the end of the power may be its cause, in seconds: BlueZ reports the
    /// ends of the links first, and programs for iOS expect the state first.
    private static let lossDelay: TimeInterval = 0.25

    /// Reports a lost link after the state, if the state is changing, and otherwise a moment later.
    func linkLost(of peripheral: CBPeripheral) {
        guard state == .poweredOn else { return peripheral.reportLoss() }
        fields.withLock { $0.lost.append(peripheral) }
        let (callbacks, peripheral) = (callbacks, Retained(peripheral))
        _ = blueCap.timer(after: Self.lossDelay) { callbacks.async { peripheral.value.reportLoss() } }
    }

    func lossReported(of peripheral: CBPeripheral) {
        fields.withLock { $0.lost.removeAll { $0 === peripheral } }
    }

    private func restored(
        _ state: (peripherals: [Peripheral], scannedServices: [CBUUID], options: [String: AnyObject])
    ) {
        var dictionary: [String: Any] = [:]
        let peripherals = state.peripherals.map(peripheral)
        for peripheral in peripherals { peripheral.restore() }
        if !peripherals.isEmpty { dictionary[CBCentralManagerRestoredStatePeripheralsKey] = peripherals }
        if !state.scannedServices.isEmpty {
            dictionary[CBCentralManagerRestoredStateScanServicesKey] = state.scannedServices
            dictionary[CBCentralManagerRestoredStateScanOptionsKey] = state.options as [String: Any]
            let scan = Retained((services: state.scannedServices, options: state.options))
            fields.withLock { $0.restoredScan = scan.value }
        }
        if !dictionary.isEmpty { delegate?.centralManager(self, willRestoreState: dictionary) }
    }
}

extension PeripheralAdvertisements {
    /// The data in the form of Core Bluetooth's dictionary.
    fileprivate var coreBluetooth: [String: Any] {
        // BlueZ does not export whether a peripheral is connectable. Programs that look for it connect then.
        packet.merging([CBAdvertisementDataIsConnectable: NSNumber(value: true)]) { known, _ in known }
    }
}
