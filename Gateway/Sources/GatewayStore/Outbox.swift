import Dispatch
public import Logging

/// The values that the broker has not acknowledged, in an SQLite file.
///
/// A value is durable when ``append(_:)`` returns: the file has a write-ahead log that is synchronised with each
/// transaction. The file belongs to one process; SQLite's lock refuses a second one.
///
/// **Sequence numbers.** The values of a device are numbered 1, 2, 3 and so on, and the last number of each device is kept
/// when its values are deleted. If the file is damaged, it is renamed to `NAME.damaged-SECONDS` and a new file is begun;
/// the four newest of these are kept. In the new file the numbers of each device continue at `SECONDS × 2²⁰ + 1`, where
/// `SECONDS` is the present time since 1970, or more if the clock was set back. They are greater than all earlier ones and
/// less than 2⁵³, which a JavaScript number can hold. The first value of a device has ``StoredValue/isRestarted`` then.
///
/// **Age.** The outbox has a clock of its own that advances while it is open and is stored with each transaction. It never
/// runs backwards and does not depend on the wall clock. So a value is neither dropped early nor kept without end if the wall
/// clock is set.
///
/// All methods may be called from any thread and return when they are done. They block for as long as the disk needs.
public final class Outbox: Sendable {
    private let work = DispatchQueue(label: "bluecap.gateway.outbox")
    /// Used on `work` only.
    private let database: OutboxDatabase

    /// Opens or creates an outbox.
    ///
    /// - Parameters:
    ///   - path: The database file. Its folder exists. A new file is readable by its owner only.
    ///   - limits: What is kept at most. If they are lower than before, the oldest values are dropped.
    ///   - logger: Receives a warning if values are dropped, and an error if the file is damaged.
    ///   - uptime: Time since any fixed moment; it does not decrease. A parameter for tests.
    public init(
        path: String, limits: OutboxLimits = OutboxLimits(), logger: Logger = Logger(label: "bluecap.gateway.outbox"),
        uptime: @escaping @Sendable () -> Duration = Outbox.uptime
    ) throws(OutboxError) {
        database = try OutboxDatabase(path: path, limits: limits, logger: logger, uptime: uptime)
    }

    /// The time since the first call in this process.
    public static let uptime: @Sendable () -> Duration = {
        let start = ContinuousClock.now
        return { start.duration(to: .now) }
    }()

    /// Stores values in one transaction, and drops the oldest ones if a limit is reached.
    ///
    /// - Returns: The values as they are stored, in the same order.
    /// - Throws: If none of them was stored.
    @discardableResult
    public func append(_ values: [NewValue]) throws(OutboxError) -> [StoredValue] {
        for value in values { try validate(value) }
        return try synchronously { database throws(OutboxError) in try database.commit(values, []).stored }
    }

    /// Deletes values in one transaction. Those that are not stored any more are ignored.
    public func acknowledge(_ deliveries: [Delivery]) throws(OutboxError) {
        _ = try synchronously { database throws(OutboxError) in try database.commit([], deliveries) }
    }

    /// Returns the values after an identifier in the order of their storage.
    ///
    /// - Parameters:
    ///   - id: The identifier, or 0 for the oldest values.
    ///   - count: How many values are returned at most.
    ///   - bytes: No value follows when the size of those before reaches this number.
    public func values(after id: Int64, count: Int, bytes: Int = .max) throws(OutboxError) -> [StoredValue] {
        try synchronously { database throws(OutboxError) in try database.page(after: id, count: count, bytes: bytes) }
    }

    /// Drops the values that are too old.
    public func expire() throws(OutboxError) {
        _ = try synchronously { database throws(OutboxError) in try database.expire() }
    }

    /// Returns what the outbox contains.
    public func statistics() throws(OutboxError) -> OutboxStatistics {
        try synchronously { database throws(OutboxError) in try database.statistics() }
    }

    /// Closes the file. Later calls of other methods throw.
    public func close() { work.sync { database.close() } }

    /// Throws ``OutboxError/invalid(reason:)`` if the value cannot be stored.
    func validate(_ value: NewValue) throws(OutboxError) { try database.validate(value) }

    /// The greatest identifier of a value that an earlier process has sent or may have sent.
    var sentBefore: Int64 { work.sync { database.sentBefore } }

    func commit(
        _ values: [NewValue], _ deliveries: [Delivery]
    ) async throws(OutboxError) -> OutboxDatabase.Commit {
        try await asynchronously { database throws(OutboxError) in try database.commit(values, deliveries) }
    }

    func discard(_ value: StoredValue) async throws(OutboxError) {
        try await asynchronously { database throws(OutboxError) in try database.discard(Delivery(value)) }
    }

    func page(after id: Int64, count: Int, bytes: Int) async throws(OutboxError) -> [StoredValue] {
        try await asynchronously { database throws(OutboxError) in
            try database.page(after: id, count: count, bytes: bytes)
        }
    }

    func markSent(through id: Int64) async throws(OutboxError) {
        try await asynchronously { database throws(OutboxError) in try database.markSent(through: id) }
    }

    func dropExpired() async throws(OutboxError) -> Int64 {
        try await asynchronously { database throws(OutboxError) in try database.expire() }
    }

    func currentStatistics() async throws(OutboxError) -> OutboxStatistics {
        try await asynchronously { database throws(OutboxError) in try database.statistics() }
    }

    /// Executes a statement and returns the first column of its result, for tests.
    @discardableResult
    func execute(_ sql: String) throws(OutboxError) -> [String] {
        try synchronously { database throws(OutboxError) in try database.execute(sql) }
    }

    private func synchronously<T>(
        _ body: (OutboxDatabase) throws(OutboxError) -> T
    ) throws(OutboxError) -> T {
        try work.sync { Self.result(of: body, database) }.get()
    }

    /// Performs a call on the queue. A cancelled task waits too, because what it has begun is not undone.
    private func asynchronously<T: Sendable>(
        _ body: @escaping @Sendable (OutboxDatabase) throws(OutboxError) -> T
    ) async throws(OutboxError) -> T {
        let result: Result<T, OutboxError> = await withCheckedContinuation { continuation in
            work.async { [database] in continuation.resume(returning: Self.result(of: body, database)) }
        }
        return try result.get()
    }

    private static func result<T>(
        of body: (OutboxDatabase) throws(OutboxError) -> T, _ database: OutboxDatabase
    ) -> Result<T, OutboxError> {
        do { return .success(try body(database)) } catch { return .failure(error) }
    }
}
