import BlueCapBlueZ
import BlueCapFutures
import Foundation
import BlueCapReactor

/// Everything that a `CentralManager` decides, as a value: events go in, orders come out.
///
/// It uses the ids of scans and peripherals; promises, clocks and the bus belong to the session.
struct CentralState {
    struct Scan: Equatable {
        let id: ScanNumber
        let request: ScanRequest
        let hasTimeout: Bool
        /// Whether a peripheral was reported; the time-out is an error only if none was.
        var hasReported = false
    }

    /// How often a scanning manager checks for peripherals that have become silent, in seconds.
    static let sweepInterval: TimeInterval = 5
    /// The time that a restarted daemon has to find its adapters, in seconds.
    static let adapterGrace: TimeInterval = 5

    private var machine = ManagerStateMachine()
    /// At most one of `startScanning`, and one that ranges beacons, which is independent of it.
    private(set) var scans: [Scan] = []
    private var lastScan: UInt32 = 0
    /// All that is known of each peripheral. The session adds objects, streams and calls that have not ended.
    var peripherals: PeripheralTable
    /// Whether the manager has ended: no peripheral has a state any more.
    private var hasEnded = false
    /// An index: the peripherals whose devices have another address since they were bonded, by that address.
    private var aliases: [PeripheralKey: PeripheralKey] = [:]
    private let backOffSeed: UInt64
    private(set) var policy = PairingPolicy.reject

    init(maximumPeripherals: Int, backOffSeed: UInt64 = 0) {
        peripherals = PeripheralTable(capacity: maximumPeripherals)
        self.backOffSeed = backOffSeed
    }

    var managerState: ManagerState { machine.state }

    mutating func policyChanged(_ policy: PairingPolicy) {
        self.policy = policy
        for (_, use) in peripherals.used { use.state.policyChanged(policy) }
    }

    mutating func bondChanged(of key: PeripheralKey, _ change: PairingChange) {
        if !change.isBonded { return bondEnded(of: key) }
        if change.origin != .elsewhere { peripherals.change(key) { $0.isBondOurs = true } }
    }

    mutating func bondEnded(of key: PeripheralKey) { peripherals.change(key) { $0.isBondOurs = false } }

    /// The peripherals with a bond that this manager has made.
    var ownBonds: Set<PeripheralKey> {
        Set(peripherals.compactMap { key, record in record.isBondOurs ? key : nil })
    }

    // MARK: Daemon and adapter

    /// Resets the manager's state, so that every state is announced again.
    mutating func reset(into orders: inout Orders) {
        machine = ManagerStateMachine()
        stopScans(into: &orders)
        eachPeripheral(into: &orders) { $0.endPairing(.cancelled, into: &$1) }
        orders.append(.rejectRequests)
        orders.append(.cancelTimer(.adapterGrace))
    }

    mutating func event(_ event: ManagerStateMachine.Event, into orders: inout Orders) {
        for effect in machine.event(event) {
            switch effect {
            case .announce(let state):
                orders.append(.announce(state))
                eachPeripheral(into: &orders) { $0.managerStateChanged(state, into: &$1) }
            case .startGrace: orders.append(.startTimer(.adapterGrace, Self.adapterGrace))
            case .cancelGrace: orders.append(.cancelTimer(.adapterGrace))
            }
        }
    }

    // MARK: Scans

    /// The scan of `startScanning`, or the one that ranges beacons.
    func scan(ranging: Bool) -> Scan? { scans.first { ($0.request.ranging != nil) == ranging } }

    /// Starts a scan. Returns its number, or the reason why it cannot start.
    mutating func startScan(
        _ request: ScanRequest, timeout: TimeInterval, into orders: inout Orders
    ) -> Result<ScanNumber, CentralManagerError> {
        let isRanging = request.ranging != nil
        guard scan(ranging: isRanging) == nil else { return .failure(isRanging ? .isRanging : .isScanning) }
        if let refusal = scanRefusal { return .failure(refusal) }
        lastScan += 1
        let id = ScanNumber(rawValue: lastScan)
        scans.append(Scan(id: id, request: request, hasTimeout: timeout.isFinite))
        orders.append(.startScan(id, request))
        orders.append(.startTimer(.expirySweep, Self.sweepInterval))
        if timeout.isFinite { orders.append(.startTimer(.scanTimeout(id), timeout)) }
        return .success(id)
    }

    /// The reason why no scan is possible now; `nil` if one is.
    private var scanRefusal: CentralManagerError? {
        switch managerState {
        case .unknown, .resetting, .poweredOff: .isPoweredOff
        case .unsupported: .unsupported
        case .unauthorized: .unauthorized
        case .poweredOn: nil
        }
    }

    mutating func stopScan(ranging: Bool, into orders: inout Orders) {
        if let scan = scan(ranging: ranging) { endScan(scan.id, nil, into: &orders) }
    }

    mutating func stopScans(into orders: inout Orders) {
        for scan in scans { endScan(scan.id, nil, into: &orders) }
    }

    /// Ends a scan, with an error if its discovery has failed.
    mutating func endScan(_ id: ScanNumber, _ error: CentralManagerError?, into orders: inout Orders) {
        guard let index = scans.firstIndex(where: { $0.id == id }) else { return }
        let ended = scans.remove(at: index)
        if scans.isEmpty { orders.append(.cancelTimer(.expirySweep)) }
        if ended.hasTimeout { orders.append(.cancelTimer(.scanTimeout(id))) }
        orders.append(.endScan(id, error))
    }

    // MARK: Timers

    mutating func fired(
        _ timer: Order.Timer, of key: PeripheralKey, at now: Instant, into orders: inout Orders
    ) {
        switch timer {
        case .adapterGrace: event(.graceEnded, into: &orders)
        case .scanTimeout(let id):
            let hasReported = scans.first { $0.id == id }?.hasReported ?? true
            endScan(id, hasReported ? nil : .peripheralScanTimeout, into: &orders)
        case .expirySweep:
            guard isListening else { return }
            for key in peripherals.silent(at: now) { expire(key, into: &orders) }
            orders.append(.startTimer(.expirySweep, Self.sweepInterval))
        case .transfer, .retry, .discovery, .connection, .search, .encryption:
            if hasState(of: key) { peripheral(key, into: &orders) { $0.fired(timer, into: &$1) } }
        }
    }

    // MARK: Peripherals

    /// Returns the peripheral of a device in the object tree.
    ///
    /// A bond changes the address of a device that had a private one, and the path of its object stays until the daemon
    /// ends. A peripheral that was known under the private address stays the same, then and with the next daemon, until
    /// it is released. If the new address has a peripheral already, that one represents the device.
    /// - Parameter address: The address that the device has now.
    mutating func key(of source: ObjectKey, at address: PeripheralKey) -> PeripheralKey {
        if !aliases.isEmpty, let known = aliases[address] {
            if isKnown(known) { return known }
            aliases[address] = nil
        }
        guard let original = source.address, original != address.address else { return address }
        let known = PeripheralKey(original, .random)
        guard isKnown(known), !isKnown(address) else { return address }
        // The address and its type are reported one after the other.
        for (alias, peripheral) in aliases where peripheral == known { aliases[alias] = nil }
        aliases[address] = known
        return known
    }

    private mutating func isKnown(_ key: PeripheralKey) -> Bool { hasState(of: key) || peripherals[key] != nil }

    /// Returns the address that a peripheral's device has now.
    func presentAddress(of key: PeripheralKey) -> PeripheralKey {
        aliases.isEmpty ? key : aliases.first { $0.value == key }?.key ?? key
    }

    /// Whether another object than `source` represents a peripheral. BlueZ has two objects with one address if a device
    /// with a private address turns out to be one that it has a bond with.
    mutating func isDuplicate(_ source: ObjectKey, of key: PeripheralKey) -> Bool {
        guard !aliases.isEmpty, let device = peripherals.read(key, { $0.present }) else { return false }
        return device != source && device.adapter == source.adapter
    }

    /// BlueZ has reported a device. `fields` have new values; `isAdvertised` is whether an advertisement contained them.
    /// - Parameters:
    ///   - source: The device in the object tree.
    ///   - only: The only scan that receives the report, because that scan has just begun.
    mutating func deviceChanged(
        _ key: PeripheralKey, _ source: ObjectKey, _ device: borrowing Device1, fields: Device1.Fields,
        isAdvertised: Bool, at now: Instant, only: ScanNumber? = nil, date: @autoclosure () -> Date,
        into orders: inout Orders
    ) {
        _ = peripherals.update(key) { record in
            record.isPresent(as: source)
            if isAdvertised { record.recordSighting(at: now) }
        }
        // BlueZ may report a name or a service separately, after the sighting that it belongs to.
        let isSighting =
            isAdvertised || (device.fields.contains(.rssi) && !fields.isDisjoint(with: [.name, .alias, .uuids]))
        for index in scans.indices where only == nil || only == scans[index].id {
            if let ranging = scans[index].request.ranging {
                guard isAdvertised else { continue }
                range(
                    key, source, device, fields: fields, by: ranging, scans[index].id, at: now, date: date,
                    into: &orders)
            } else if isSighting {
                report(key, source, device, to: index, at: now, date: date, into: &orders)
            }
        }
    }

    private mutating func report(
        _ key: PeripheralKey, _ source: ObjectKey, _ device: borrowing Device1, to index: Int, at now: Instant,
        date: () -> Date, into orders: inout Orders
    ) {
        let scan = scans[index].id
        let isNew = peripherals.read(key) { $0.isListed ? $0.reportedBy : nil } != scan
        guard isNew || scans[index].request.allowsDuplicates, scans[index].request.accepts(device) else { return }
        if isNew {
            let new = PeripheralRecord.Listing(device: source, discoveredAt: date(), lastReceived: now)
            list(key, reportedBy: scan, or: new, into: &orders)
        }
        scans[index].hasReported = true
        orders.append(
            scans[index].request.wantsReports
                ? .sighted(key, scan, .report(PeripheralAdvertisements(device), rssi: device.rssi, date()))
                : .discovered(key, scan))
    }

    private mutating func range(
        _ key: PeripheralKey, _ source: ObjectKey, _ device: borrowing Device1, fields: Device1.Fields,
        by ranging: Ranging, _ scan: ScanNumber, at now: Instant, date: () -> Date, into orders: inout Orders
    ) {
        let beacons = Beacon.all(in: device, changed: fields)
        guard !beacons.isEmpty else { return }
        var track = peripherals.read(key) { $0.track }
        let ranged = ranging.received(beacons, rssi: device.rssi, at: now, in: scan, track: &track)
        // A listed peripheral keeps the mark of the scan that runs at the same time.
        if !ranged.isEmpty, peripherals.read(key, { $0.isListed }) != true {
            list(key, or: .init(device: source, discoveredAt: date(), lastReceived: now), into: &orders)
        }
        _ = peripherals.update(key) { $0.track = track }
        for beacon in ranged { orders.append(.sighted(key, scan, .beacon(beacon, date()))) }
    }

    // MARK: Silence

    /// Whether the silence of a peripheral means that it is out of range.
    private var isListening: Bool { !scans.isEmpty }

    /// BlueZ has removed a device.
    ///
    /// During a scan this means that the device is out of range or switched off. Otherwise BlueZ removes devices for
    /// reasons of its own (the end of the scan, a restart), and a peripheral that was discovered recently stays on the
    /// list.
    mutating func deviceRemoved(_ key: PeripheralKey, into orders: inout Orders) {
        guard isListening, managerState == .poweredOn, peripherals.use(of: key)?.state.isInUse != true else { return }
        expire(key, into: &orders)
    }

    private mutating func expire(_ key: PeripheralKey, into orders: inout Orders) {
        guard peripherals.unlist(key) else { return }
        orders.append(.expired(key))
        orders.append(.drop(key))
    }

    /// Empties the list when the manager ends. A peripheral with other references keeps its last values, which `read`
    /// returns.
    mutating func forgetAll(_ read: (ObjectKey) -> PeripheralRecord.LastValues?) {
        for key in recordKeys {
            _ = peripherals.update(key) { $0.keepValues(read($0.device)) }
            _ = peripherals.unlist(key)
        }
    }

    // MARK: The states of peripherals

    /// Decides about one peripheral. Its state begins with what BlueZ has reported of it.
    /// - Parameter isOperation: Whether it is an event of an operation on an attribute, which concerns nothing else of the
    ///   peripheral unless it needs attention.
    mutating func peripheral(
        _ key: PeripheralKey, isOperation: Bool = false, into orders: inout Orders,
        _ decision: (inout PeripheralState, inout Orders) -> Void
    ) {
        let use = use(of: key)
        orders.subject.peripheral = key
        orders.status = use.state.status
        defer { orders.subject = Order.Subject() }
        let mayEnd = use.isReleased && use.state.isInUse
        let wasNeeded = isOperation || use.state.isNeeded
        decision(&use.state, &orders)
        if !isOperation || use.state.attributes.needsAttention { use.state.follow(into: &orders) }
        if mayEnd, !use.state.isInUse { orders.append(.endUse) }
        if !wasNeeded, use.state.isNeeded { list(key, into: &orders) }
    }

    /// What the manager has of a peripheral, which is made if the application has not used the peripheral.
    mutating func use(of key: PeripheralKey) -> PeripheralUse {
        if let use = peripherals.use(of: key) { return use }
        var state = PeripheralState(backOff: BackOff(seed: backOffSeed ^ key.rawValue))
        // These events produce no orders before the first request.
        var unused = Orders()
        state.managerStateChanged(managerState, into: &unused)
        state.policyChanged(policy)
        return peripherals.change(key) { record in
            // Of a device without a link or a pairing, only its sightings are known.
            let status = record.status.take() ?? LinkStatus(device: record.listing?.present)
            state.statusChanged(status, into: &unused)
            let use = PeripheralUse(state)
            record.use = use
            return use
        }
    }

    /// The object of this peripheral was released. What the application has begun ends first; the order ``Order/Action/endUse``
    /// then follows those that were given before.
    mutating func release(_ key: PeripheralKey, into orders: inout Orders) -> PeripheralUse.Released? {
        let released = peripherals.release(key)
        guard let use = peripherals.use(of: key) else { return released }
        use.isReleased = true
        orders.subject.peripheral = key
        defer { orders.subject = Order.Subject() }
        if !use.state.isInUse { orders.append(.endUse) }
        return released
    }

    /// Removes the state of a peripheral whose object was released, unless it is used or listed again. Returns what the manager
    /// had of it.
    mutating func endUse(of key: PeripheralKey) -> PeripheralUse? {
        guard let use = peripherals.use(of: key), use.isReleased, !use.state.isInUse, peripherals[key] == nil else {
            return nil
        }
        let status = use.state.status
        peripherals.change(key) { record in
            record.use = nil
            record.status = status.isNotable ? status : nil
        }
        return use
    }

    /// Returns whether the application has used a peripheral.
    mutating func hasState(of key: PeripheralKey) -> Bool { !hasEnded && peripherals.use(of: key) != nil }

    /// Decides about each peripheral that the application has used.
    mutating func eachPeripheral(into orders: inout Orders, _ decision: (inout PeripheralState, inout Orders) -> Void) {
        for (key, _) in hasEnded ? [] : peripherals.used { peripheral(key, into: &orders, decision) }
    }

    // MARK: Reports of BlueZ

    /// BlueZ has reported a device's object or link.
    mutating func statusChanged(_ new: LinkStatus, of key: PeripheralKey, into orders: inout Orders) {
        guard hasState(of: key) else { return peripherals.change(key) { $0.status = new.isNotable ? new : nil } }
        peripheral(key, into: &orders) { $0.statusChanged(new, into: &$1) }
    }

    /// Replaces the reports of all devices of an adapter: a device that is not among them has no link either.
    mutating func statusesReplaced(_ all: [PeripheralKey: LinkStatus], into orders: inout Orders) {
        let known = peripherals.compactMap { key, record in record.use != nil || record.status != nil ? key : nil }
        for key in Set(all.keys).union(known).ordered() {
            statusChanged(all[key] ?? LinkStatus(), of: key, into: &orders)
        }
    }

    /// Returns the devices on other adapters that this manager has connected, or is connecting.
    func ownLinks(besides adapter: ObjectKey) -> [(key: PeripheralKey, device: ObjectKey)] {
        peripherals.used.compactMap { key, use in
            guard let device = use.state.status.device, device.adapter != adapter, use.state.connection.hasOwnLink
            else {
                return nil
            }
            return (key, device)
        }
    }

    /// Ends the state of every peripheral when the manager ends.
    mutating func closePeripherals(keepingLinks: Bool, into orders: inout Orders) {
        eachPeripheral(into: &orders) { $0.closed(keepingLinks: keepingLinks, into: &$1) }
        hasEnded = true
    }

    // MARK: The list

    /// Puts a peripheral on the list that was found before, or gets `new` as its listing.
    mutating func list(
        _ key: PeripheralKey, reportedBy scan: ScanNumber? = nil, or new: PeripheralRecord.Listing? = nil,
        into orders: inout Orders
    ) {
        for key in peripherals.list(key, reportedBy: scan, or: new) { orders.append(.drop(key)) }
    }

    /// Removes a peripheral from the list.
    mutating func forget(_ key: PeripheralKey, into orders: inout Orders) {
        _ = peripherals.unlist(key)
        orders.append(.drop(key))
    }

    /// Returns the peripherals that this manager has found and that BlueZ has removed, or has on another adapter.
    func absent(from adapter: ObjectKey) -> [(key: PeripheralKey, listing: PeripheralRecord.Listing)] {
        peripherals.compactMap { key, record in
            guard let listing = record.listing, listing.present?.adapter != adapter else { return nil }
            return (key, listing)
        }
    }

    /// All peripherals that were listed and are still referenced, in the order of their discovery.
    var recordKeys: [PeripheralKey] {
        peripherals.compactMap { key, record in record.listing.map { (key: key, date: $0.discoveredAt) } }
            .ordered { $0.date < $1.date }.map(\.key)
    }

    // MARK: Restoration

    /// The bonds that this manager has made, which outlive the manager.
    var keptBonds: [RestorationState.Device]? {
        RestorationState.Device.list(ownBonds.map { presentAddress(of: $0) })
    }

    /// Everything that is under way at this moment.
    var kept: RestorationState {
        var kept = RestorationState(scan: scan(ranging: false)?.request)
        kept.connections = peripherals.used.compactMap { $0.use.state.kept(presentAddress(of: $0.key)) }
            .ordered { $0.key.rawValue < $1.key.rawValue }
        kept.bonds = keptBonds
        return kept
    }

    mutating func restore(_ kept: RestorationState, into orders: inout Orders) {
        for bond in kept.bonds ?? [] { peripherals.change(bond.key) { $0.isBondOurs = true } }
        for connection in kept.connections {
            let key = connection.key
            // The arguments of a call that the application has made in the meantime take precedence.
            guard peripherals.use(of: key)?.state.connection.isWanted != true else { continue }
            peripheral(key, into: &orders) { $0.restore(connection, into: &$1) }
        }
    }

    /// Puts a peripheral that the application wants on the list once BlueZ has its device: a restored one.
    mutating func listWanted(
        _ key: PeripheralKey, device: ObjectKey?, at now: Instant, date: @autoclosure () -> Date,
        into orders: inout Orders
    ) {
        guard peripherals.use(of: key)?.state.isNeeded == true, peripherals.read(key, { $0.isListed }) != true else {
            return
        }
        list(key, or: .init(device: device, discoveredAt: date(), lastReceived: now), into: &orders)
    }
}
