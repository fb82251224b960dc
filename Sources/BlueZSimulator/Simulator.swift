package import DBus
public import Foundation
import Futures
package import Reactor

/// A pretend `bluetoothd` of a chosen version with virtual adapters and a room of virtual peripherals, on a bus that any Bluetooth
/// program can be pointed at: this package's, in the same process or another, or anybody else's.
///
/// On a private bus it lives in real time. Programs find it through the environment variable
/// `DBUS_SYSTEM_BUS_ADDRESS`, a `CentralManager` through its options:
///
/// ```swift
/// let simulator = try Simulator.onPrivateBus(room: .named("room"))
/// let manager = CentralManager(options: [CentralManagerOptionBusAddressKey: simulator.address])
/// ```
///
/// In process it lives in virtual time, which passes only in `run()` and `advance(by:)`: minutes of radio take
/// milliseconds, and every run is the same.
///
/// ```swift
/// let simulator = Simulator.inProcess(room: .furnished)
/// simulator.advance(by: 30)
/// ```
///
/// What goes wrong with real radios is made to go wrong by the verbs `simulate…`. They may be called on any thread and
/// take effect on the simulator's loop, in the order of the calls.
///
/// It ends with ``end()`` or with its last reference, and its bus with it.
public final class Simulator: Sendable {
    /// The bus's address, as `DBUS_SYSTEM_BUS_ADDRESS` takes it; for one in process `loopback:name=…`, which only this
    /// process understands.
    public let address: String

    let stage: Stage
    private let bus: PrivateBus?
    private let loopback: LoopbackBus?
    private let thread: ThreadLoop?
    private let manual: ManualLoop?

    private init(
        stage: Stage, address: String, bus: PrivateBus? = nil, loopback: LoopbackBus? = nil,
        thread: ThreadLoop? = nil, manual: ManualLoop? = nil
    ) {
        self.stage = stage
        self.address = address
        self.bus = bus
        self.loopback = loopback
        self.thread = thread
        self.manual = manual
    }

    deinit {
        end()
    }

    // MARK: Beginning and ending

    /// A simulator on a bus of its own: starts a `dbus-daemon` with a configuration of its own, and is `org.bluez` on it
    /// when this returns.
    ///
    /// - Throws: ``SimulatorError``.
    public static func onPrivateBus(
        room: Room = .furnished, adapters: [VirtualAdapter] = [VirtualAdapter()],
        bluez: BlueZVersion = .default
    ) throws(SimulatorError) -> Simulator {
        let bus: PrivateBus
        do {
            bus = try PrivateBus()
        } catch {
            throw .noBus("\(error)")
        }
        return try Simulator(address: bus.address, bus: bus, room: room, adapters: adapters, bluez: bluez)
    }

    /// A simulator on a bus that is there, in real time. It is `org.bluez` there when this returns.
    ///
    /// - Throws: ``SimulatorError``, also when the bus does not let us have that name, as a real system bus will not.
    public convenience init(
        address: String, room: Room = .furnished, adapters: [VirtualAdapter] = [VirtualAdapter()],
        bluez: BlueZVersion = .default
    ) throws(SimulatorError) {
        try self.init(address: address, bus: nil, room: room, adapters: adapters, bluez: bluez)
    }

    private convenience init(
        address: String, bus: PrivateBus?, room: Room, adapters: [VirtualAdapter], bluez: BlueZVersion
    ) throws(SimulatorError) {
        let loop = ThreadLoop(name: "simulator")
        if let shortage = loop.start() {
            bus?.stop()
            throw .noBus("\(shortage)")
        }
        let arrival = Locked<Result<Void, SimulatorError>?>(nil)
        let arrived = DispatchSemaphore(value: 0)
        let stage = Stage(
            Simulation(hardware: adapters, room: room, bluez: bluez), address: address, loop: loop,
            quantum: Self.realTimeQuantum
        ) { result in
            arrival.withLock { $0 = result }
            arrived.signal()
        }
        stage.decide { $0.startDaemon() }
        let isInTime = arrived.wait(timeout: .now() + 5) == .success
        let result = isInTime ? arrival.withLock { $0 } ?? .failure(.noAnswer) : .failure(.noAnswer)
        if case .failure(let error) = result {
            stage.end()
            loop.stop()
            bus?.stop()
            throw error
        }
        self.init(stage: stage, address: address, bus: bus, thread: loop)
    }

    /// A simulator within this process, in virtual time. Nothing happens but in `run()`, `advance(by:)` and
    /// `advance(until:limit:)`, on the thread that calls them.
    public static func inProcess(
        room: Room = .furnished, adapters: [VirtualAdapter] = [VirtualAdapter()],
        bluez: BlueZVersion = .default
    ) -> Simulator {
        let loop = ManualLoop()
        return inProcess(on: LoopbackBus(loop: loop), manual: loop, room: room, adapters: adapters, bluez: bluez)
    }

    /// A simulator on a loopback bus that is there, with the time of that bus's loop.
    package static func inProcess(
        on bus: LoopbackBus, room: Room = .furnished, adapters: [VirtualAdapter] = [VirtualAdapter()],
        bluez: BlueZVersion = .default
    ) -> Simulator {
        inProcess(on: bus, manual: bus.loop as? ManualLoop, room: room, adapters: adapters, bluez: bluez)
    }

    private static func inProcess(
        on bus: LoopbackBus, manual: ManualLoop?, room: Room, adapters: [VirtualAdapter], bluez: BlueZVersion
    ) -> Simulator {
        let stage = Stage(
            Simulation(hardware: adapters, room: room, bluez: bluez), address: bus.address, loop: bus.loop, quantum: 0)
        stage.decide { $0.startDaemon() }
        let simulator = Simulator(stage: stage, address: bus.address, loopback: bus, manual: manual)
        if let manual, !manual.isCurrent { manual.run() }
        return simulator
    }

    /// Ends it: `org.bluez` leaves the bus, and a bus that the simulator started ends too. A second call does nothing.
    public func end() {
        stage.end()
        bus?.stop()
        thread?.stop()
    }

    /// In real time, sightings are heard at most this often, all that are due together.
    private static let realTimeQuantum: TimeInterval = 0.005

    // MARK: Time

    /// Seconds since the simulator began.
    public var seconds: TimeInterval { stage.seconds }

    /// Lets everything happen that can happen now, without time passing. In process only.
    public func run() {
        requireManual().run()
    }

    /// Lets virtual time pass, and everything that falls due in it happen in its order. In process only.
    public func advance(by seconds: TimeInterval) {
        requireManual().advance(by: seconds)
    }

    /// Lets virtual time pass until the condition holds, but no more than `limit` seconds; gives whether it holds. In
    /// process only.
    @discardableResult
    public func advance(until condition: () -> Bool, limit: TimeInterval) -> Bool {
        requireManual().advance(until: condition, limit: limit)
    }

    /// Where tasks run whose time is the simulator's; `nil` if the simulator lives in real time.
    ///
    /// ```swift
    /// let level = Task(executorPreference: simulator.taskExecutor) { try await reader.level() }
    /// await simulator.advance(by: 5)
    /// ```
    ///
    /// Such a task, and its child tasks, run only while virtual time is driven, on the thread that drives it, one after
    /// another. No virtual time passes between two waits of a task.
    public var taskExecutor: (any TaskExecutor)? { stage.loop.taskExecutor }

    /// Lets everything happen that can happen now, tasks included, without time passing. In process only.
    ///
    /// The `async` form of `advance(by:)` says which tasks have reached their next wait when it returns.
    nonisolated(nonsending) public func run() async {
        await requireManual().run()
    }

    /// Lets virtual time pass, and everything that falls due in it happen in its order, in tasks too. In process only.
    ///
    /// Whenever something has happened, the tasks that it made ready go on to their next wait before the clock moves:
    ///
    /// ```swift
    /// let names = Task(executorPreference: simulator.taskExecutor) {
    ///     try await manager.startScanning().values.first { $0.name == "Tag" }
    /// }
    /// await simulator.advance(by: 5)
    /// ```
    ///
    /// - Tasks on ``taskExecutor``, and their child tasks, have run when this returns. Their order is the same in every run.
    /// - Other tasks, those of an actor such as the main actor too, are resumed by Swift's own threads at the same time. They
    ///   get turns before the clock moves: as a rule that suffices, but they are not waited for.
    ///
    /// `Task.sleep` has real time as ever.
    ///
    /// Called in a task on ``taskExecutor`` it waits until that much time has passed, which another caller drives.
    nonisolated(nonsending) public func advance(by seconds: TimeInterval) async {
        await requireManual().advance(by: seconds)
    }

    /// Lets virtual time pass as the `async` form of `advance(by:)` does until the condition holds, but no more than `limit` seconds;
    /// returns whether it holds. In process only.
    @discardableResult
    nonisolated(nonsending) public func advance(until condition: () -> Bool, limit: TimeInterval) async -> Bool {
        await requireManual().advance(until: condition, limit: limit)
    }

    /// Waits until the condition holds, looking whenever something has happened here, but no longer than `limit` real
    /// seconds; gives whether it holds. For a simulator in real time, and never on its loop:
    ///
    /// ```swift
    /// simulator.wait(until: { simulator.discoverySessions.isEmpty }, limit: 5)
    /// ```
    @discardableResult
    public func wait(until condition: () -> Bool, limit: TimeInterval) -> Bool {
        precondition(
            manual == nil,
            "This simulator lives in virtual time: drive it with advance(until:limit:) in the place of wait.")
        precondition(!stage.loop.isCurrent, "Waiting on the simulator's loop for the simulator would never end.")
        return stage.wait(until: condition, limit: limit)
    }

    private func requireManual() -> ManualLoop {
        guard let manual else {
            preconditionFailure(
                "This simulator lives in real time; make one with Simulator.inProcess() to drive its time.")
        }
        return manual
    }

    /// Waits until what was asked for before has been done, and has reached the bus: in real time, and never on the loop.
    package func waitUntilDone(limit: TimeInterval) -> Bool { stage.waitUntilDone(limit: limit) }

    /// Waits until `org.bluez` has an owner on the bus, or has none, as clients see it: in real time, and never on the loop.
    package func waitForOwner(_ isWanted: Bool, limit: TimeInterval) -> Bool {
        stage.waitForOwner(isWanted, limit: limit)
    }

    /// Where a control socket may be, in the directory of the private bus, which goes with it; nil without such a bus.
    package var controlPath: String? { bus.map { $0.directory + "/" + PrivateBus.controlName } }

    /// Where it runs.
    package var loop: any EventLoop { stage.loop }
}
