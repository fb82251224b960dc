import Foundation
import GRDB
import GatewayCore
import Glibc
import Logging

/// The tables of an outbox, and what replaces them if they are damaged.
///
/// Not synchronised: `Outbox` uses it on one queue only, and immutable properties from anywhere.
final class OutboxDatabase: @unchecked Sendable {
    /// What a transaction has done.
    struct Commit: Sendable {
        var stored: [StoredValue] = []
        /// How many values were dropped because of a limit.
        var dropped: Int64 = 0
    }

    /// The row of the table `state`, and sums over the other tables. A copy is changed by a transaction and kept when the
    /// transaction has succeeded.
    private struct State {
        /// The numbers of a new device begin after this one.
        var base: Int64 = 0
        var lastID: Int64 = 0
        /// Values up to this identifier are sent or may be.
        var sentThrough: Int64 = 0
        /// The outbox's clock, in milliseconds.
        var clock: Int64 = 0
        var depth = 0
        var bytes = 0
        var devices = 0
        var dropped: [DropCause: Int64] = [:]
    }

    /// The contents of the file contradict themselves.
    private struct Damage: Error { let reason: String }

    private static let applicationID: Int64 = 0x4243_4758  // "BCGX"
    private static let version: Int64 = 1
    /// The numbers that one second of the clock provides after a damage.
    private static let numbersPerSecond: Int64 = 1 << 20
    /// The clock of a machine without a battery may be in 1970: no epoch is before this time, in 2025.
    private static let earliestEpoch: Int64 = 1_750_000_000
    private static let keptDamagedFiles = 4
    private static let overhead = 64
    private static let pageSize = 4_096
    /// The log is written to the file when it has this many pages.
    private static let logPages = 256
    /// So much of the file system is left to the log: four times its usual size, in bytes.
    private static let reservedSpace = 4 * logPages * pageSize
    private static let largest: Int64 = 1 << 53

    private let path: String
    private let limits: OutboxLimits
    private let logger: Logger
    private let uptime: @Sendable () -> Duration

    /// The open file, or `nil` if it was closed, or could not be opened again after a damage.
    private var queue: DatabaseQueue?
    private var isClosed = false
    private var state = State()
    private(set) var sentBefore: Int64 = 0
    private var drops: [DropCause: RareEvents] = [:]
    /// The outbox's clock at `uptime()` 0.
    private var clockOffset: Int64 = 0

    init(
        path: String, limits: OutboxLimits, logger: Logger, uptime: @escaping @Sendable () -> Duration
    ) throws(OutboxError) {
        (self.path, self.limits, self.logger, self.uptime) = (path, limits, logger, uptime)
        do {
            do { try open() } catch let error where Self.isDamage(error) { try replace(error) }
            try trim()
        } catch {
            close()
            throw translated(error)
        }
        sentBefore = state.sentThrough
    }

    // MARK: Calls

    func validate(_ value: NewValue) throws(OutboxError) {
        guard value.body.count <= limits.bodyBytes else {
            throw .invalid(reason: "its body has \(value.body.count) bytes, and \(limits.bodyBytes) are allowed.")
        }
        guard StoredValue.members(of: value.body) != nil else {
            throw .invalid(reason: "its body is not a JSON object.")
        }
        guard !value.topic.isEmpty, value.topic.utf8.count <= 65_535 else {
            throw .invalid(reason: "its topic has \(value.topic.utf8.count) bytes; from 1 to 65535 are allowed.")
        }
        guard Self.size(of: value) <= limits.bytes else {
            throw .invalid(reason: "it has \(Self.size(of: value)) bytes, and the whole outbox \(limits.bytes).")
        }
    }

    /// Deletes what was acknowledged and stores new values.
    func commit(_ values: [NewValue], _ deliveries: [Delivery]) throws(OutboxError) -> Commit {
        let result = try transaction { database, state in
            var result = Commit()
            for delivery in deliveries { try remove(delivery, cause: nil, database, &state) }
            result.stored.reserveCapacity(values.count)
            if !values.isEmpty { try requireSpace(for: values, database) }
            for value in values { result.stored.append(try insert(value, database, &state)) }
            while state.bytes > limits.bytes {
                var excess = state.bytes - limits.bytes
                result.dropped += try dropOldest(.size, database, &state) { size, _ in
                    guard excess > 0 else { return false }
                    excess -= size
                    return true
                }
            }
            return result
        }
        warn(result.dropped, .size)
        return result
    }

    /// Throws if storing values would take the last space of the file system. Deleting values needs some for the log, and
    /// makes room in the file only.
    private func requireSpace(for values: [NewValue], _ database: Database) throws {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return }
        let available = Int(clamping: status.f_bavail).multipliedReportingOverflow(by: Int(clamping: status.f_frsize))
        guard !available.overflow, available.partialValue < Self.reservedSpace else { return }
        let pages = try Int64.fetchOne(database, sql: "PRAGMA freelist_count") ?? 0
        let needed = values.reduce(16) { $0 + 2 + 2 * Self.size(of: $1) / Self.pageSize }
        guard pages >= needed else { throw OutboxError.diskFull(path: path) }
    }

    /// Drops a value that cannot be sent.
    func discard(_ delivery: Delivery) throws(OutboxError) {
        try transaction { database, state in try remove(delivery, cause: .refused, database, &state) }
    }

    func page(after id: Int64, count: Int, bytes: Int) throws(OutboxError) -> [StoredValue] {
        try access { queue in
            // One statement needs no transaction, with which `read` would surround it.
            try queue.inDatabase { database in
                let rows = try Row.fetchCursor(
                    database.cachedStatement(
                        sql: """
                            SELECT m.id, d.name, m.sequence, m.topic, m.time, m.body, m.dropped, d.base
                            FROM message m LEFT JOIN device d ON d.id = m.device WHERE m.id > ? ORDER BY m.id LIMIT ?
                            """), arguments: [id, count])
                var (values, size): ([StoredValue], Int) = ([], 0)
                while size < bytes, let row = try rows.next() {
                    let value = try Self.value(row)
                    size += value.body.count + value.topic.utf8.count + Self.overhead
                    values.append(value)
                }
                return values
            }
        }
    }

    /// Notes that values up to an identifier are sent or may be. With a smaller one the mark is lowered.
    func markSent(through id: Int64) throws(OutboxError) {
        try transaction { _, state in state.sentThrough = id }
    }

    /// Drops what is too old, and stores the clock.
    func expire() throws(OutboxError) -> Int64 {
        var sum: Int64 = 0
        while state.depth > 0 {
            let dropped = try transaction { database, state in
                let limit = state.clock - Self.milliseconds(limits.age)
                return try dropOldest(.age, database, &state) { _, stamp in stamp < limit }
            }
            sum += dropped
            if dropped == 0 { break }
        }
        warn(sum, .age)
        return sum
    }

    func statistics() throws(OutboxError) -> OutboxStatistics {
        let oldest = try access { queue in
            try queue.inDatabase { database in
                try Int64.fetchOne(
                    database.cachedStatement(sql: "SELECT stamp FROM message ORDER BY id LIMIT 1"))
            }
        }
        let age = oldest.map { Duration.milliseconds(max(0, now() - $0)) }
        return OutboxStatistics(depth: state.depth, bytes: state.bytes, oldestAge: age, dropped: state.dropped)
    }

    /// Executes a statement and returns the first column of its result, for tests.
    func execute(_ sql: String) throws(OutboxError) -> [String] {
        try access { queue in
            try queue.inDatabase { database in
                try Row.fetchAll(database, sql: sql).map { "\($0[0] as DatabaseValue)" }
            }
        }
    }

    func close() {
        isClosed = true
        closeFile()
    }

    private func closeFile() {
        try? queue?.close()
        queue = nil
    }

    // MARK: Rows

    private static func size(of value: NewValue) -> Int { value.body.count + value.topic.utf8.count + overhead }

    private func insert(_ value: NewValue, _ database: Database, _ state: inout State) throws -> StoredValue {
        let found = try Row.fetchOne(
            database.cachedStatement(sql: "SELECT id, base, last, dropped FROM device WHERE name = ?"),
            arguments: [value.device.description])
        var (device, base, last, dropped): (Int64, Int64, Int64, Int64)
        if let found {
            (device, base) = (try Self.integer(found, 0), try Self.integer(found, 1))
            (last, dropped) = (try Self.integer(found, 2), try Self.integer(found, 3))
        } else {
            try forgetDevices(database, &state)
            (base, last, dropped) = (state.base, state.base, 0)
            try database.execute(
                sql: "INSERT INTO device (name, base, last, dropped, used) VALUES (?, ?, ?, 0, 0)",
                arguments: [value.device.description, base, last])
            device = database.lastInsertedRowID
            state.devices += 1
        }
        last += 1
        state.lastID += 1
        let milliseconds = StoredValue.milliseconds(of: value.time)
        let size = Self.size(of: value)
        try database.cachedStatement(sql: "UPDATE device SET last = ?, dropped = 0, used = ? WHERE id = ?")
            .execute(arguments: [last, state.clock, device])
        try database.cachedStatement(
            sql: """
                INSERT INTO message (id, device, sequence, topic, time, stamp, size, dropped, body)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
        ).execute(arguments: [
            state.lastID, device, last, value.topic, milliseconds, state.clock, size, dropped, value.body,
        ])
        state.depth += 1
        state.bytes += size
        return StoredValue(
            id: state.lastID, device: value.device, sequence: last, topic: value.topic, milliseconds: milliseconds,
            body: value.body, dropped: dropped, isRestarted: base > 0 && last - dropped - 1 == base)
    }

    /// Makes room for a device: removes those that have no values, beginning with the one that was silent for the longest
    /// time. Numbers of new devices begin above theirs.
    private func forgetDevices(_ database: Database, _ state: inout State) throws {
        guard state.devices >= limits.devices else { return }
        let rows = try Row.fetchAll(
            database,
            sql: """
                SELECT id, last FROM device d WHERE NOT EXISTS (SELECT 1 FROM message m WHERE m.device = d.id)
                ORDER BY dropped > 0, used LIMIT ?
                """, arguments: [max(1, limits.devices / 100)])
        for row in rows {
            state.base = max(state.base, try Self.integer(row, 1))
            try database.execute(sql: "DELETE FROM device WHERE id = ?", arguments: [try Self.integer(row, 0)])
            state.devices -= 1
        }
    }

    /// Deletes a value: it was acknowledged, or it is dropped.
    private func remove(
        _ delivery: Delivery, cause: DropCause?, _ database: Database, _ state: inout State
    ) throws {
        guard
            let row = try Row.fetchOne(
                database.cachedStatement(sql: "SELECT device, size, dropped FROM message WHERE id = ?"),
                arguments: [delivery.id])
        else { return }
        try database.cachedStatement(sql: "DELETE FROM message WHERE id = ?").execute(arguments: [delivery.id])
        let (device, dropped) = (try Self.integer(row, 0), try Self.integer(row, 2))
        state.depth -= 1
        state.bytes -= Int(try Self.integer(row, 1))
        if let cause {
            state.dropped[cause, default: 0] += 1
            try carry(dropped + 1, device, after: delivery.id, database)
        } else {
            try carry(dropped - delivery.dropped, device, after: delivery.id, database)
        }
    }

    /// Drops values, beginning with the oldest one, while a condition holds, and at most 512 of them.
    ///
    /// - Parameter isDropped: Receives the value's size and its time by the outbox's clock.
    private func dropOldest(
        _ cause: DropCause, _ database: Database, _ state: inout State, while isDropped: (Int, Int64) -> Bool
    ) throws -> Int64 {
        let rows = try Row.fetchAll(
            database.cachedStatement(
                sql: "SELECT id, device, size, stamp, dropped FROM message ORDER BY id LIMIT 512"))
        var (last, count): (Int64?, Int64) = (nil, 0)
        var devices: [Int64: Int64] = [:]
        for row in rows {
            let size = Int(try Self.integer(row, 2))
            guard isDropped(size, try Self.integer(row, 3)) else { break }
            last = try Self.integer(row, 0)
            devices[try Self.integer(row, 1), default: 0] += 1 + (try Self.integer(row, 4))
            state.depth -= 1
            state.bytes -= size
            count += 1
        }
        guard let last else {
            if cause == .size { throw Damage(reason: "the sizes of the values are wrong") }
            return 0
        }
        try database.cachedStatement(sql: "DELETE FROM message WHERE id <= ?").execute(arguments: [last])
        state.dropped[cause, default: 0] += count
        for (device, number) in devices { try carry(number, device, after: last, database) }
        return count
    }

    /// Adds a number of dropped values to the device's next value, which reports it: the next one in the table, or the next
    /// one that will be stored.
    private func carry(_ number: Int64, _ device: Int64, after id: Int64, _ database: Database) throws {
        guard number > 0 else { return }
        let next = try Int64.fetchOne(
            database.cachedStatement(sql: "SELECT id FROM message WHERE device = ? AND id > ? ORDER BY id LIMIT 1"),
            arguments: [device, id])
        if let next {
            try database.cachedStatement(sql: "UPDATE message SET dropped = dropped + ? WHERE id = ?")
                .execute(arguments: [number, next])
        } else {
            try database.cachedStatement(sql: "UPDATE device SET dropped = dropped + ? WHERE id = ?")
                .execute(arguments: [number, device])
        }
    }

    private static func value(_ row: Row) throws -> StoredValue {
        guard let name = String.fromDatabaseValue(row[1]), let device = DeviceName(name),
            let topic = String.fromDatabaseValue(row[3]), let body = Data.fromDatabaseValue(row[5])
        else { throw Damage(reason: "a value has no device, topic or body") }
        let (sequence, dropped, base) = (try integer(row, 2), try integer(row, 6), try integer(row, 7))
        return StoredValue(
            id: try integer(row, 0), device: device, sequence: sequence, topic: topic,
            milliseconds: try integer(row, 4), body: body, dropped: dropped,
            isRestarted: base > 0 && sequence - dropped - 1 == base)
    }

    /// Returns a number of a row. All numbers are from 0 to 2⁵³: with others the file is damaged.
    private static func integer(_ row: Row, _ index: Int) throws -> Int64 {
        guard let value = Int64.fromDatabaseValue(row[index]), (0...largest).contains(value) else {
            throw Damage(reason: "a number is missing or out of range")
        }
        return value
    }

    // MARK: Transactions

    private func access<T>(_ body: (DatabaseQueue) throws -> T) throws(OutboxError) -> T {
        do {
            do {
                return try body(opened())
            } catch let error where Self.isDamage(error) {
                try replace(error)
                return try body(opened())
            }
        } catch { throw translated(error) }
    }

    private func opened() throws -> DatabaseQueue {
        if let queue { return queue }
        guard !isClosed else { throw OutboxError.cannotOpen(path: path, reason: "the outbox was closed.") }
        return try open()
    }

    private func transaction<T>(_ body: (Database, inout State) throws -> T) throws(OutboxError) -> T {
        try access { queue in
            var next = state
            next.clock = now()
            let result = try queue.write { database in
                let result = try body(database, &next)
                try save(next, database)
                return result
            }
            state = next
            return result
        }
    }

    private func save(_ next: State, _ database: Database) throws {
        try database.cachedStatement(sql: "UPDATE state SET base = ?, lastID = ?, sentThrough = ?, clock = ?")
            .execute(arguments: [next.base, next.lastID, next.sentThrough, next.clock])
        for (cause, count) in next.dropped where count != state.dropped[cause] {
            try database.cachedStatement(sql: "UPDATE counter SET value = ? WHERE name = ?")
                .execute(arguments: [count, cause.rawValue])
        }
    }

    /// The outbox's clock, in milliseconds. It does not decrease.
    private func now() -> Int64 {
        min(max(state.clock, clockOffset &+ Self.milliseconds(uptime())), Self.largest)
    }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        let seconds = min(max(duration.components.seconds, 0), largest / 1000 - 1)
        return seconds * 1000 + max(0, duration.components.attoseconds / 1_000_000_000_000_000)
    }

    /// Logs that values were dropped, at most once a minute for each cause.
    private func warn(_ count: Int64, _ cause: DropCause) {
        guard count > 0, let sum = drops[cause, default: RareEvents()].add(count, at: uptime()) else { return }
        logger.warning(
            "Dropped the oldest values of the outbox.",
            metadata: ["cause": "\(cause.rawValue)", "count": "\(sum)", "kept": "\(state.depth)"])
    }

    // MARK: The file

    @discardableResult
    private func open() throws -> DatabaseQueue {
        if !FileManager.default.fileExists(atPath: path) {
            // A log without its file is what remains if the process has ended between the two renames of `replace`.
            // SQLite would apply it to the new file.
            if FileManager.default.fileExists(atPath: path + "-wal") { try setAside() }
            // The folder is made, but not those that contain it: a wrong path is reported rather than made.
            if let folder = path.lastIndex(of: "/").map({ String(path[..<$0]) }), !folder.isEmpty {
                mkdir(folder, 0o700)
            }
            let file = Glibc.open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            guard file >= 0 else {
                let reason = String(cString: strerror(errno))
                throw OutboxError.cannotOpen(
                    path: path,
                    reason: "\(reason). Make its folder for the user of the gateway, or change store.path.")
            }
            _ = Glibc.close(file)
        }
        var configuration = Configuration()
        configuration.label = "bluecap.gateway.outbox"
        configuration.prepareDatabase { database in
            // The exclusive mode refuses other processes, and keeps the index of the log in memory.
            try database.execute(sql: "PRAGMA page_size = \(Self.pageSize); PRAGMA locking_mode = EXCLUSIVE")
        }
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        do { try queue.inDatabase(prepare) } catch {
            try? queue.close()
            throw error
        }
        self.queue = queue
        return queue
    }

    /// Creates the tables in a new file, and checks those of another one.
    private func prepare(_ database: Database) throws {
        let isNew = try Int64.fetchOne(database, sql: "SELECT COUNT(*) FROM sqlite_schema") == 0
        let application = try Int64.fetchOne(database, sql: "PRAGMA application_id")
        let version = try Int64.fetchOne(database, sql: "PRAGMA user_version") ?? 0
        guard isNew || application == Self.applicationID else {
            throw OutboxError.cannotOpen(path: path, reason: "it is a database of another program.")
        }
        guard version <= Self.version else {
            throw OutboxError.cannotOpen(path: path, reason: "a later version of the gateway has written it.")
        }
        guard try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL") == "wal" else {
            throw OutboxError.cannotOpen(path: path, reason: "its file system does not support SQLite's WAL mode.")
        }
        try database.execute(
            sql: """
                PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = \(Self.logPages);
                PRAGMA journal_size_limit = \(Self.logPages * Self.pageSize); PRAGMA cache_size = -2048
                """)
        if isNew { try create(database) }
        try load(database)
    }

    private func create(_ database: Database) throws {
        let base = damagedFiles().last.map { epoch(after: $0) * Self.numbersPerSecond } ?? 0
        try database.inTransaction {
            // Identifiers begin as the numbers do, so that those of the damaged file do not occur again.
            try database.execute(
                sql: """
                    CREATE TABLE state (
                        id INTEGER PRIMARY KEY CHECK (id = 1), base INTEGER NOT NULL, lastID INTEGER NOT NULL,
                        sentThrough INTEGER NOT NULL, clock INTEGER NOT NULL) STRICT;
                    CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
                    CREATE TABLE device (
                        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, base INTEGER NOT NULL,
                        last INTEGER NOT NULL, dropped INTEGER NOT NULL, used INTEGER NOT NULL) STRICT;
                    CREATE TABLE message (
                        id INTEGER PRIMARY KEY, device INTEGER NOT NULL, sequence INTEGER NOT NULL, topic TEXT NOT NULL,
                        time INTEGER NOT NULL, stamp INTEGER NOT NULL, size INTEGER NOT NULL, dropped INTEGER NOT NULL,
                        body BLOB NOT NULL) STRICT;
                    CREATE INDEX messageByDevice ON message (device, id);
                    INSERT INTO state VALUES (1, \(base), \(base), \(base), \(max(state.clock, 0)));
                    PRAGMA application_id = \(Self.applicationID);
                    PRAGMA user_version = \(Self.version);
                    """)
            for cause in DropCause.allCases {
                try database.execute(
                    sql: "INSERT INTO counter VALUES (?, ?)", arguments: [cause.rawValue, state.dropped[cause] ?? 0])
            }
            return .commit
        }
    }

    /// Checks the file and reads the state.
    private func load(_ database: Database) throws {
        let check = try String.fetchOne(database, sql: "PRAGMA quick_check(1)") ?? "no result"
        guard check == "ok" else { throw Damage(reason: check) }
        let row = try Row.fetchOne(
            database,
            sql: """
                SELECT base, lastID, sentThrough, clock,
                    (SELECT COUNT(*) FROM message), (SELECT COALESCE(SUM(size), 0) FROM message),
                    (SELECT COALESCE(MAX(id), 0) FROM message), (SELECT COUNT(*) FROM device) FROM state
                """)
        guard let row else { throw Damage(reason: "the table of the state is empty") }
        var next = State()
        next.base = try Self.integer(row, 0)
        next.lastID = max(try Self.integer(row, 1), try Self.integer(row, 6))
        // Values were marked in advance, and what is stored from now on was not sent.
        next.sentThrough = min(try Self.integer(row, 2), next.lastID)
        next.clock = try Self.integer(row, 3)
        next.depth = Int(try Self.integer(row, 4))
        next.bytes = Int(try Self.integer(row, 5))
        next.devices = Int(try Self.integer(row, 7))
        for cause in DropCause.allCases {
            next.dropped[cause] =
                try Int64.fetchOne(
                    database, sql: "SELECT value FROM counter WHERE name = ?", arguments: [cause.rawValue]) ?? 0
        }
        // No value is from the future, so that each one expires.
        if try Int64.fetchOne(database, sql: "SELECT MAX(stamp) FROM message") ?? 0 > next.clock {
            try database.execute(
                sql: "UPDATE message SET stamp = ? WHERE stamp > ?", arguments: [next.clock, next.clock])
        }
        state = next
        clockOffset = next.clock - Self.milliseconds(uptime())
    }

    /// Applies limits that were lowered, in transactions of a bounded size.
    private func trim() throws {
        _ = try expire()
        var sum: Int64 = 0
        while state.bytes > limits.bytes {
            sum += try transaction { database, state in
                var excess = state.bytes - limits.bytes
                return try dropOldest(.size, database, &state) { size, _ in
                    guard excess > 0 else { return false }
                    excess -= size
                    return true
                }
            }
        }
        warn(sum, .size)
    }

    /// Keeps the damaged file under another name and begins a new one.
    private func replace(_ cause: any Error) throws {
        closeFile()
        let aside = try setAside()
        logger.error(
            "The outbox was damaged. A new one was begun, and the damaged file is kept: what it contains is not published.",
            metadata: ["file": "\(path)", "kept": "\(aside)", "cause": "\(cause)"])
        try open()
    }

    /// Renames the file and its log. The name contains an epoch later than that of each such file before.
    @discardableResult
    private func setAside() throws -> String {
        let files = FileManager.default
        var known = damagedFiles()
        known.append(epoch(after: known.last ?? 0))
        let aside = damagedPath(known[known.count - 1])
        for suffix in ["", "-wal", "-shm", "-journal"] where files.fileExists(atPath: path + suffix) {
            guard rename(path + suffix, aside + suffix) == 0 else {
                throw OutboxError.cannotOpen(
                    path: path,
                    reason: "it is damaged, and cannot be renamed to \(aside): \(String(cString: strerror(errno))).")
            }
        }
        for epoch in known.dropLast(Self.keptDamagedFiles) {
            for suffix in ["", "-wal", "-shm", "-journal"] { unlink(damagedPath(epoch) + suffix) }
        }
        return aside
    }

    private func damagedPath(_ epoch: Int64) -> String { "\(path).damaged-\(epoch)" }

    /// Returns an epoch: the present time in seconds since 1970, and more if the clock was set back.
    private func epoch(after earlier: Int64) -> Int64 {
        min(max(Int64(time(nil)), Self.earliestEpoch, earlier + 1), Self.largest / Self.numbersPerSecond - 1)
    }

    /// Returns the epochs of the damaged files that are kept, in ascending order.
    private func damagedFiles() -> [Int64] {
        let url = URL(fileURLWithPath: path)
        let start = url.lastPathComponent + ".damaged-"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: url.deletingLastPathComponent().path)) ?? []
        return Set(
            names.compactMap { name -> Int64? in
                guard name.hasPrefix(start), let number = Int64(name.dropFirst(start.count).prefix { $0 != "-" }) else {
                    return nil
                }
                return (0..<Self.largest / Self.numbersPerSecond - 1).contains(number) ? number : nil
            }
        ).sorted()
    }

    // MARK: Errors

    private static func isDamage(_ error: any Error) -> Bool {
        if error is Damage { return true }
        guard let error = error as? DatabaseError else { return false }
        return error.resultCode == .SQLITE_CORRUPT || error.resultCode == .SQLITE_NOTADB
    }

    private func translated(_ error: any Error) -> OutboxError {
        switch error {
        case let error as OutboxError: return error
        case let error as DatabaseError:
            switch error.resultCode {
            case .SQLITE_FULL: return .diskFull(path: path)
            case .SQLITE_BUSY, .SQLITE_LOCKED: return .inUse(path: path)
            case .SQLITE_CANTOPEN, .SQLITE_PERM, .SQLITE_AUTH, .SQLITE_READONLY:
                let reason = error.message ?? "SQLite gives no reason"
                return .cannotOpen(path: path, reason: "\(reason). The file and its folder must be writable.")
            default:
                return .failed(
                    path: path, code: error.extendedResultCode.rawValue,
                    reason: error.message ?? "SQLite gives no reason.")
            }
        case let error as Damage: return .failed(path: path, code: 11, reason: error.reason)
        default: return .failed(path: path, code: 1, reason: "\(error)")
        }
    }
}
