import BlueZ
import Futures
import Reactor

/// The scans of a central manager: their streams, and the client's discoveries for them.
struct Scans {
    enum Stream {
        case peripherals(StreamPromise<Peripheral>)
        case reports(StreamPromise<ScanReport>)
        case beacons(StreamPromise<BeaconSighting>)

        /// Finishes the stream, after this failure if there is one.
        func finish(_ error: CentralManagerError?) {
            switch self {
            case .peripherals(let promise): Self.finish(promise, error)
            case .reports(let promise): Self.finish(promise, error)
            case .beacons(let promise): Self.finish(promise, error)
            }
        }

        private static func finish<T>(_ promise: StreamPromise<T>, _ error: CentralManagerError?) {
            if let error { promise.failure(error) }
            promise.finish()
        }
    }

    /// What the client discovers for a scan.
    private struct Discovery {
        let adapter: ObjectKey
        let id: ScanID
    }

    private var streams: [ScanNumber: Stream] = [:]
    /// The scans that need a discovery.
    private var requests: [ScanNumber: ScanRequest] = [:]
    private var discoveries: [ScanNumber: Discovery] = [:]
    /// How many discoveries are being ended, and the promises that wait until none is.
    private var endingCount = 0
    private var waiting: [Promise<Void>] = []

    // MARK: Streams

    subscript(scan: ScanNumber) -> Stream? { streams[scan] }

    mutating func add(_ stream: Stream, of scan: ScanNumber) { streams[scan] = stream }

    mutating func removeStream(of scan: ScanNumber) -> Stream? { streams.removeValue(forKey: scan) }

    // MARK: Discoveries

    /// Starts or, with `nil`, stops the discovery for a scan.
    mutating func request(_ request: ScanRequest?, for scan: ScanNumber) { requests[scan] = request }

    /// Removes the discoveries that are not needed, or are on another adapter, and returns them. If there is no
    /// adapter, a scan keeps its discovery: the adapter may return.
    mutating func removeOutdated(adapter: ObjectKey?) -> [ScanID] {
        let outdated = discoveries.filter { scan, discovery in
            requests[scan] == nil || (adapter != nil && discovery.adapter != adapter)
        }
        for scan in outdated.keys { discoveries[scan] = nil }
        endingCount += outdated.count
        return outdated.sorted { $0.key < $1.key }.map(\.value.id)
    }

    /// The scans that need a discovery and have none.
    var missing: [(scan: ScanNumber, request: ScanRequest)] {
        requests.filter { discoveries[$0.key] == nil }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    func needsDiscovery(_ scan: ScanNumber) -> Bool { requests[scan] != nil && discoveries[scan] == nil }

    mutating func started(_ id: ScanID, for scan: ScanNumber, on adapter: ObjectKey) {
        discoveries[scan] = Discovery(adapter: adapter, id: id)
    }

    mutating func failed(_ scan: ScanNumber) { discoveries[scan] = nil }

    /// Counts a discovery that has ended.
    mutating func ended() { endingCount -= 1 }

    // MARK: Rest

    /// Keeps a promise until no discovery runs or is being ended. Returns false if that is already the case.
    mutating func wait(_ promise: Promise<Void>) -> Bool {
        guard endingCount > 0 || !discoveries.isEmpty else { return false }
        waiting.append(promise)
        return true
    }

    /// Removes and returns the promises that wait for the end of all discoveries, if none runs or is being ended.
    mutating func takeWaiting() -> [Promise<Void>] {
        guard endingCount == 0, discoveries.isEmpty else { return [] }
        defer { waiting = [] }
        return waiting
    }
}

/// The time limits of operations.
///
/// Most operations end before their limits, so all of them share one timer of the loop. The timer is set for the
/// earliest limit, and fires at that time even if that operation has ended.
struct TimeLimits {
    private var limits: [OperationID: (peripheral: PeripheralKey, instant: Instant)] = [:]
    /// When the timer fires; `nil` if it is not set.
    private var alarm: Instant?

    /// Adds a limit. Returns whether it is the earliest one, so that the timer has to be set to it.
    mutating func add(_ id: OperationID, of peripheral: PeripheralKey, seconds: Double, at now: Instant) -> Bool {
        let instant = now.advanced(by: seconds)
        limits[id] = (peripheral, instant)
        if let alarm, alarm <= instant { return false }
        alarm = instant
        return true
    }

    mutating func remove(_ id: OperationID) { limits[id] = nil }

    /// Handles the timer: removes the limits that are exceeded, and returns them in their order.
    mutating func takeExceeded(at now: Instant) -> [(id: OperationID, peripheral: PeripheralKey)] {
        alarm = nil
        let exceeded = limits.filter { $0.value.instant <= now }
        for id in exceeded.keys { limits[id] = nil }
        return exceeded.sorted { ($0.value.instant, $0.key.rawValue) < ($1.value.instant, $1.key.rawValue) }
            .map { ($0.key, $0.value.peripheral) }
    }

    /// The earliest limit; `nil` if there are none.
    var next: Instant? { limits.values.lazy.map(\.instant).min() }

    /// Sets the timer to the earliest limit, and returns the seconds until then; `nil` if there are no limits.
    mutating func restart(at now: Instant) -> Double? {
        alarm = next
        return alarm.map { max(0, $0.seconds(since: now)) }
    }
}
