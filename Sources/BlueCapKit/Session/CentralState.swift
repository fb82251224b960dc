import BlueZ
import Foundation
import GATT
import Reactor

/// Names a scan of a manager.
struct ScanNumber: Hashable {
    let rawValue: UInt32
}

/// All that a `CentralManager` knows, as a value: what happened goes in, what is to be done comes out.
///
/// It speaks of scans and peripherals by their ids; promises, clocks and the bus are the session's.
struct CentralState {
    enum Timer: Hashable {
        case scanTimeout(ScanNumber)
        case adapterGrace, expirySweep
        case peripheral(PeripheralKey, PeripheralState.Timer)
    }

    enum Effect: Equatable {
        case announce(ManagerState)
        /// Asks the daemon's shared discovery for this scan, and reports who is being heard already.
        // Indirect: a sighting is an effect too, and is to stay small.
        indirect case startScan(ScanNumber, ScanRequest)
        case stopScan(ScanNumber)
        case startTimer(Timer, TimeInterval)
        case cancelTimer(Timer)
        case discovered(PeripheralKey, ScanNumber)
        /// Ends a scan's stream, with this failure as its last element where there is one.
        indirect case finish(ScanNumber, CentralManagerError?)
        case expired(PeripheralKey)
        /// The list lets go of this peripheral.
        case drop(PeripheralKey)
        indirect case peripheral(PeripheralKey, PeripheralState.Effect)
    }

    struct Scan: Equatable {
        let id: ScanNumber
        let request: ScanRequest
        let hasTimeout: Bool
    }

    /// How often a scanning manager looks for peripherals that fell silent, in seconds.
    static let sweepInterval: TimeInterval = 5
    /// How long a returning daemon has to find its adapters, in seconds.
    static let adapterGrace: TimeInterval = 5

    private var machine = ManagerStateMachine()
    private(set) var scan: Scan?
    private(set) var peripherals: PeripheralTable<Device1>
    private var lastScan: UInt32 = 0
    /// Those that were asked for something.
    private var dealings = KeyedTable<PeripheralState>()
    /// What BlueZ says of devices that have a link, whoever made it, and of those we deal with.
    private var facts: [PeripheralKey: PeripheralState.Facts] = [:]

    /// Devices that BlueZ knew when this manager came, that it remembers, or that have had a link: those that can be
    /// retrieved. Whoever is merely heard is not among them, or a busy place would be kept twice.
    private var known = KeyedTable<Device1>()
    /// Those whose handle died while something was under way.
    private var released: Set<PeripheralKey> = []
    /// Where the chance in back-offs begins.
    private let backOffSeed: UInt64

    init(maximumPeripherals: Int, backOffSeed: UInt64 = 0) {
        peripherals = PeripheralTable(capacity: maximumPeripherals)
        self.backOffSeed = backOffSeed
    }

    var managerState: ManagerState { machine.state }

    // MARK: Daemon and adapter

    /// Forgets how things stood, so that every state is announced anew.
    mutating func reset() -> [Effect] {
        machine = ManagerStateMachine()
        return stopScan() + [.cancelTimer(.adapterGrace)]
    }

    mutating func event(_ event: ManagerStateMachine.Event) -> [Effect] {
        machine.event(event).flatMap { effect -> [Effect] in
            switch effect {
            case .announce(let state): [.announce(state)] + tellPeripherals { $0.managerStateChanged(state) }
            case .startGrace: [.startTimer(.adapterGrace, Self.adapterGrace)]
            case .cancelGrace: [.cancelTimer(.adapterGrace)]
            }
        }
    }

    // MARK: Scans

    /// Begins a scan: its number and what follows, or the reason why there is none.
    mutating func startScan(
        _ request: ScanRequest, timeout: TimeInterval
    ) -> Result<(ScanNumber, [Effect]), CentralManagerError> {
        guard scan == nil else { return .failure(.isScanning) }
        switch managerState {
        case .unknown, .resetting, .poweredOff: return .failure(.isPoweredOff)
        case .unsupported: return .failure(.unsupported)
        case .unauthorized: return .failure(.unauthorized)
        case .poweredOn: break
        }
        lastScan += 1
        let id = ScanNumber(rawValue: lastScan)
        scan = Scan(id: id, request: request, hasTimeout: timeout.isFinite)
        var effects: [Effect] = [.startScan(id, request), .startTimer(.expirySweep, Self.sweepInterval)]
        if timeout.isFinite { effects.append(.startTimer(.scanTimeout(id), timeout)) }
        return .success((id, effects))
    }

    mutating func stopScan() -> [Effect] { endScan(nil) }

    /// The daemon's discovery gave up on this scan.
    mutating func scanFailed(_ id: ScanNumber, _ error: CentralManagerError) -> [Effect] {
        scan?.id == id ? endScan(error) : []
    }

    private mutating func endScan(_ error: CentralManagerError?) -> [Effect] {
        guard let ended = scan else { return [] }
        scan = nil
        var effects: [Effect] = [.stopScan(ended.id), .cancelTimer(.expirySweep)]
        if ended.hasTimeout { effects.append(.cancelTimer(.scanTimeout(ended.id))) }
        effects.append(.finish(ended.id, error))
        return effects
    }

    mutating func fired(_ timer: Timer, at now: Instant) -> [Effect] {
        switch timer {
        case .adapterGrace:
            return event(.graceEnded)
        case .scanTimeout(let id):
            return scanFailed(id, .peripheralScanTimeout)
        case .expirySweep:
            guard scan != nil else { return [] }
            var effects: [Effect] = []
            for key in peripherals.silent(at: now) { expire(key, into: &effects) }
            effects.append(.startTimer(.expirySweep, Self.sweepInterval))
            return effects
        case .peripheral(let key, let timer):
            return dealings[key] == nil ? [] : peripheral(key) { $0.fired(timer) }
        }
    }

    // MARK: Peripherals

    /// Reads what is known of a peripheral, where it lies; `nil` where nothing is.
    mutating func read<R>(
        _ key: PeripheralKey, _ body: (borrowing PeripheralTable<Device1>.Record) -> R?
    ) -> R? {
        peripherals.read(key, body)
    }

    /// BlueZ has told something of a device: `fields` have new values; `wasHeard` where that came from its radio.
    mutating func deviceChanged(
        _ key: PeripheralKey, _ device: borrowing Device1, fields: Device1.Fields, wasHeard: Bool, at now: Instant,
        date: @autoclosure () -> Date, into effects: inout [Effect]
    ) {
        let scan = scan
        // A name or a service may come by itself, after the sighting that it belongs to.
        let isSighting =
            wasHeard || (device.fields.contains(.rssi) && !fields.isDisjoint(with: [.name, .alias, .uuids]))
        let isKnown = peripherals.update(key) { record -> Bool in
            record.values.take(fields, from: device)
            if wasHeard { record.hear(at: now) }
            guard record.isListed else { return false }
            guard let scan, isSighting, scan.request.allowsDuplicates || record.reportedBy != scan.id,
                scan.request.accepts(device)
            else { return true }
            record.reportedBy = scan.id
            effects.append(.discovered(key, scan.id))
            return true
        }
        guard isKnown != true, let scan, isSighting, scan.request.accepts(device) else { return }
        let evicted = peripherals.list(key, reportedBy: scan.id, values: copy device, at: now, date: date())
        for key in evicted { effects.append(.drop(key)) }
        effects.append(.discovered(key, scan.id))
    }

    // MARK: Retrieving

    /// BlueZ has added a device, or changed it in something that matters to those who retrieve.
    mutating func deviceKnown(_ key: PeripheralKey, _ device: borrowing Device1) { known[key] = copy device }

    mutating func isKnown(_ key: PeripheralKey) -> Bool { known.read(key) { _ in true } ?? false }

    /// The keys of the peripherals that BlueZ or this manager knows on an adapter and that `isWanted` picks.
    func keys(on adapter: ObjectKey, where isWanted: (PeripheralKey, borrowing Device1) -> Bool) -> [PeripheralKey] {
        var keys: [PeripheralKey] = []
        peripherals.forEach { key, record in
            if isWanted(key, record.values) { keys.append(key) }
        }
        let found = Set(keys)
        known.forEach { key, device in
            if device.adapter == adapter, !found.contains(key), isWanted(key, device) { keys.append(key) }
        }
        return keys
    }

    /// Everybody of whom something is known, the first discovered first.
    var recordKeys: [PeripheralKey] {
        var records: [(key: PeripheralKey, date: Date)] = []
        peripherals.forEach { key, record in records.append((key, record.discoveredAt)) }
        return records.sorted { $0.date < $1.date }.map(\.key)
    }

    /// Puts a peripheral on the list that was retrieved.
    mutating func list(_ key: PeripheralKey, at now: Instant, date: Date) -> [Effect] {
        guard peripherals[key] == nil else { return relist(key) }
        guard let values = known[key] else { return [] }
        return peripherals.list(key, reportedBy: nil, values: values, at: now, date: date).map { .drop($0) }
    }

    // MARK: Silence

    /// BlueZ has dropped a device.
    ///
    /// While we scan that means it has fallen silent. In every other situation BlueZ removes devices for reasons of its
    /// own (the scan's end, a restart), and who was found a moment ago stays on the list.
    mutating func deviceRemoved(_ key: PeripheralKey, into effects: inout [Effect]) {
        known[key] = nil
        guard scan != nil, managerState == .poweredOn, peripherals[key]?.isInUse != true else { return }
        expire(key, into: &effects)
    }

    private mutating func expire(_ key: PeripheralKey, into effects: inout [Effect]) {
        guard peripherals.unlist(key) else { return }
        effects.append(.expired(key))
        effects.append(.drop(key))
    }

    /// The manager ends: the list is emptied, and only who is held elsewhere stays readable.
    mutating func forgetAll() {
        for (key, _) in peripherals.listed({ _ in }) { _ = peripherals.unlist(key) }
    }

    /// Nobody holds this peripheral's handle any more. What is under way with it comes to its end first.
    mutating func release(_ key: PeripheralKey) {
        peripherals.release(key)
        guard let isInUse = dealings.read(key, { $0.isInUse }) else { return }
        if isInUse { released.insert(key) } else { endDealing(with: key) }
    }

    private mutating func endDealing(with key: PeripheralKey) {
        released.remove(key)
        dealings[key] = nil
        if facts[key]?.isConnected != true { facts[key] = nil }
    }

    // MARK: Dealings

    /// Decides about one peripheral. Its state begins with what BlueZ says of it.
    mutating func peripheral(
        _ key: PeripheralKey, _ decision: (inout PeripheralState) -> [PeripheralState.Effect]
    ) -> [Effect] {
        if let effects = dealings.update(key, { decision(&$0) + $0.follow() }) {
            noteUse(of: key)
            return effects.map { .peripheral(key, $0) }
        }
        var state = PeripheralState(backOff: BackOff(seed: backOffSeed ^ key.rawValue))
        let effects =
            state.managerStateChanged(managerState) + state.factsChanged(firstFacts(of: key)) + decision(&state)
        dealings[key] = state
        noteUse(of: key)
        return effects.map { .peripheral(key, $0) }
    }

    /// A characteristic's newest value, as its notifications brought it.
    mutating func notified(_ subject: NotificationChannels.Subject, _ value: Data) {
        dealings.update(subject.peripheral) { $0.attributes.notified(subject.characteristic, value) }
    }

    /// Whether a peripheral was asked for something.
    mutating func deals(with key: PeripheralKey) -> Bool { dealings.read(key) { _ in true } ?? false }

    /// A peripheral that somebody is connected to, or wants to be, stays on the list.
    private mutating func noteUse(of key: PeripheralKey) {
        let isInUse = dealings.read(key) { $0.isInUse } ?? false
        _ = peripherals.update(key) { $0.isInUse = isInUse }
        // Somebody may hold it again.
        if !isInUse, !released.isEmpty, released.contains(key), peripherals[key] == nil { endDealing(with: key) }
    }

    /// Puts a peripheral on the list again that had left it.
    mutating func relist(_ key: PeripheralKey) -> [Effect] { peripherals.relist(key).map { .drop($0) } }

    /// The user is done with a peripheral.
    mutating func forget(_ key: PeripheralKey) -> [Effect] { peripherals.unlist(key) ? [.drop(key)] : [] }

    /// The end of a link is a sign of life, too.
    mutating func linkEnded(_ key: PeripheralKey, at now: Instant) {
        _ = peripherals.update(key) { $0.lastHeard = now }
    }

    /// Where a dealing begins: a device without a link is known from its sightings alone.
    private mutating func firstFacts(of key: PeripheralKey) -> PeripheralState.Facts {
        if let known = facts[key] { return known }
        let device = peripherals.read(key) { ObjectKey(device: key.address, on: $0.values.adapter) }
        let first = PeripheralState.Facts(device: device)
        facts[key] = first
        return first
    }

    /// Reads from what was decided about a peripheral; `nil` where nothing was.
    mutating func readDealing<R>(with key: PeripheralKey, _ body: (borrowing PeripheralState) -> R?) -> R? {
        dealings.read(key, body) ?? nil
    }

    /// Changes what was decided about a peripheral, without anything following from it; `nil` where nothing was.
    mutating func updateDealing<R>(with key: PeripheralKey, _ change: (inout PeripheralState) -> R) -> R? {
        dealings.update(key, change)
    }

    /// BlueZ has told something of a device's object or link.
    mutating func factsChanged(_ new: PeripheralState.Facts, of key: PeripheralKey) -> [Effect] {
        guard dealings.read(key, { _ in true }) == true else {
            if new.isConnected {
                facts[key] = new
            } else if !facts.isEmpty {
                facts[key] = nil
            }
            return []
        }
        facts[key] = new
        return peripheral(key) { $0.factsChanged(new) }
    }

    private mutating func tellPeripherals(
        _ event: (inout PeripheralState) -> [PeripheralState.Effect]
    ) -> [Effect] {
        dealings.keys.flatMap { peripheral($0, event) }
    }

    /// All that BlueZ knows of an adapter's devices: what is not there any more has no link either.
    mutating func factsReplaced(_ all: [PeripheralKey: PeripheralState.Facts]) -> [Effect] {
        facts = all.filter { $0.value.isConnected }
        return dealings.keys.flatMap { key in
            let new = all[key] ?? PeripheralState.Facts()
            facts[key] = new
            return peripheral(key) { $0.factsChanged(new) }
        }
    }

    /// Whether BlueZ has a link to a peripheral, whoever made it.
    var connectedKeys: [PeripheralKey] { facts.filter { $0.value.isConnected }.map(\.key) }

    /// The peripherals that were asked for something.
    var dealingKeys: [PeripheralKey] { dealings.keys }

    /// The manager ends, and with it every dealing.
    mutating func closePeripherals(keepingLinks: Bool) -> [Effect] {
        defer { dealings = KeyedTable() }
        return tellPeripherals { $0.closed(keepingLinks: keepingLinks) }
    }
}
