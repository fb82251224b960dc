import BlueCapFutures
import BlueZSimulator
import TestSupport
import XCTest

@testable import BlueCapKit

/// `try await peripheral.connect(timeout:)`: one link, without a stream.
final class AsyncConnectTests: ConnectionStage {
    private func task(
        _ work: @escaping @Sendable () async throws -> Void
    ) async -> Task<Void, any Error> {
        let task = Task(executorPreference: simulator.taskExecutor) { try await work() }
        await simulator.run()
        return task
    }

    private func absentStrap() -> Peripheral {
        let strap = strap()
        simulator.remove(Self.strapAddress)
        return strap
    }

    func testItReturnsWhenThereIsALinkAndAtOnceIfThereIs() async throws {
        let strap = strap()
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
        let strap = strap()
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
        let strap = absentStrap()
        let begin = simulator.seconds
        let connect = await task { try await strap.connect(timeout: .milliseconds(2_500)) }
        await simulator.advance(by: 4)
        await connect.expectThrown(PeripheralError.connectionTimeout)
        XCTAssertEqual(simulator.seconds - begin, 4, accuracy: 0.01)
        XCTAssertEqual(strap.state, .disconnected)
        XCTAssertEqual(strap.timeoutCount, 1)
        let number = calls("Connect")
        await simulator.advance(by: 120)
        XCTAssertEqual(calls("Connect"), number)
    }

    func testTheWaitForTheAdapterDoesNotShortenTheLimitOfTheAttempt() async throws {
        let strap = absentStrap()
        simulator.simulatePowerOff()
        await simulator.advance(by: 1)
        let connect = await task { try await strap.connect(timeout: .seconds(10)) }
        await simulator.advance(by: 8)
        simulator.simulatePowerOn()
        await simulator.advance(by: 8)
        XCTAssertEqual(strap.state, .connecting)
        await simulator.advance(by: 4)
        await connect.expectThrown(PeripheralError.connectionTimeout)
    }

    func testATimeLimitOfZeroIsRefused() async throws {
        let strap = strap()
        let connect = await task { try await strap.connect(timeout: .zero) }
        let result = await connect.result
        XCTAssertThrowsError(try result.get()) {
            guard case PeripheralError.invalidArgument = $0 else { return XCTFail("\($0)") }
        }
        XCTAssertEqual(strap.state, .disconnected)
    }

    func testACancelledCallLeavesNoAttempt() async throws {
        for delay in [0, 0.01, 1, 30] {
            simulator = .inProcess(room: .empty)
            let strap = absentStrap()
            let connect = await task { try await strap.connect() }
            await simulator.advance(by: delay)
            XCTAssertEqual(strap.state, .connecting)
            connect.cancel()
            await simulator.run()
            await connect.expectThrown(CancellationError.self)
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
        let strap = absentStrap()
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
        for task in [first, second] { await task.expectThrown(CancellationError.self) }
    }

    func testACallOutlivesTheTimeLimitOfAnother() async throws {
        let strap = absentStrap()
        let short = await task { try await strap.connect(timeout: .seconds(2)) }
        let long = await task { try await strap.connect() }
        let third = await task { try await strap.connect(timeout: .seconds(60)) }
        await simulator.advance(by: 10)
        await short.expectThrown(PeripheralError.connectionTimeout)
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
        let strap = absentStrap()
        journal.watch(strap.connect(timeoutRetries: 3))
        await simulator.advance(by: 1)
        let connect = await task { try await strap.connect(timeout: .seconds(5)) }
        connect.cancel()
        await simulator.advance(by: 10)
        await connect.expectThrown(CancellationError.self)
        let limited = await task { try await strap.connect(timeout: .seconds(5)) }
        await simulator.advance(by: 10)
        await limited.expectThrown(PeripheralError.connectionTimeout)
        XCTAssertEqual(journal.connectionEvents, [])
        simulator.add(Self.device(1))
        await simulator.advance(by: 30)
        XCTAssertEqual(journal.connectionEvents, [.connect])
    }

    func testACallKeepsTheLinkOfARun() async throws {
        let strap = strap()
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
        let strap = absentStrap()
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
        let strap = absentStrap()
        let first = await task { try await strap.connect() }
        await simulator.advance(by: 1)
        strap.disconnect()
        await simulator.advance(by: 5)
        await first.expectThrown(PeripheralError.forcedDisconnect)
        let second = await task { try await strap.connect() }
        await simulator.advance(by: 1)
        endCentral()
        await simulator.advance(by: 5)
        await second.expectThrown(PeripheralError.disconnected)
        await task { try await strap.connect() }.expectThrown(PeripheralError.disconnected)
    }

    func testACallDuringTheEndOfALinkWaitsForTheNextLink() async throws {
        let strap = strap()
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
