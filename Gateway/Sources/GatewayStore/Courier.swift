public import GatewayCore
public import Logging

/// Stores values, publishes them in their order, and deletes them when the broker has acknowledged them.
///
/// The main program calls ``run()`` in one task, ``handle(_:)`` for each event of the transport, in order, and
/// ``submit(_:)`` from anywhere. Each value is published with ``BrokerMessage/Quality/atLeastOnce``, and its token is
/// its ``StoredValue/id``, which is less than 2⁵³. Other messages of the program take tokens from ``freeTokens``.
///
/// **Repeated deliveries.** A payload has `"repeated":true` if the value was sent before. What an earlier process has sent
/// is known exactly if ``run()`` had returned, and otherwise to within ``Options/markAhead`` values: of those that were
/// stored and not sent when the process ended, that many may be marked without need.
public actor Courier {
    /// The tokens that no stored value has.
    public static let freeTokens: ClosedRange<UInt64> = 1 << 63...UInt64.max

    /// The bounds of a courier.
    public struct Options: Hashable, Sendable {
        /// How many published values wait for an acknowledgement at most.
        public var window = 100
        /// How many values are read ahead at most.
        public var pageCount = 256
        /// The size of the values that are read ahead, in bytes; one value may exceed it.
        public var pageBytes = 1 << 20
        /// How many values wait to be stored at most.
        public var waiting = 10_000
        /// The size of their bodies and topics, in bytes.
        public var waitingBytes = 16 << 20
        /// How many values one transaction stores at most.
        public var group = 1_000
        /// The size of their bodies and topics, in bytes; one call of ``Courier/submit(_:)`` may exceed it.
        public var groupBytes = 1 << 20
        /// In how large steps the store keeps which values were sent.
        public var markAhead: Int64 = 500
        /// How long an acknowledgement waits for others to be deleted in the same transaction. A transaction that stores
        /// values takes all that wait.
        public var acknowledgementDelay = Duration.milliseconds(200)
        /// When a transaction or a publication that has failed is tried again.
        public var retryDelay = Duration.seconds(1)
        /// The interval in which values that are too old are dropped.
        public var expiryInterval = Duration.seconds(10)

        public init() {}
    }

    private struct Waiting {
        let values: [NewValue]
        let continuation: CheckedContinuation<Result<[StoredValue], OutboxError>, Never>
    }

    private let outbox: Outbox
    private let transport: any BrokerTransport
    private let options: Options
    private let logger: Logger

    private var window: SendWindow
    /// Values that are read and not sent yet.
    private var page: ArraySlice<StoredValue> = []
    /// Values up to this identifier are marked as sent in the store.
    private var markedThrough: Int64
    /// Whether the transport has refused a value because it is full.
    private var isFull = false
    private var waiting: [Waiting] = []
    private var (waitingCount, waitingBytes) = (0, 0)
    private var writer: Task<Void, Never>?
    /// Whether acknowledgements are deleted now, also if they are few.
    private var isDeletionDue = false
    private var timers: [Timer: Task<Void, Never>] = [:]
    private var counts = CourierStatistics()
    /// The error of the last transaction, and the last error that was logged.
    private var (lastError, reported): (OutboxError?, OutboxError?) = (nil, nil)
    private var (errors, refusals) = (RareEvents(), RareEvents())

    private let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    private enum Timer { case deletion, sending }

    public init(
        outbox: Outbox, transport: any BrokerTransport, options: Options = Options(),
        logger: Logger = Logger(label: "bluecap.gateway.courier")
    ) {
        (self.outbox, self.transport, self.options, self.logger) = (outbox, transport, options, logger)
        markedThrough = outbox.sentBefore
        window = SendWindow(size: max(1, options.window), sentThrough: markedThrough)
    }

    /// Stores values, and returns when they are durable. They are sent by ``run()``.
    ///
    /// Values of several calls that arrive while a transaction is written are stored by the next one together.
    ///
    /// - Returns: The values with their numbers.
    /// - Throws: If none of the values was stored.
    @discardableResult
    public func submit(_ values: [NewValue]) async throws(OutboxError) -> [StoredValue] {
        for value in values { try outbox.validate(value) }
        guard !values.isEmpty else { return [] }
        let bytes = Self.bytes(values)
        guard waitingCount + values.count <= options.waiting, waitingBytes + bytes <= options.waitingBytes else {
            throw .overloaded(waiting: waitingCount)
        }
        let result = await withCheckedContinuation { continuation in
            waiting.append(Waiting(values: values, continuation: continuation))
            waitingCount += values.count
            waitingBytes += bytes
            write()
        }
        return try result.get()
    }

    /// Receives an event of the transport. Events of other users' messages are ignored.
    public func handle(_ event: BrokerEvent) {
        switch event {
        case .connected:
            window.connect()
            (page, isFull) = ([], false)
        case .disconnected:
            window.disconnect()
            page = []
        case .acknowledged(let token):
            isFull = false
            if let id = Int64(exactly: token), window.acknowledge(id) {
                counts.acknowledged += 1
                deleteSoon()
            }
        case .received:
            return
        }
        wake.yield()
    }

    /// Sends what is stored until the task is cancelled, and then deletes what is acknowledged. Called once.
    public func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.sendUntilCancelled() }
            group.addTask { await self.expireUntilCancelled() }
        }
        for (_, timer) in timers { timer.cancel() }
        timers = [:]
        await finish()
    }

    /// What the courier has done and what remains.
    public var statistics: CourierStatistics {
        get async throws(OutboxError) {
            let outbox = try await outbox.currentStatistics()
            var result = counts
            result.outbox = outbox
            (result.inFlight, result.isConnected) = (window.inFlightCount, window.isConnected)
            (result.waiting, result.lastError) = (waitingCount, lastError)
            return result
        }
    }

    // MARK: Sending

    private func sendUntilCancelled() async {
        await send()
        for await _ in wakes { await send() }
    }

    /// Sends until the window is full, or nothing is left. One call runs at a time.
    func send() async {
        while window.canSend, !isFull, !Task.isCancelled {
            guard let value = page.first else {
                guard await readPage() else { return }
                continue
            }
            guard !window.isAcknowledged(value.id) else {
                window.skip(value.id)
                page.removeFirst()
                continue
            }
            guard value.id <= markedThrough else {
                // The store keeps the mark before the value is sent. The page may be another one afterwards.
                guard await mark(value.id - 1 + max(1, options.markAhead)) else { return }
                continue
            }
            await publish(value)
        }
    }

    private func publish(_ value: StoredValue) async {
        let isRepeated = value.id <= window.sentThrough
        let message = BrokerMessage(topic: value.topic, payload: value.payload(repeated: isRepeated))
        do {
            try transport.publish(message, token: UInt64(value.id))
            page.removeFirst()
            window.sent(value)
            counts.sent += 1
            if isRepeated { counts.repeated += 1 }
        } catch {
            switch error {
            case .full:
                isFull = true
                sendLater()
            case .notConnected:
                window.disconnect()
                page = []
            case .invalid(let reason): await discard(value, reason)
            }
        }
    }

    private func discard(_ value: StoredValue, _ reason: String) async {
        if let count = refusals.add(at: Outbox.uptime()) {
            logger.error(
                "The transport refuses values, which are dropped; the last one is named.",
                metadata: [
                    "count": "\(count)", "topic": "\(value.topic)", "sequence": "\(value.sequence)",
                    "reason": "\(reason)",
                ])
        }
        window.skip(value.id)
        page = []  // the next value of the device reports it, and is read after that
        let outbox = outbox
        _ = await succeeds { () throws(OutboxError) in try await outbox.discard(value) }
    }

    /// Reads the next values. Returns whether sending may go on.
    private func readPage() async -> Bool {
        let (connection, cursor) = (window.connection, window.cursor)
        do {
            let values = try await outbox.page(after: cursor, count: options.pageCount, bytes: options.pageBytes)
            guard window.connection == connection else { return true }
            page = values[...]
            counts.pages += 1
            counts.largestPage = max(counts.largestPage, values.count)
            return !values.isEmpty
        } catch {
            report(error)
            sendLater()
            return false
        }
    }

    private func mark(_ id: Int64) async -> Bool {
        let outbox = outbox
        guard await succeeds({ () throws(OutboxError) in try await outbox.markSent(through: id) }) else {
            sendLater()
            return false
        }
        markedThrough = id
        return true
    }

    private func sendLater() {
        start(.sending, after: options.retryDelay) { courier in
            courier.isFull = false
            courier.wake.yield()
        }
    }

    // MARK: Storing

    private func write() {
        guard writer == nil else { return }
        writer = Task {
            while await writeGroup() {}
            writer = nil
            if !waiting.isEmpty || isDeletionDue { write() }
        }
    }

    /// Stores what waits and deletes what is acknowledged. Returns whether there is more.
    private func writeGroup() async -> Bool {
        var (group, values, bytes): ([Waiting], [NewValue], Int) = ([], [], 0)
        for entry in waiting {
            bytes += Self.bytes(entry.values)
            let fits = values.count + entry.values.count <= options.group && bytes <= options.groupBytes
            guard group.isEmpty || fits else { break }
            group.append(entry)
            values += entry.values
        }
        waiting.removeFirst(group.count)
        let deliveries = window.deliveries
        isDeletionDue = false
        do {
            let commit = try await outbox.commit(values, deliveries)
            didDelete(deliveries)
            counts.stored += values.count
            if commit.dropped > 0 { page = [] }
            lastError = nil
            var rest = commit.stored[...]
            finish(group, values) { entry in
                defer { rest.removeFirst(entry.values.count) }
                return .success(Array(rest.prefix(entry.values.count)))
            }
            wake.yield()
        } catch {
            report(error)
            finish(group, values) { _ in .failure(error) }
            // Deleting needs less space than storing, and makes some.
            if !group.isEmpty, await delete(deliveries) { return !waiting.isEmpty || isDeletionDue }
            deleteSoon(after: options.retryDelay)
        }
        return !waiting.isEmpty || isDeletionDue
    }

    private func finish(
        _ group: [Waiting], _ values: [NewValue], _ result: (Waiting) -> Result<[StoredValue], OutboxError>
    ) {
        waitingCount -= values.count
        waitingBytes -= Self.bytes(values)
        for entry in group { entry.continuation.resume(returning: result(entry)) }
    }

    private func delete(_ deliveries: [Delivery]) async -> Bool {
        guard !deliveries.isEmpty else { return true }
        let outbox = outbox
        guard await succeeds({ () throws(OutboxError) in _ = try await outbox.commit([], deliveries) }) else {
            return false
        }
        didDelete(deliveries)
        return true
    }

    private func didDelete(_ deliveries: [Delivery]) {
        window.deleted(deliveries)
        wake.yield()
    }

    private func deleteSoon() {
        if window.acknowledgedCount >= max(1, options.window / 2) {
            deleteNow()
        } else {
            deleteSoon(after: options.acknowledgementDelay)
        }
    }

    private func deleteSoon(after delay: Duration) {
        start(.deletion, after: delay) { courier in
            if courier.window.acknowledgedCount > 0 { courier.deleteNow() }
        }
    }

    private func deleteNow() {
        isDeletionDue = true
        write()
    }

    /// Deletes what is acknowledged, and stores exactly what was sent.
    func finish() async {
        if window.acknowledgedCount > 0 { deleteNow() }
        while let writer { await writer.value }
        guard markedThrough != window.sentThrough, await mark(window.sentThrough) else { return }
    }

    private func expireUntilCancelled() async {
        while !Task.isCancelled {
            do {
                if try await outbox.dropExpired() > 0 { page = [] }
            } catch { report(error) }
            try? await Task.sleep(for: options.expiryInterval)
        }
    }

    // MARK: Helpers

    /// Starts a timer, unless it runs.
    private func start(_ timer: Timer, after delay: Duration, _ action: @escaping @Sendable (isolated Courier) -> Void)
    {
        guard timers[timer] == nil else { return }
        timers[timer] = Task { [weak self] in
            do { try await Task.sleep(for: delay) } catch { return }
            await self?.fire(timer, action)
        }
    }

    private func fire(_ timer: Timer, _ action: (isolated Courier) -> Void) {
        timers[timer] = nil
        action(self)
    }

    private func succeeds(_ body: () async throws(OutboxError) -> Void) async -> Bool {
        do {
            try await body()
            return true
        } catch {
            report(error)
            return false
        }
    }

    /// Keeps an error for the statistics, and logs it if it is another one than before, or at most once a minute.
    private func report(_ error: OutboxError) {
        if error != reported { errors = RareEvents() }
        (lastError, reported) = (error, error)
        if let count = errors.add(at: Outbox.uptime()) { logger.error("\(error)", metadata: ["count": "\(count)"]) }
    }

    private static func bytes(_ values: [NewValue]) -> Int {
        values.reduce(0) { $0 + $1.body.count + $1.topic.utf8.count }
    }
}

/// What a courier has done since it was created, and what remains.
public struct CourierStatistics: Hashable, Sendable {
    /// The store, with the numbers of dropped values.
    public var outbox = OutboxStatistics()
    /// How many values were stored.
    public var stored = 0
    /// Publications, each repetition counted.
    public var sent = 0
    /// Publications that were marked as repeated.
    public var repeated = 0
    /// How many values the broker has acknowledged.
    public var acknowledged = 0
    /// How many published values wait for an acknowledgement.
    public var inFlight = 0
    /// How many values wait to be stored.
    public var waiting = 0
    public var isConnected = false
    /// Why the last transaction failed, or `nil` if it succeeded.
    public var lastError: OutboxError?
    /// How many times values were read ahead from the store, and the most values that one reading returned.
    var (pages, largestPage) = (0, 0)

    public init() {}
}
