import BlueCapKit
import Foundation
import GatewayCore
import GatewayRadio
import Synchronization

/// The commands that wait for their execution: a bounded number, at a bounded rate, and only allowed ones.
final class CommandQueue: Sendable {
    /// What has become of a command.
    typealias Outcome = Result<CommandReply.Result, CommandReply.Failure>

    /// A command, and where its result goes.
    struct Job: Sendable {
        let request: CommandRequest
        /// The device that the request names; `nil` if it is not known.
        let device: DeviceName?
        let finish: @Sendable (Outcome) -> Void
    }

    /// How many commands are executed at the same time.
    private static let concurrency = 8

    private let limit: Int
    private let policy: CommandPolicy
    private let state: Mutex<State>
    private let jobs: AsyncStream<Job>
    private let continuation: AsyncStream<Job>.Continuation

    private struct State {
        var rate: CommandRate
        var waiting = 0
        var hasEnded = false
        /// The commands that are being executed, by a number.
        var running: [Int: Task<Outcome, Never>] = [:]
        var number = 0
    }

    private static let ending = CommandReply.Failure(.failed, "The gateway is ending.")

    init(_ configuration: GatewayConfiguration) {
        limit = configuration.limits.commands
        policy = CommandPolicy(configuration.commands)
        state = Mutex(State(rate: CommandRate(perSecond: configuration.commands.rate)))
        (jobs, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(configuration.limits.commands))
    }

    /// Takes a command, or returns why it is refused; then nothing else happens.
    func add(_ job: Job, name: String?, at now: Duration) -> CommandReply.Failure? {
        if let refusal = policy.refusal(of: job.request, device: job.device, name: name) { return refusal }
        return state.withLock { state in
            guard !state.hasEnded else { return Self.ending }
            guard state.rate.admits(at: now) else {
                return .init(
                    .tooManyRequests, "More commands arrived in this second than commands.rate allows. Try again later."
                )
            }
            guard state.waiting < limit else {
                return .init(.tooManyRequests, "\(limit) commands wait already (limits.commands). Try again later.")
            }
            state.waiting += 1
            continuation.yield(job)
            return nil
        }
    }

    /// Executes commands until ``end()`` is called.
    func run(_ execute: @escaping @Sendable (Job) async -> Outcome) async {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<Self.concurrency {
                group.addTask { [self] in
                    for await job in jobs { job.finish(await result(of: job, execute)) }
                }
            }
        }
    }

    private func result(
        of job: Job, _ execute: @escaping @Sendable (Job) async -> Outcome
    ) async -> Outcome {
        let begun = state.withLock { state -> (Int, Task<Outcome, Never>)? in
            state.waiting -= 1
            guard !state.hasEnded else { return nil }
            state.number += 1
            let task = Task { await execute(job) }
            state.running[state.number] = task
            return (state.number, task)
        }
        guard let (number, task) = begun else { return .failure(Self.ending) }
        defer { state.withLock { $0.running[number] = nil } }
        return await task.value
    }

    /// Cancels the commands that are executed; those that wait fail, and so do later ones.
    func end() {
        let running = state.withLock { state in
            state.hasEnded = true
            return Array(state.running.values)
        }
        continuation.finish()
        for task in running { task.cancel() }
    }
}

extension CommandReply.Failure {
    /// The failure of an operation of the library.
    init(_ error: any Error) {
        switch error {
        case let error as RadioError: self.init(.unknownPeripheral, error.description)
        case PeripheralError.connectionTimeout, PeripheralError.runTimeout, PeripheralError.serviceDiscoveryTimeout,
            CharacteristicError.readTimeout, CharacteristicError.writeTimeout, CharacteristicError.notifyTimeout:
            self.init(.timedOut, "\(error)")
        case PeripheralError.disconnected, PeripheralError.forcedDisconnect: self.init(.notConnected, "\(error)")
        case PeripheralError.serviceNotFound, PeripheralError.ambiguous, ServiceError.characteristicNotFound,
            CharacteristicError.readNotSupported, CharacteristicError.writeNotSupported,
            CharacteristicError.notifyNotSupported, CharacteristicError.valueTooLong:
            self.init(.notSupported, "\(error)")
        default: self.init(.failed, "\(error)")
        }
    }
}

extension StatusReading {
    /// The readings of a payload, by name.
    static func all(of payload: ReadingPayload) -> [StatusReading] {
        payload.readings.sorted { $0.key < $1.key }.map { name, value in
            StatusReading(name: name, value: value, unit: payload.units?[name] ?? "")
        }
    }
}
