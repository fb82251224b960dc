package import BlueCapDBus
public import Foundation
package import BlueCapReactor

/// A simulated `bluetoothd` of a chosen version with virtual adapters and virtual peripherals, on a bus that any Bluetooth
/// program can use: one with this package, in the same process or another, or any other program.
///
/// On a private bus it runs in real time. Programs find it through the environment variable
/// `DBUS_SYSTEM_BUS_ADDRESS`, a `CentralManager` through its options:
///
/// ```swift
/// let simulator = try Simulator.onPrivateBus(room: .named("room"))
/// let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
/// ```
///
/// In process it runs in virtual time, which passes only in `run()` and `advance(by:)`: minutes of radio take
/// milliseconds, and every run is the same.
///
/// ```swift
/// let simulator = Simulator.inProcess(room: .furnished)
/// simulator.advance(by: .seconds(30))
/// ```
///
/// The methods `simulate…` cause the faults of real radios. They may be called on any thread and
/// take effect on the simulator's loop, in the order of the calls.
///
/// The simulator ends with ``end()`` or with its last reference, and its bus with it.
public final class Simulator: Sendable {
    /// The bus's address, as `DBUS_SYSTEM_BUS_ADDRESS` takes it; in process `loopback:name=…`, which only this
    /// process understands.
    public var address: String { stage.address }

    let stage: Stage
    private let bus: PrivateBus?
    private let loopback: LoopbackBus?

    private init(_ stage: Stage, bus: PrivateBus? = nil, loopback: LoopbackBus? = nil) {
        self.stage = stage
        self.bus = bus
        self.loopback = loopback
    }

    deinit { end() }

    // MARK: Beginning and ending

    /// Starts a simulator on a bus of its own: a `dbus-daemon` with a configuration of its own. The simulator is `org.bluez`
    /// on it when this returns.
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

    /// Starts a simulator on an existing bus, in real time. It is `org.bluez` there when this returns.
    ///
    /// - Throws: ``SimulatorError``, also if the bus refuses that name, as a real system bus does.
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
        let simulation = Simulation(hardware: adapters, room: room, bluez: bluez)
        self.init(Stage(simulation, address: address, loop: loop, quantum: 0.005), bus: bus)
        stage.decide { $0.startDaemon() }
        _ = stage.wait(until: { stage.joined != nil }, limit: 5)
        try (stage.joined ?? .failure(.noAnswer)).get()
    }

    /// Starts a simulator within this process, in virtual time. Nothing happens but in `run()`, `advance(by:)` and
    /// `advance(until:limit:)`, on the thread that calls them.
    public static func inProcess(
        room: Room = .furnished, adapters: [VirtualAdapter] = [VirtualAdapter()],
        bluez: BlueZVersion = .default
    ) -> Simulator {
        inProcess(on: LoopbackBus(loop: ManualLoop()), room: room, adapters: adapters, bluez: bluez)
    }

    /// Starts a simulator on an existing loopback bus, with the time of that bus's loop.
    package static func inProcess(
        on bus: LoopbackBus, room: Room = .furnished, adapters: [VirtualAdapter] = [VirtualAdapter()],
        bluez: BlueZVersion = .default
    ) -> Simulator {
        let simulation = Simulation(hardware: adapters, room: room, bluez: bluez)
        let stage = Stage(simulation, address: bus.address, loop: bus.loop, quantum: 0)
        stage.decide { $0.startDaemon() }
        if let manual = bus.loop as? ManualLoop, !manual.isCurrent { manual.run() }
        return Simulator(stage, loopback: bus)
    }

    /// Ends the simulator: `org.bluez` leaves the bus, and a bus that the simulator started ends too. A second call does
    /// nothing.
    public func end() {
        stage.end()
        bus?.stop()
        if loopback == nil { (stage.loop as? ThreadLoop)?.stop() }
    }

    // MARK: Time

    /// Seconds since the simulator began.
    public var seconds: TimeInterval { stage.seconds }

    /// Does everything that is due now, without time passing. In process only.
    public func run() { requireManual().run() }

    /// Lets virtual time pass, and does everything that falls due in it in its order. In process only.
    public func advance(by seconds: TimeInterval) { requireManual().advance(by: seconds) }

    /// Lets virtual time pass until the condition holds, but no more than `limit` seconds; returns whether it holds. In
    /// process only.
    @discardableResult
    public func advance(until condition: () -> Bool, limit: TimeInterval) -> Bool {
        requireManual().advance(until: condition, limit: limit)
    }

    /// The executor of tasks that run in the simulator's time; `nil` if that is real time.
    ///
    /// Such a task, and its child tasks, run only while virtual time is driven, on the thread that drives it, one after
    /// another. No virtual time passes between two waits of a task.
    public var taskExecutor: (any TaskExecutor)? { stage.loop.taskExecutor }

    /// Does everything that is due now, tasks included, without time passing, as the `async` form of `advance(by:)` does. In
    /// process only.
    nonisolated(nonsending) public func run() async { await requireManual().run() }

    /// Lets virtual time pass, and does everything that falls due in it in its order, in tasks too. In process only.
    ///
    /// After each event the tasks that it made ready go on to their next wait before the clock moves:
    ///
    /// ```swift
    /// let names = Task(executorPreference: simulator.taskExecutor) {
    ///     try await manager.startScanning().values.first { $0.name == "Tag" }
    /// }
    /// await simulator.advance(by: .seconds(5))
    /// ```
    ///
    /// - Tasks on ``taskExecutor``, and their child tasks, have run when this returns. Their order is the same in every run.
    /// - Other tasks, those of an actor such as the main actor too, are resumed by Swift's own threads at the same time. They
    ///   get turns before the clock moves, which as a rule suffices; this method does not wait for them.
    ///
    /// `Task.sleep` sleeps in real time.
    ///
    /// Called in a task on ``taskExecutor`` it waits until another caller has let that much time pass.
    nonisolated(nonsending) public func advance(by seconds: TimeInterval) async {
        await requireManual().advance(by: seconds)
    }

    /// Lets virtual time pass as the `async` form of `advance(by:)` does until the condition holds, but no more than `limit` seconds;
    /// returns whether it holds. In process only.
    @discardableResult
    nonisolated(nonsending) public func advance(until condition: () -> Bool, limit: TimeInterval) async -> Bool {
        await requireManual().advance(until: condition, limit: limit)
    }

    /// Waits until the condition holds, which is checked after each event here, but no longer than `limit` real
    /// seconds; returns whether it holds. For a simulator in real time, and never on its loop:
    ///
    /// ```swift
    /// simulator.wait(until: { simulator.discoverySessions.isEmpty }, limit: 5)
    /// ```
    @discardableResult
    public func wait(until condition: () -> Bool, limit: TimeInterval) -> Bool {
        precondition(
            !(stage.loop is ManualLoop),
            "This simulator runs in virtual time: call advance(until:limit:) instead of wait.")
        precondition(!stage.loop.isCurrent, "Waiting for the simulator on its own loop would never end.")
        return stage.wait(until: condition, limit: limit)
    }

    private func requireManual() -> ManualLoop {
        guard let manual = stage.loop as? ManualLoop else {
            preconditionFailure(
                "This simulator runs in real time; make one with Simulator.inProcess() to drive its time.")
        }
        return manual
    }

    /// Waits until everything that was asked for before has been done and has reached the bus. In real time only, and never
    /// on the loop.
    package func waitUntilDone(limit: TimeInterval) -> Bool {
        let done = DispatchSemaphore(value: 0)
        // After the turn of the loop that performs the effects.
        loop.post { [stage] in
            if let connection = stage.connection {
                connection.whenDrained { done.signal() }
            } else {
                done.signal()
            }
        }
        return done.wait(timeout: .now() + limit) == .success
    }

    /// Waits until `org.bluez` has an owner on the bus, or has none, as clients see it. In real time only, and never on the
    /// loop.
    package func waitForOwner(_ isWanted: Bool, limit: TimeInterval) -> Bool {
        let done = DispatchSemaphore(value: 0)
        let connection = Connection.open(.custom(address), loop: loop)
        let watch = connection.watchName(Stage.busName) { owner in
            if (owner != nil) == isWanted { done.signal() }
        }
        defer {
            watch.cancel()
            connection.close()
        }
        return done.wait(timeout: .now() + limit) == .success
    }

    /// The path of a control socket, in the directory of the private bus, which is removed with it; nil without such a bus.
    package var controlPath: String? { bus.map { $0.directory + "/" + PrivateBus.controlName } }

    package var loop: any EventLoop { stage.loop }
}

/// Why a simulator could not start, or ended an operation. A later version may add cases.
public enum SimulatorError: Error, Hashable, Sendable {
    /// There is no bus at the address, or none could be started; the reason says why.
    case noBus(String)
    /// Another program is `org.bluez` on that bus already.
    case nameTaken
    /// The bus did not answer within five seconds.
    case noAnswer
    /// An operation of ``Simulator/run(limit:_:)`` has not ended in so much virtual time.
    case limitExceeded(Duration)
}

extension SimulatorError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { description }

    public var description: String {
        switch self {
        case .noBus(let reason): "The simulator has no bus: \(reason)"
        case .nameTaken: "That bus has an org.bluez already; give the simulator a bus of its own."
        case .noAnswer: "The bus did not answer the simulator within five seconds."
        case .limitExceeded(let limit): "The operation has not ended within \(limit) of virtual time."
        }
    }
}
