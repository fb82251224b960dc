import BlueZSimulator
import Foundation
import GatewayTestSupport
import XCTest

@testable import GatewayStore

/// A gateway's process with a simulated BlueZ, whose device counts, and a broker.
final class GatewayStage {
    static let address: VirtualAddress = "C0:FF:EE:00:00:01"
    static let topic = "bluecap/attic/value/c0ffee000001/180d/2a37"

    /// What the gateway's process finds on its machine.
    enum Surroundings: Equatable {
        case usual
        /// The store is on a file system of its own.
        case disk
        /// The wall clock is the one of ``setClock(_:)``.
        case clock
    }

    let simulator: Simulator
    let brokers: [String]
    /// The broker, unless the stage was made with the addresses of a cluster.
    private let mosquitto: MosquittoBroker?
    let directory: TemporaryDirectory
    private(set) var process: ServerProcess?
    private var starts = 0
    private var surroundings = Surroundings.usual
    /// The process whose namespace has the file system of ``Surroundings/disk``.
    private var mounter: ServerProcess?
    var keepAlive = 5
    var inFlight = 100
    var logLevel = "notice"

    /// The device notifies a number, which counts from 0 for each subscription, at this interval in seconds.
    init(every interval: TimeInterval, cluster: NatsCluster? = nil) async throws {
        simulator = try Simulator.onPrivateBus(room: .empty)
        simulator.add(Self.device(every: interval))
        mosquitto = if cluster == nil { try await MosquittoBroker() } else { nil }
        brokers = cluster?.addresses ?? mosquitto.map { [$0.address] } ?? []
        directory = try TemporaryDirectory()
    }

    /// A device that notifies a number, can be read and can be written.
    static func device(every interval: TimeInterval) -> VirtualPeripheral {
        VirtualPeripheral(
            address, advertisement: Advertisement(localName: "Tag"), interval: 0.1,
            services: [
                VirtualService(
                    "180D",
                    characteristics: [
                        VirtualCharacteristic("2A37", [.notify], notifications: .counter(size: 4, every: interval)),
                        VirtualCharacteristic("2A39", [.write], value: []),
                        VirtualCharacteristic("2A38", [.read], value: [1]),
                    ])
            ])
    }

    var broker: MosquittoBroker {
        guard let mosquitto else { preconditionFailure("The stage has a cluster; use that.") }
        return mosquitto
    }

    func start() throws {
        starts += 1
        let folder = surroundings == .disk ? directory.path("disk") : directory.url.path
        let configuration = """
            name: attic
            logLevel: \(logLevel)
            broker: {addresses: [\(brokers.map { "\"\($0)\"" }.joined(separator: ", "))], keepAlive: \(keepAlive)s}
            peripherals:
              - name: Tag
                characteristics: [{service: 180D, uuid: 2A37, as: uint32}]
            commands:
              allow: [{peripheral: Tag, read: ["180D/2A38"]}]
            store: {path: \(folder)/store.sqlite}
            page: {enabled: false}
            claims: {enabled: false}
            limits: {inFlight: \(inFlight)}
            """
        let file = try directory.write("gateway.yaml", configuration)
        let words = command([builtProgram("bluecap-gateway"), "--config", file])
        process = try ServerProcess(
            words[0], Array(words.dropFirst()), environment: ["DBUS_SYSTEM_BUS_ADDRESS": simulator.address],
            log: directory.url.appendingPathComponent("gateway-\(starts).log"))
    }

    private func command(_ words: [String]) -> [String] {
        switch surroundings {
        case .usual: return words
        case .disk: return ["nsenter", "--mount=/proc/\(mounter?.identifier ?? 0)/ns/mnt", "--"] + words
        case .clock:
            // `faketime` runs the program as its child. The file replaces the time that `faketime` sets.
            let script = "export LD_PRELOAD=\"$0:$LD_PRELOAD\"; exec setpriv --pdeathsig KILL -- \"$@\""
            return [
                "faketime", "-m", "--exclude-monotonic", "-f", "+0d", "env", "-u", "FAKETIME",
                "FAKETIME_TIMESTAMP_FILE=\(directory.path("clock"))", "FAKETIME_NO_CACHE=1", "sh", "-c", script,
                directory.path("timers.so"),
            ] + words
        }
    }

    /// The process of the gateway, which may be a child of ``process``; `nil` if there is none.
    var identifier: pid_t? {
        guard let process, process.isRunning else { return nil }
        guard surroundings == .clock else { return process.identifier }
        let path = "/proc/\(process.identifier)/task/\(process.identifier)/children"
        return (try? String(contentsOfFile: path, encoding: .utf8))?.split(separator: " ").first.flatMap { pid_t($0) }
    }

    /// Ends the gateway's process at once.
    func kill() {
        if let identifier { Foundation.kill(identifier, SIGKILL) }
        process?.end()
    }

    /// Ends the gateway in order.
    func stop() async throws {
        if let identifier { Foundation.kill(identifier, SIGTERM) }
        do {
            try await eventually(limit: .seconds(30), "the end of the gateway") { process?.isRunning != true }
        } catch { throw LimitExceeded("\(error); its log ends with: \(log.suffix(2_000))") }
    }

    func end() {
        process?.end()
        mounter?.end()
        mosquitto?.kill()
        simulator.end()
    }

    /// What the gateway's process has logged since its start.
    var log: String {
        let file = directory.url.appendingPathComponent("gateway-\(starts).log")
        return (try? String(contentsOf: file, encoding: .utf8)) ?? ""
    }

    /// Waits until the gateway's process has logged a text.
    func waitForLog(_ text: String, limit: Duration = .seconds(20)) async throws {
        do {
            try await eventually(limit: limit, "\"\(text)\" in the gateway's log") { log.contains(text) }
        } catch { throw LimitExceeded("\(error); it ends with: \(log.suffix(2_000))") }
    }

    // MARK: The machine

    /// The folder of ``Surroundings/disk``.
    var disk: URL {
        URL(fileURLWithPath: "/proc/\(mounter?.identifier ?? 0)/root\(directory.path("disk"))")
    }

    /// Prepares ``Surroundings/disk`` with this size, in memory, or skips the test if it cannot be mounted.
    func requireDisk(megabytes: Int) async throws {
        let folder = directory.path("disk")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let script = "mount -t tmpfs -o size=\(megabytes)m tmpfs \"$0\" && exec sleep infinity"
        let process = try ServerProcess(
            "unshare", ["--mount", "sh", "-c", script, folder], log: directory.url.appendingPathComponent("mount.log"))
        try await eventually("the file system") {
            guard process.isRunning else {
                throw XCTSkip("A file system cannot be mounted for a process: \(process.output)")
            }
            return (try? String(contentsOfFile: "/proc/\(process.identifier)/mounts", encoding: .utf8))?
                .contains(" \(folder) ") == true
        }
        (mounter, surroundings) = (process, .disk)
    }

    /// Fills ``disk`` to its last page.
    func fillDisk() throws {
        let ballast = disk.appendingPathComponent("ballast")
        try Data().write(to: ballast)
        let file = try FileHandle(forWritingTo: ballast)
        while (try? file.write(contentsOf: Data(count: 4_096))) != nil {}
        try file.close()
    }

    /// Removes what has filled ``disk``.
    func clearDisk() throws { try FileManager.default.removeItem(at: disk.appendingPathComponent("ballast")) }

    /// Prepares ``Surroundings/clock``, or skips the test if a program is missing.
    ///
    /// `libfaketime` changes the timers of all clocks, also of those that it does not change: Swift's timers would end as much later
    /// as the clock is set back. A second library gives the timers back to the kernel.
    func requireClock() async throws {
        let text = """
            #include <sys/syscall.h>
            #include <unistd.h>
            int timerfd_settime(int timer, int flags, const void *value, void *old) {
                return syscall(SYS_timerfd_settime, timer, flags, value, old);
            }
            int timerfd_gettime(int timer, void *value) { return syscall(SYS_timerfd_gettime, timer, value); }

            """
        let source = try directory.write("timers.c", text)
        do {
            try await run("faketime", ["--version"], in: directory)
            try await run("cc", ["-shared", "-fPIC", "-o", directory.path("timers.so"), source], in: directory)
        } catch { throw XCTSkip("Debian's packages faketime and gcc are needed: \(error)") }
        surroundings = .clock
        try setClock("+0d")
    }

    /// Sets the clock of ``Surroundings/clock`` to this difference to the real one, such as `-400d`.
    func setClock(_ difference: String) throws { _ = try directory.write("clock", difference + "\n") }

    /// The resident memory of the gateway's process in MiB.
    var memory: Double? {
        guard let identifier, let text = try? String(contentsOfFile: "/proc/\(identifier)/status", encoding: .utf8),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") }),
            let number = line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Double($0) })
        else { return nil }
        return number / 1024
    }

    /// The last number that the store has given to the device, and what remains in it. After the end of the process.
    func stored() throws -> (last: Int, remaining: [Delivered]) {
        if surroundings == .disk {
            // SQLite would resolve the link in the path, and leave the namespace that has the file system.
            for name in ["store.sqlite", "store.sqlite-wal"] {
                let file = disk.appendingPathComponent(name)
                guard FileManager.default.fileExists(atPath: file.path) else { continue }
                try Data(contentsOf: file).write(to: directory.url.appendingPathComponent(name))
            }
        }
        let outbox = try Outbox(path: directory.path("store.sqlite"))
        defer { outbox.close() }
        let numbers = try outbox.execute("SELECT last FROM device")
        let values = try outbox.values(after: 0, count: .max)
        return (
            numbers.compactMap { Int($0) }.max() ?? 0,
            try values.map { try JSONDecoder().decode(Delivered.self, from: $0.payload(repeated: false)) }
        )
    }
}

/// Prints a line at once: a test that prints nothing for minutes is taken for one that hangs.
func progress(_ line: String) {
    print(line)
    fflush(nil)
}

/// The resident memory of a process over time, in MiB.
struct MemoryRecord {
    private var samples: [Double] = []

    /// Samples the gateway's memory four times a second for a time.
    static func of(_ stage: GatewayStage, for duration: Duration) async throws -> MemoryRecord {
        var record = MemoryRecord()
        let end = ContinuousClock.now + duration
        while ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(250))
            guard let memory = stage.memory else { throw LimitExceeded("the gateway has ended: \(stage.log)") }
            record.samples.append(memory)
            let count = record.samples.count
            if count % 240 == 0 { progress("\(count / 240) min, \(memory) MiB") }
        }
        return record
    }

    /// The most memory of the first and of the second half.
    private var halves: (first: Double, second: Double) {
        let middle = samples.count / 2
        return (samples[..<middle].max() ?? 0, samples[middle...].max() ?? 0)
    }

    /// Fails if the second half of the time had more memory than the first one.
    ///
    /// If the process kept something of each value, the second half would keep as much more as the first one. 3 MiB are allowed for
    /// the pages of SQLite's cache (2 MiB) and of the allocator.
    func expectFlat(line: UInt = #line) {
        XCTAssertGreaterThan(samples.count, 20, line: line)
        XCTAssertLessThan(halves.second, halves.first + 3, "MiB of memory: \(self)", line: line)
    }
}

extension MemoryRecord: CustomStringConvertible {
    var description: String {
        func text(_ number: Double) -> String { String(format: "%.1f", number) }
        return "memory \(text(samples.first ?? 0)) MiB at first, at most \(text(halves.first)) in the first half and "
            + "\(text(halves.second)) in the second"
    }
}

/// A stored message as a subscriber receives it.
struct Delivered: Decodable, Equatable {
    var sequence: Int
    var time: String
    var repeated: Bool?
    var raw: String?
    var reason: String?
    var dropped: Int?

    /// The number that the device has sent.
    var number: UInt32? {
        guard let raw, raw.utf8.count == 8 else { return nil }
        return UInt32(raw, radix: 16)?.byteSwapped
    }
}

/// What has arrived at a subscriber, counted by sequence numbers.
struct Deliveries: CustomStringConvertible {
    /// The first delivery of each number, or what is stored with it, in the order of the numbers.
    let first: [Delivered]
    /// Further deliveries with a mark.
    private(set) var repeated = 0
    /// Further deliveries without a mark, that are the same as the first one: the broker has repeated them.
    private(set) var repeatedByBroker = 0
    /// Further deliveries without a mark that are not the same as the first one.
    private(set) var unmarked = 0
    /// First deliveries after one with a higher number.
    private(set) var outOfOrder = 0
    /// Values that did not arrive and are in the store, for the next process.
    let remaining: Int
    /// Numbers that the store has given, of values that neither arrived nor are in the store.
    let lost: Int
    /// Whether something has arrived that the store has not numbered.
    let isStrange: Bool
    /// Of the device's numbers, those that did not follow the one before, without a gap between.
    private(set) var jumps = 0

    /// - Parameters:
    ///   - messages: What has arrived.
    ///   - stored: What remains in the store, and the last number that it has given.
    init(_ messages: [Delivered], stored: (last: Int, remaining: [Delivered])) {
        var found: [Int: Delivered] = [:]
        var highest = 0
        for message in messages {
            if let known = found[message.sequence] {
                if message.repeated == true {
                    repeated += 1
                } else if message == known {
                    repeatedByBroker += 1
                } else {
                    unmarked += 1
                }
                continue
            }
            found[message.sequence] = message
            if message.sequence < highest { outOfOrder += 1 }
            highest = max(highest, message.sequence)
        }
        let arrived = found.count
        for value in stored.remaining where found[value.sequence] == nil { found[value.sequence] = value }
        remaining = found.count - arrived
        first = found.values.sorted { $0.sequence < $1.sequence }
        lost = max(highest, stored.last) - first.count
        isStrange = highest > stored.last
        var last: UInt32?
        for message in first {
            if message.reason != nil {
                last = nil
            } else {
                if let last, message.number != last + 1 { jumps += 1 }
                last = message.number
            }
        }
    }

    /// The gaps that were published, with their reasons.
    var gaps: [String] { first.compactMap(\.reason) }
    var dropped: Int { first.reduce(0) { $0 + ($1.dropped ?? 0) } }

    var description: String {
        "\(first.count - gaps.count) values, \(gaps.count) gaps, \(remaining) still stored, \(repeated) repeated with a mark, "
            + "\(repeatedByBroker) repeated by the broker, \(outOfOrder) out of order, \(lost) lost"
    }

    /// Fails unless all numbers from 1 on have arrived, each second delivery is marked, and between gaps the device's numbers
    /// follow one another.
    ///
    /// - Parameters:
    ///   - brokerRepeats: Whether the broker may deliver a message again as it was, since it was killed.
    ///   - inOrder: Whether the first deliveries are in the order of their numbers.
    func expectComplete(brokerRepeats: Bool = false, inOrder: Bool = true, line: UInt = #line) {
        XCTAssertFalse(isStrange, "another store was read", line: line)
        XCTAssertEqual(lost, 0, "numbers did not arrive", line: line)
        XCTAssertEqual(dropped, 0, "values were dropped", line: line)
        XCTAssertEqual(unmarked, 0, "values came again without a mark", line: line)
        XCTAssertEqual(jumps, 0, "the device's numbers have holes without a gap", line: line)
        if !brokerRepeats { XCTAssertEqual(repeatedByBroker, 0, "values came again without a mark", line: line) }
        if inOrder { XCTAssertEqual(outOfOrder, 0, "values were out of order", line: line) }
    }
}
