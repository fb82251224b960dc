import BlueZ
import Foundation
import GATT
import Reactor

/// Names a scan of a manager.
struct ScanNumber: Hashable, Comparable {
    let rawValue: UInt32

    static func < (left: ScanNumber, right: ScanNumber) -> Bool { left.rawValue < right.rawValue }
}

/// All that a `CentralManager` knows, as a value: what happened goes in, what is to be done comes out.
///
/// It speaks of scans and peripherals by their ids; promises, clocks and the bus are the session's.
struct CentralState {
    enum Timer: Hashable {
        case scanTimeout(ScanNumber)
        case adapterGrace, expirySweep, restoration
        /// The state is to be kept.
        case keeping
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
        /// The same for a scan that wants each report's own data.
        indirect case reported(PeripheralKey, ScanNumber, ReportData)
        indirect case ranged(PeripheralKey, ScanNumber, RangedBeacon)
        /// Ends a scan's stream, with this failure as its last element where there is one.
        indirect case finish(ScanNumber, CentralManagerError?)
        case expired(PeripheralKey)
        /// The list lets go of this peripheral.
        case drop(PeripheralKey)
        indirect case peripheral(PeripheralKey, PeripheralState.Effect)
        /// What was restored can be told.
        case restored
    }

    struct Scan: Equatable {
        let id: ScanNumber
        let request: ScanRequest
        let hasTimeout: Bool
        /// Whether a peripheral was reported; the time-out is an error only if none was.
        var hasReported = false

        /// What the scan is to be given of a sighting. `date` is read only if the data are wanted.
        func sighting(of key: PeripheralKey, _ device: borrowing Device1, date: () -> Date) -> Effect {
            request.wantsReports ? .reported(key, id, ReportData(device, date: date())) : .discovered(key, id)
        }
    }

    /// How often a scanning manager looks for peripherals that fell silent, in seconds.
    static let sweepInterval: TimeInterval = 5
    /// How long a returning daemon has to find its adapters, in seconds.
    static let adapterGrace: TimeInterval = 5

    private var machine = ManagerStateMachine()
    private(set) var scan: Scan?
    private var lastScan: UInt32 = 0
    // Those below are changed in this type's files alone.
    /// Beacons are looked for, beside the scan.
    var ranging: Ranging?
    var peripherals: PeripheralTable
    /// Those that were asked for something.
    var dealings = KeyedTable<PeripheralState>()
    /// What BlueZ says of devices that have a link, whoever made it, and of those we deal with.
    var facts: [PeripheralKey: PeripheralState.Facts] = [:]
    /// Those whose handle died while something was under way.
    var released: Set<PeripheralKey> = []
    /// Restored peripherals of which BlueZ has said nothing yet.
    var unlistedRestored: Set<PeripheralKey> = []
    /// What was restored has not been told yet.
    var isRestoring = false
    /// Where the chance in back-offs begins.
    let backOffSeed: UInt64

    init(maximumPeripherals: Int, backOffSeed: UInt64 = 0) {
        peripherals = PeripheralTable(capacity: maximumPeripherals)
        self.backOffSeed = backOffSeed
    }

    var managerState: ManagerState { machine.state }

    // MARK: Daemon and adapter

    /// Forgets how things stood, so that every state is announced anew.
    mutating func reset() -> [Effect] {
        machine = ManagerStateMachine()
        return stopScan() + stopRanging() + [.cancelTimer(.adapterGrace)]
    }

    mutating func event(_ event: ManagerStateMachine.Event) -> [Effect] {
        machine.event(event).flatMap { effect -> [Effect] in
            switch effect {
            case .announce(let state):
                [.announce(state)] + tellPeripherals { $0.managerStateChanged(state) } + endRestoring()
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
        if let refusal = scanRefusal { return .failure(refusal) }
        let id = nameScan()
        scan = Scan(id: id, request: request, hasTimeout: timeout.isFinite)
        var effects: [Effect] = [.startScan(id, request), .startTimer(.expirySweep, Self.sweepInterval)]
        if timeout.isFinite { effects.append(.startTimer(.scanTimeout(id), timeout)) }
        return .success((id, effects))
    }

    /// Why nothing can be scanned for now; `nil` where it can.
    var scanRefusal: CentralManagerError? {
        switch managerState {
        case .unknown, .resetting, .poweredOff: .isPoweredOff
        case .unsupported: .unsupported
        case .unauthorized: .unauthorized
        case .poweredOn: nil
        }
    }

    mutating func nameScan() -> ScanNumber {
        lastScan += 1
        return ScanNumber(rawValue: lastScan)
    }

    mutating func stopScan() -> [Effect] { endScan(nil) }

    /// The daemon's discovery gave up on this scan.
    mutating func scanFailed(_ id: ScanNumber, _ error: CentralManagerError) -> [Effect] {
        if ranging?.id == id { return endRanging(error) }
        return scan?.id == id ? endScan(error) : []
    }

    private mutating func endScan(_ error: CentralManagerError?) -> [Effect] {
        guard let ended = scan else { return [] }
        scan = nil
        var effects: [Effect] = [.stopScan(ended.id)]
        if ranging == nil { effects.append(.cancelTimer(.expirySweep)) }
        if ended.hasTimeout { effects.append(.cancelTimer(.scanTimeout(ended.id))) }
        effects.append(.finish(ended.id, error))
        return effects
    }

    mutating func fired(_ timer: Timer, at now: Instant) -> [Effect] {
        switch timer {
        case .adapterGrace:
            return event(.graceEnded)
        case .restoration:
            return endRestoring()
        case .keeping:
            return []
        case .scanTimeout(let id):
            guard let scan, scan.id == id else { return [] }
            return endScan(scan.hasReported ? nil : .peripheralScanTimeout)
        case .expirySweep:
            guard isListening else { return [] }
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
        _ key: PeripheralKey, _ body: (borrowing PeripheralTable.Record) -> R?
    ) -> R? {
        peripherals.read(key, body)
    }

    /// `fields` of a device have new values; `wasHeard` if these come from a report of the controller.
    /// - Parameters:
    ///   - source: The device in the object tree.
    ///   - only: The one scan that is to see the change, because it has just begun; `nil` for all.
    mutating func deviceChanged(
        _ key: PeripheralKey, _ source: ObjectKey, _ device: borrowing Device1, fields: Device1.Fields, wasHeard: Bool,
        at now: Instant,
        only: ScanNumber? = nil, date: @autoclosure () -> Date, into effects: inout [Effect]
    ) {
        if wasHeard, only == nil || only == ranging?.id {
            range(key, source, device, fields: fields, at: now, date: date, into: &effects)
        }
        let scan = only == nil || only == scan?.id ? scan : nil
        // A name or a service may come by itself, after the sighting that it belongs to.
        let isSighting =
            wasHeard || (device.fields.contains(.rssi) && !fields.isDisjoint(with: [.name, .alias, .uuids]))
        var isReported = false
        let isKnown = peripherals.update(key) { record -> Bool in
            record.isPresent(as: source)
            if wasHeard { record.hear(at: now) }
            guard record.isListed else { return false }
            guard let scan, isSighting, scan.request.allowsDuplicates || record.reportedBy != scan.id,
                scan.request.accepts(device)
            else { return true }
            record.reportedBy = scan.id
            isReported = true
            return true
        }
        guard let scan else { return }
        if isReported { report(key, device, to: scan, date: date, into: &effects) }
        guard isKnown != true, isSighting, scan.request.accepts(device) else { return }
        let evicted = peripherals.list(key, reportedBy: scan.id, device: source, at: now, date: date())
        effects += evicted.map { drop($0) }
        report(key, device, to: scan, date: date, into: &effects)
    }

    private mutating func report(
        _ key: PeripheralKey, _ device: borrowing Device1, to scan: Scan, date: () -> Date, into effects: inout [Effect]
    ) {
        self.scan?.hasReported = true
        effects.append(scan.sighting(of: key, device, date: date))
    }

    // MARK: Silence

    /// Whether silence says something.
    private var isListening: Bool { scan != nil || ranging != nil }

    /// BlueZ removes a device, whose values can be read for the last time.
    mutating func valuesEnd(_ key: PeripheralKey, _ source: ObjectKey, _ device: borrowing Device1) {
        _ = peripherals.update(key) { $0.wasRemoved(source, device) }
    }

    /// BlueZ has dropped a device.
    ///
    /// During a scan that means that it has fallen silent. In every other situation BlueZ removes devices for reasons of its
    /// own (the scan's end, a restart), and a peripheral that was found a moment ago stays on the list.
    mutating func deviceRemoved(_ key: PeripheralKey, into effects: inout [Effect]) {
        guard isListening, managerState == .poweredOn, peripherals[key]?.isInUse != true else { return }
        expire(key, into: &effects)
    }

    private mutating func expire(_ key: PeripheralKey, into effects: inout [Effect]) {
        guard peripherals.unlist(key) else { return }
        effects.append(.expired(key))
        effects.append(drop(key))
    }

    /// The list has let go of a peripheral.
    mutating func drop(_ key: PeripheralKey) -> Effect {
        ranging?.forget(key)
        return .drop(key)
    }

    /// The manager ends: the list is emptied. A peripheral that the application holds keeps its last values, which `read`
    /// yields.
    mutating func forgetAll(_ read: (ObjectKey) -> PeripheralTable.LastValues?) {
        var devices: [(key: PeripheralKey, device: ObjectKey)] = []
        peripherals.forEach { devices.append(($0, $1.device)) }
        for (key, device) in devices {
            _ = peripherals.update(key) { $0.keepValues(read(device)) }
            _ = peripherals.unlist(key)
        }
    }
}
