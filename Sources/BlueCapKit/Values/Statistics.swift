/// The distribution of durations: their number, least, greatest and sum, and a histogram with fixed bounds. All times are
/// in seconds.
public struct LatencyStatistics: Codable, Sendable, Equatable {
    /// The upper bounds of the histogram's buckets in seconds, ascending. The last bucket has none.
    public static let bounds: [Double] = [0.01, 0.03, 0.1, 0.3, 1, 3, 10]

    /// How many durations were measured.
    public private(set) var count = 0
    /// The shortest duration in seconds; `nil` before the first.
    public private(set) var minimum: Double?
    /// The longest duration in seconds; `nil` before the first.
    public private(set) var maximum: Double?
    /// The sum of all durations in seconds.
    public private(set) var total: Double = 0
    /// How many durations each bucket has, one bucket more than ``bounds``. A duration belongs to the first bucket whose
    /// bound it does not exceed.
    public private(set) var histogram = [Int](repeating: 0, count: LatencyStatistics.bounds.count + 1)

    /// The mean in seconds; `nil` before the first duration.
    public var mean: Double? { count > 0 ? total / Double(count) : nil }

    /// Creates statistics without durations.
    public init() {}

    mutating func add(_ seconds: Double) {
        count += 1
        total += seconds
        minimum = min(minimum ?? seconds, seconds)
        maximum = max(maximum ?? seconds, seconds)
        histogram[Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count] += 1
    }
}

/// How many operations have failed, by the kind of their errors.
public struct FailureStatistics: Codable, Sendable, Equatable {
    /// Exceeded their time limits.
    public internal(set) var timedOut = 0
    /// Failed because the link was lost, or because there was none.
    public internal(set) var disconnected = 0
    /// Failed because the link's security was not sufficient, or because a pairing failed.
    public internal(set) var security = 0
    /// Were cancelled by the application, or ended with the link that it has ended.
    public internal(set) var cancelled = 0
    /// Failed for other reasons, such as a refusal by the peripheral or by BlueZ.
    public internal(set) var other = 0

    /// All of them.
    public var total: Int { timedOut + disconnected + security + cancelled + other }

    /// Creates statistics without failures.
    public init() {}
}

/// What has happened with one peripheral, or with all peripherals of a manager together.
///
/// The numbers never decrease, except ``connected`` and ``operationsPending``.
public struct PeripheralStatistics: Codable, Sendable, Equatable {
    /// How many links there are now: 0 or 1 for one peripheral.
    public internal(set) var connected = 0
    /// How many times BlueZ was asked to connect. Each retry counts.
    public internal(set) var connectionAttempts = 0
    /// How many of these attempts have failed, exceeded their time limit, or were cancelled.
    public internal(set) var connectionAttemptsFailed = 0
    /// How many links became usable, including those that another program has made.
    public internal(set) var connections = 0
    /// How many links have ended, for any reason.
    public internal(set) var disconnections = 0
    /// The seconds of all links, including the present ones.
    public internal(set) var secondsConnected: Double = 0
    /// From the call to BlueZ until the link could be used, for attempts that succeeded.
    public internal(set) var connecting = LatencyStatistics()

    /// How many operations wait or are under way now: those that return a future, such as reading, writing, subscribing
    /// and discovering.
    public internal(set) var operationsPending = 0
    /// The operations that have failed.
    public internal(set) var failures = FailureStatistics()
    /// From the call to BlueZ until the result, for reads that succeeded. The wait in the peripheral's queue is not
    /// included.
    public internal(set) var reading = LatencyStatistics()
    /// From the call to BlueZ until the result, for writes that succeeded. The wait in the peripheral's queue is not
    /// included.
    public internal(set) var writing = LatencyStatistics()
    /// How many notified and indicated values were received.
    public internal(set) var notifications = 0
    /// How many times values may have been lost, because a subscription was interrupted or the application did not keep
    /// up.
    public internal(set) var notificationGaps = 0

    /// Creates statistics of a peripheral that was not used.
    public init() {}
}

/// What a ``CentralManager`` has done since it was created: ``CentralManager/statistics``.
///
/// The numbers never decrease, except ``scansRunning`` and those that ``PeripheralStatistics`` excepts.
public struct CentralStatistics: Codable, Sendable, Equatable {
    /// How many times the manager has lost its adapter, the adapter's power, or `bluetoothd`.
    public internal(set) var interruptions = 0
    /// How many scans were started. A scan that continues after an interruption is counted once.
    public internal(set) var scansStarted = 0
    /// How many scans are running now.
    public internal(set) var scansRunning = 0
    /// How many scans have failed.
    public internal(set) var scansFailed = 0
    /// How many times BlueZ was asked to scan again, because it had stopped or reported nothing.
    public internal(set) var scanRestarts = 0
    /// The seconds of all scans, including the present ones and their interruptions. Scans at the same time count each.
    public internal(set) var scanSeconds: Double = 0
    /// How many reports of peripherals were delivered to the streams of scans.
    public internal(set) var reports = 0
    /// The sum over all peripherals, also those that the manager has forgotten.
    public internal(set) var peripherals = PeripheralStatistics()

    /// Creates statistics of a manager that has done nothing.
    public init() {}
}

/// What a ``PeripheralManager`` has done since it was created: ``PeripheralManager/statistics``.
///
/// The numbers never decrease, except ``centralsConnected`` and those about updates.
public struct PeripheralManagerStatistics: Codable, Sendable, Equatable {
    /// How many times the manager has lost its adapter, the adapter's power, or `bluetoothd`.
    public internal(set) var interruptions = 0
    /// How many times BlueZ has accepted a service or an advertisement, again after each interruption.
    public internal(set) var registrations = 0
    /// How many times BlueZ has refused one.
    public internal(set) var registrationsRefused = 0

    /// How many centrals are connected now.
    public internal(set) var centralsConnected = 0
    /// How many times a central has connected.
    public internal(set) var connections = 0
    /// How many times a pairing with a central has succeeded.
    public internal(set) var pairings = 0
    /// How many times a pairing with a central has failed.
    public internal(set) var pairingsFailed = 0

    /// How many times a central has read.
    public internal(set) var reads = 0
    /// How many times a central has written.
    public internal(set) var writes = 0
    /// How many of these requests were answered with an error, by the application or because it did not answer in time.
    public internal(set) var requestsRefused = 0
    /// From a request until its answer.
    public internal(set) var answering = LatencyStatistics()

    /// How many updates were sent, of the characteristics that are offered now.
    public internal(set) var updatesSent = 0
    /// How many updates were dropped, of the characteristics that are offered now: the sum of
    /// ``MutableCharacteristic/droppedUpdates``.
    public internal(set) var updatesDropped = 0
    /// How many updates wait now: the sum of the numbers of ``MutableCharacteristic/pendingUpdates``.
    public internal(set) var updatesWaiting = 0

    /// Creates statistics of a manager that has done nothing.
    public init() {}
}
