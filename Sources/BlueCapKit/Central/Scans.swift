import BlueCapBlueZ
import BlueCapFutures

/// The scans of a central manager: their streams, and the client's discoveries for them.
struct Scans {
    /// The stream of a scan.
    struct Stream {
        /// What the session has of a sighting.
        typealias Sighting = (peripheral: Peripheral, data: SightingData?)

        let send: @Sendable ([Sighting]) -> Void
        /// Finishes the stream, after this failure if there is one.
        let finish: @Sendable (CentralManagerError?) -> Void

        /// - Parameter element: Makes an element of the stream from a sighting; `nil` if the scan has no such sightings.
        init<T: Sendable>(_ promise: StreamPromise<T>, _ element: @escaping @Sendable (Sighting) -> T?) {
            send = { promise.success(contentsOf: $0.compactMap(element)) }
            finish = { error in
                if let error { promise.failure(error) }
                promise.finish()
            }
        }
    }

    private struct Scan {
        let stream: Stream
        /// What the client discovers for it.
        var discovery: (adapter: ObjectKey, id: ScanID)?
    }

    private var scans: [ScanNumber: Scan] = [:]
    /// How many discoveries are being ended, and the promises that wait until none is.
    private var endingCount = 0
    private var waiting: [Promise<Void>] = []

    subscript(scan: ScanNumber) -> Stream? { scans[scan]?.stream }

    mutating func add(_ scan: ScanNumber, _ stream: Stream) { scans[scan] = Scan(stream: stream) }

    /// Removes a scan. Returns its stream, and its discovery, which is to be ended.
    mutating func remove(_ scan: ScanNumber) -> (stream: Stream, discovery: ScanID?)? {
        guard let removed = scans.removeValue(forKey: scan) else { return nil }
        if removed.discovery != nil { endingCount += 1 }
        return (removed.stream, removed.discovery?.id)
    }

    // MARK: Discoveries

    /// Removes the discoveries that are on another adapter, and returns them. If there is no adapter, a scan keeps its
    /// discovery: the adapter may return.
    mutating func removeOutdated(adapter: ObjectKey?) -> [ScanID] {
        let outdated = scans.filter { $0.value.discovery.map { adapter != nil && $0.adapter != adapter } ?? false }
        for scan in outdated.keys { scans[scan]?.discovery = nil }
        endingCount += outdated.count
        return outdated.ordered { $0.key < $1.key }.compactMap(\.value.discovery?.id)
    }

    func isMissing(_ scan: ScanNumber) -> Bool { scans[scan]?.discovery == nil }

    mutating func started(_ id: ScanID, for scan: ScanNumber, on adapter: ObjectKey) {
        scans[scan]?.discovery = (adapter, id)
    }

    mutating func failed(_ scan: ScanNumber) { scans[scan]?.discovery = nil }

    /// Counts a discovery that has ended.
    mutating func ended() { endingCount -= 1 }

    private var isAtRest: Bool { endingCount == 0 && scans.values.allSatisfy { $0.discovery == nil } }

    // MARK: Rest

    /// Keeps a promise until no discovery runs or is being ended. Returns false if that is already the case.
    mutating func wait(_ promise: Promise<Void>) -> Bool {
        guard !isAtRest else { return false }
        waiting.append(promise)
        return true
    }

    /// Removes and returns the promises that wait for the end of all discoveries, if none runs or is being ended.
    mutating func takeWaiting() -> [Promise<Void>] {
        guard isAtRest else { return [] }
        defer { waiting = [] }
        return waiting
    }
}
