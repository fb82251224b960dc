import BlueCapFutures
import BlueZSimulator
import TestSupport
import XCTest

@testable import BlueCapKit

/// `try await peripheral.connect(timeout:)`: one link, without a stream.
final class AsyncConnectTests: ConnectionStage {
    private var held: CentralManager?

    /// A manager that lives as long as the test.
    private func heldManager() -> CentralManager {
        let manager = manager()
        held = manager
        return manager
    }

    private func task(
        _ work: @escaping @Sendable () async throws -> Void
    ) async -> Task<Void, any Error> {
        let task = Task(executorPreference: simulator.taskExecutor) { try await work() }
        await simulator.run()
        return task
    }

    private func error(of task: Task<Void, any Error>) async -> (any Error)? {
        switch await task.result {
        case .success: nil
        case .failure(let error): error
        }
    }

    private func absentStrap(_ manager: CentralManager) -> Peripheral {
        let strap = strap(manager)
        simulator.remove(Self.strapAddress)
        return strap
    }

    func testItReturnsWhenThereIsALinkAndAtOnceIfThereIs() async throws {
        let strap = strap(heldManager())
        let connect = await task { try await strap.connect(timeout: .seconds(10)) }
        await simulator.advance(until: { strap.state == .connected }, limit: 5)
        await simulator.run()
        try await connect.value
        let begin = simulator.seconds
        let again = await task { try await strap.connect(timeout: .seconds(10)) }
        try await again.value
        XCTAssertEqual(simulator.seconds, begin)
        XCTAssertEqual(calls("Connect"), 1)
        await simulator.advance(by: 60)
        XCTAssertEqual(strap.state, .connected, "The time limit has ended with the call.")
    }

    func testALostLinkIsNotMadeAgain() async throws {
        let strap = strap(heldManager())
        let connect = await task { try await strap.connect() }
        await simulator.advance(by: 5)
        try await connect.value
        simulator.simulateLinkLoss(of: Self.strapAddress)
        await simulator.advance(by: 60)
        XCTAssertEqual(strap.state, .disconnected)
        XCTAssertEqual(calls("Connect"), 1)
        let again = await task { try await strap.connect() }
        await simulator.advance(by: 5)
        try await again.value
        XCTAssertEqual(strap.state, .connected)
    }

    func testTheTimeLimitEndsTheAttempt() async throws {
        let strap = absentStrap(heldManager())
        let begin = simulator.seconds
        let connect = await task { try await strap.connect(timeout: .milliseconds(2_500)) }
        await simulator.advance(by: 4)
        let failure = await error(of: connect)
        XCTAssertEqual(failure as? PeripheralError, .connectionTimeout)
        XCTAssertEqual(simulator.seconds - begin, 4, accuracy: 0.01)
        XCTAssertEqual(strap.state, .disconnected)
        XCTAssertEqual(strap.timeoutCount, 1)
        let number = calls("Connect")
        await simulator.advance(by: 120)
        XCTAssertEqual(calls("Connect"), number)
    }

    func testTheWaitForTheAdapterDoesNotShortenTheLimitOfTheAttempt() async throws {
        let strap = absentStrap(heldManager())
        simulator.simulatePowerOff()
        await simulator.advance(by: 1)
        let connect = await task { try await strap.connect(timeout: .seconds(10)) }
        await simulator.advance(by: 8)
        simulator.simulatePowerOn()
        await simulator.advance(by: 8)
        XCTAssertEqual(strap.state, .connecting)
        await simulator.advance(by: 4)
        let error = await error(of: connect)
        XCTAssertEqual(error as? PeripheralError, .connectionTimeout)
    }

    func testATimeLimitOfZeroIsRefused() async throws {
        let strap = strap(heldManager())
        let connect = await task { try await strap.connect(timeout: .zero) }
        guard case PeripheralError.invalidArgument? = await error(of: connect) else { return XCTFail("accepted") }
        XCTAssertEqual(strap.state, .disconnected)
    }

    func testACancelledCallLeavesNoAttempt() async throws {
        for delay in [0, 0.01, 1, 30] {
            simulator = .inProcess(room: .empty)
            let strap = absentStrap(heldManager())
            let connect = await task { try await strap.connect() }
            await simulator.advance(by: delay)
            XCTAssertEqual(strap.state, .connecting)
            connect.cancel()
            await simulator.run()
            let failure = await error(of: connect)
            XCTAssertTrue(failure is CancellationError, "\(String(describing: failure))")
            await simulator.advance(by: 5)
            XCTAssertEqual(strap.state, .disconnected, "\(delay)")
            simulator.add(Self.device(1))
            await simulator.advance(by: 120)
            XCTAssertEqual(strap.state, .disconnected, "\(delay)")
            XCTAssertEqual(simulator.links, [], "\(delay)")
            XCTAssertEqual(
                simulator.statistics.count(of: "StartDiscovery"), simulator.statistics.count(of: "StopDiscovery"))
        }
    }

    func testTwoCallsShareAnAttemptUntilBothAreCancelled() async throws {
        let strap = absentStrap(heldManager())
        let first = await task { try await strap.connect() }
        await simulator.advance(by: 1)
        let second = await task { try await strap.connect() }
        await simulator.advance(by: 1)
        first.cancel()
        await simulator.advance(by: 1)
        XCTAssertEqual(strap.state, .connecting)
        second.cancel()
        await simulator.advance(by: 5)
        XCTAssertEqual(strap.state, .disconnected)
        for task in [first, second] {
            let failure = await error(of: task)
            XCTAssertTrue(failure is CancellationError)
        }
    }

    func testACallOutlivesTheTimeLimitOfAnother() async throws {
        let strap = absentStrap(heldManager())
        let short = await task { try await strap.connect(timeout: .seconds(2)) }
        let long = await task { try await strap.connect() }
        let third = await task { try await strap.connect(timeout: .seconds(60)) }
        await simulator.advance(by: 10)
        let failure = await error(of: short)
        XCTAssertEqual(failure as? PeripheralError, .connectionTimeout)
        XCTAssertEqual(strap.state, .connecting)
        simulator.add(Self.device(1))
        await simulator.advance(by: 30)
        try await long.value
        try await third.value
        XCTAssertEqual(strap.state, .connected)
        await simulator.advance(by: 60)
        XCTAssertEqual(strap.state, .connected)
    }

    func testACancelledCallLeavesTheAttemptOfAStream() async throws {
        let strap = absentStrap(heldManager())
        journal.watch(strap.connect(timeoutRetries: 3))
        await simulator.advance(by: 1)
        let connect = await task { try await strap.connect(timeout: .seconds(5)) }
        connect.cancel()
        await simulator.advance(by: 10)
        let failure = await error(of: connect)
        XCTAssertTrue(failure is CancellationError)
        let limited = await task { try await strap.connect(timeout: .seconds(5)) }
        await simulator.advance(by: 10)
        let timeout = await error(of: limited)
        XCTAssertEqual(timeout as? PeripheralError, .connectionTimeout)
        XCTAssertEqual(journal.connectionEvents, [])
        simulator.add(Self.device(1))
        await simulator.advance(by: 30)
        XCTAssertEqual(journal.connectionEvents, [.connect])
    }

    func testACallKeepsTheLinkOfARun() async throws {
        let strap = strap(heldManager())
        let run = await task {
            try await strap.run { connected in
                try await connected.peripheral.connect()
            }
        }
        await simulator.advance(by: 20)
        try await run.value
        XCTAssertEqual(strap.state, .connected)
        XCTAssertEqual(calls("Connect"), 1)
    }

    func testACancelledCallLeavesTheAttemptToARun() async throws {
        let strap = absentStrap(heldManager())
        let connect = await task { try await strap.connect() }
        let run = await task { try await strap.run { _ in } }
        connect.cancel()
        await simulator.advance(by: 5)
        XCTAssertEqual(strap.state, .connecting)
        simulator.add(Self.device(1))
        await simulator.advance(by: 30)
        try await run.value
        XCTAssertEqual(strap.state, .disconnected, "The link was needed for the run alone.")
    }

    func testDisconnectingTheEndOfTheAdapterAndTheEndOfTheManagerFailTheCall() async throws {
        let strap = absentStrap(heldManager())
        let first = await task { try await strap.connect() }
        await simulator.advance(by: 1)
        strap.disconnect()
        await simulator.advance(by: 5)
        let forced = await error(of: first)
        XCTAssertEqual(forced as? PeripheralError, .forcedDisconnect)
        let second = await task { try await strap.connect() }
        await simulator.advance(by: 1)
        held = nil
        await simulator.advance(by: 5)
        let ended = await error(of: second)
        XCTAssertEqual(ended as? PeripheralError, .disconnected)
        let third = await task { try await strap.connect() }
        let late = await error(of: third)
        XCTAssertEqual(late as? PeripheralError, .disconnected)
    }

    func testACallDuringTheEndOfALinkWaitsForTheNextLink() async throws {
        let strap = strap(heldManager())
        let first = await task { try await strap.connect() }
        await simulator.advance(by: 5)
        try await first.value
        strap.disconnect()
        XCTAssertEqual(strap.state, .disconnecting)
        let second = await task { try await strap.connect(timeout: .seconds(10)) }
        await simulator.advance(by: 20)
        try await second.value
        XCTAssertEqual(strap.state, .connected)
        XCTAssertEqual(calls("Connect"), 2)
    }
}
