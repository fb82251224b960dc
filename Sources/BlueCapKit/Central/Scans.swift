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
