// Our central, through the public API, under the same rules as the others: see BusCentralInC/main.c.
//
//     BusCentralInSwift notify|acquire|read|write|resolve [PERIPHERALS] immediate|default|async|executor
//
// Handlers run on that context. With `async` and `executor` a task reads or writes, in a run, on Swift's threads or on the
// manager's executor. With several peripherals, `notify` subscribes to each; the others use one. The bus is the one that
// DBUS_SYSTEM_BUS_ADDRESS names.

import BlueCapKit
import Foundation
import Synchronization

@main
struct BusCentralInSwift {
    static func main() {
        let words = CommandLine.arguments.dropFirst()
        let context: any ExecutionContext =
            switch words.last {
            case "immediate", "async", "executor": ImmediateContext()
            case "default": QueueContext.futuresDefault
            default:
                fail(
                    "usage: BusCentralInSwift notify|acquire|read|write|resolve [PERIPHERALS] "
                        + "immediate|default|async|executor")
            }
        guard let mode = words.first.flatMap(Mode.init) else { fail("no such mode") }
        let count = words.count > 2 ? words.dropFirst().first.flatMap { Int($0) } ?? 1 : 1
        let task = words.last.flatMap(TaskPlace.init)
        let central = Central(mode: mode, context: context, task: task, count: count)
        central.start()
        while let line = readLine() {
            let numbers = line.split(separator: " ").dropFirst().compactMap { Int($0) }
            central.measure(numbers[0], width: numbers.count > 1 ? numbers[1] : 1)
        }
        withExtendedLifetime(central) {}
    }
}

enum Mode: String {
    case notify, acquire, read, write, resolve
}

/// Where a task calls, if one does.
enum TaskPlace: String {
    case async, executor
}

/// One at a time is what the driver asks, and handlers come one after another: no lock is needed, and none is measured.
final class Central: @unchecked Sendable {
    private let mode: Mode
    private let context: any ExecutionContext
    private let task: TaskPlace?
    /// How many peripherals are connected, and how many of them are not subscribed to yet.
    private let count: Int
    private var unsubscribed: Int
    private let manager = CentralManager()
    private var peripheral: Peripheral?
    private var characteristics: [Characteristic] = []
    private let received = Atomic<Int>(0)
    /// The peripherals whose last notification has arrived.
    private let ended = Atomic<Int>(0)

    private static let value = Data(count: 20)
    private var latencies: [Double] = []
    private var total = 0
    private var unsent = 0
    private var startedAt = 0.0
    private var begin = 0.0

    init(mode: Mode, context: any ExecutionContext, task: TaskPlace?, count: Int) {
        self.mode = mode
        self.context = context
        self.task = task
        (self.count, unsubscribed) = (count, count)
    }

    func start() {
        manager.whenStateChanges().onSuccess(context: context) { [self] state in
            guard state == .poweredOn, peripheral == nil else { return }
            let identifiers = (1...UInt64(count)).map {
                BluetoothAddress(rawValue: 0xC098_E500_0000 + $0).identifier(type: .random)
            }
            let found = manager.retrievePeripherals(withIdentifiers: identifiers)
            guard found.count == count else { fail("a device is not there") }
            peripheral = found[0]
            if mode == .resolve { return say("ready") }
            for peripheral in found { connect(peripheral) }
        }
    }

    private func connect(_ peripheral: Peripheral) {
        begin = now()
        let events = peripheral.connect(connectionTimeout: 60)
        events.onSuccess(context: context) { [self] peripheral, event in
            switch event {
            case .connect: discover(peripheral)
            case .forceDisconnect: cycleEnded()
            case .timeout, .disconnect, .giveUp: fail("the connection was lost")
            }
        }
        events.onFailure(context: context) { fail("\($0)") }
    }

    private func discover(_ peripheral: Peripheral) {
        let services: Future<Peripheral> = peripheral.discoverAllServices()
        let discovered = services.flatMap(context: context) { peripheral -> Future<[Service]> in
            peripheral.services.map { service -> Future<Service> in service.discoverAllCharacteristics() }.sequence()
        }
        discovered.onSuccess(context: context) { [self] services in resolved(peripheral, services) }
        discovered.onFailure(context: context) { fail("\($0)") }
    }

    private func resolved(_ peripheral: Peripheral, _ services: [Service]) {
        let found = services.flatMap(\.characteristics)
        guard services.count + found.count == 110 else { fail("not all attributes are there") }
        if mode == .resolve {
            latencies.append(now() - begin)
            return peripheral.disconnect()
        }
        characteristics = found
        switch mode {
        case .notify: subscribe(found[0], over: .signals)
        case .acquire: subscribe(found[0], over: .socket)
        case .read, .write, .resolve: say("ready")
        }
    }

    private func subscribe(_ characteristic: Characteristic, over transport: NotificationTransport) {
        let started: Future<Characteristic> = characteristic.startNotifying(over: transport)
        started.onSuccess(context: context) { [self] characteristic in
            let values: FutureStream<Data> = characteristic.receiveNotificationUpdates(capacity: 0)
            values.onSuccess(context: context) { [self] in note($0) }
            values.onFailure(context: context) { fail("\($0)") }
            unsubscribed -= 1
            if unsubscribed == 0 { say("ready") }
        }
        started.onFailure(context: context) { fail("\($0)") }
    }

    private func note(_ value: Data) {
        let number = value.withUnsafeBytes { $0.count < 4 ? 0 : $0.loadUnaligned(as: UInt32.self) }
        guard number == .max else {
            received.add(1, ordering: .relaxed)
            return
        }
        guard ended.add(1, ordering: .relaxed).newValue == count else { return }
        ended.store(0, ordering: .relaxed)
        say("received \(received.exchange(0, ordering: .relaxed))")
    }

    // MARK: Measuring

    func measure(_ total: Int, width: Int) {
        self.total = total
        latencies = []
        latencies.reserveCapacity(total)
        unsent = total
        startedAt = now()
        if let task, let peripheral, mode != .resolve {
            call(total, of: peripheral, on: task == .executor ? manager.executor : nil)
        } else if mode == .read || mode == .write {
            // On their context, like all that follows.
            context.execute { [self] in for characteristic in characteristics.prefix(width) { callNext(characteristic) }
            }
        } else if let peripheral {
            connect(peripheral)
        }
    }

    private func callNext(_ characteristic: Characteristic) {
        guard unsent > 0 else { return }
        unsent -= 1
        let sent = now()
        let answer: Future<Characteristic> =
            mode == .read ? characteristic.read(timeout: 10) : characteristic.write(data: Self.value, timeout: 10)
        answer.onSuccess(context: context) { [self] characteristic in
            guard mode == .write || characteristic.dataValue?.count == 20 else { fail("a value of another length") }
            latencies.append(now() - sent)
            if latencies.count == total { report() } else { callNext(characteristic) }
        }
        answer.onFailure(context: context) { fail("\($0)") }
    }

    /// Reads or writes the first characteristic in a task, one call after another.
    private func call(_ total: Int, of peripheral: Peripheral, on executor: (any TaskExecutor)?) {
        guard let first = characteristics.first, let service = first.service else { fail("no characteristic") }
        let identifier = CharacteristicIdentifier(uuid: first.uuid, service: ServiceIdentifier(uuid: service.uuid))
        Task(executorPreference: executor) { [self] in
            do {
                try await peripheral.run(timeout: .seconds(600)) { [self] connected in
                    for _ in 0..<total {
                        let sent = now()
                        switch mode {
                        case .write: try await connected.write(Self.value, to: identifier)
                        default: _ = try await connected.read(identifier) as Data
                        }
                        latencies.append(now() - sent)
                    }
                }
                report()
            } catch {
                fail("\(error)")
            }
        }
    }

    private func cycleEnded() {
        guard latencies.count < total else { return report() }
        begin = now()
        peripheral?.reconnect()
    }

    private func report() {
        let seconds = now() - startedAt
        latencies.sort()
        say("took \(total) \(seconds) \(latencies[total / 2] * 1e6) \(latencies[total * 99 / 100] * 1e6)")
    }
}

private func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
}

/// Past `stdout`, whose lock another thread may hold that waits for input.
private func say(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }

private func fail(_ reason: String) -> Never {
    FileHandle.standardError.write(Data("BusCentralInSwift: \(reason)\n".utf8))
    exit(1)
}
