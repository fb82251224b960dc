import BlueCapKit
import Foundation
import Logging

/// The Bluetooth adapter that a command uses, the waiting until it is usable, and where the command reports.
struct Radio: Sendable {
    /// The address of a simulated bus; `nil` for the system bus.
    var busAddress: String?
    /// `hci0`, or an address; `nil` for the library's choice.
    var adapter: String?
    var logger = Logger(label: "bluecap") { _ in SwiftLogNoOpLogHandler() }
    var console = Console(showsStages: false)
    /// Whether the links that the command makes stay when it ends.
    var keepsLinks = false

    /// How long BlueZ may take to report its adapters, in seconds: a daemon that starts, on a slow machine.
    static let patience = 10.0

    var centralConfiguration: CentralManager.Configuration {
        CentralManager.Configuration(
            busAddress: busAddress, adapter: adapter, keepsLinks: keepsLinks, logger: logger)
    }

    /// Returns when the manager is powered on.
    ///
    /// - Parameters:
    ///   - patience: For how many seconds it waits.
    ///   - needsPower: Whether an adapter that is off is a failure.
    ///   - standing: The manager's state at that moment, and the reason for it.
    /// - Throws: ``ToolFailure`` with the status ``ToolFailure/noAdapter``, or `CancellationError`.
    func waitUntilUsable(
        _ states: FutureStream<ManagerState>, for patience: Double = patience, needsPower: Bool = true,
        standing: () -> (state: ManagerState, explanation: String)
    ) async throws {
        // Whether the time is over.
        let problem: String? = try await EventLoop<Bool>.run { loop in
            loop.observe(states) { _ in false }
            loop.send(true, after: patience)
            for await isOver in loop {
                // The state may have changed since, and the explanation belongs to the present one.
                let (state, explanation) = standing()
                switch state {
                case .poweredOn: return nil
                case .poweredOff where !needsPower: return nil
                case .unsupported, .unauthorized, .poweredOff: return explanation
                case .unknown, .resetting: if isOver { return explanation }
                }
            }
            return nil
        }
        try Task.checkCancellation()
        if let problem { throw failure(problem, status: ToolFailure.noAdapter) }
    }

    /// A failure of the radio, with what the user can do without one.
    func failure(_ problem: String, status: Int32) -> ToolFailure {
        ToolFailure(
            problem, busAddress == nil ? "Without a radio, try `bluecap scan --simulated`." : "", status: status)
    }
}

/// Decides what a running command says about the state of Bluetooth: when it is lost, why, and when it is back.
struct RadioWatch: Sendable {
    private var problem: String?

    /// The remark about a new state; `nil` if there is nothing new to say.
    mutating func remark(_ state: ManagerState, _ explanation: String) -> String? {
        guard state != .unknown else { return nil }
        let before = problem
        problem = state == .poweredOn ? nil : explanation
        guard before != problem else { return nil }
        return problem.map { "\($0) The command continues when Bluetooth is back." } ?? "Bluetooth is back."
    }
}

/// The time since something began.
struct Stopwatch: Sendable {
    private let start = SuspendingClock.now

    var seconds: Double { (SuspendingClock.now - start) / .seconds(1) }
}

/// Does what a command must do before it ends, also if its task was cancelled, and waits at most so many seconds for it.
func cleanUp(within seconds: Double, _ work: @escaping @Sendable () async -> Void) async {
    // A task that is not a child is not cancelled with the present one.
    let task = Task {
        await withTaskGroup(of: Void.self) { group in
            group.addTask(operation: work)
            group.addTask { try? await Task.sleep(for: .seconds(seconds)) }
            await group.next()
            group.cancelAll()
        }
    }
    await task.value
}

extension Result where Failure == any Error {
    /// What the work has returned or thrown, so that something else can be done before it is rethrown.
    init(of work: () async throws -> Success) async {
        do { self = .success(try await work()) } catch { self = .failure(error) }
    }
}
