import BlueCapBlueZ
import BlueCapFutures
import BlueZSimulator
import XCTest

@testable import BlueCapKit

/// `stayConnected`: a connection that lasts as long as its changes are read.
final class StayConnectedTests: ConnectionStage {
    /// What a stream of changes brought.
    private final class Changes: Sendable {
        private let state = Locked<(changes: [ConnectionChange], error: (any Error)?, hasEnded: Bool)>(([], nil, false))
        private let token = CancelToken()
        var all: [ConnectionChange] { state.withLock { $0.changes } }
        var error: (any Error)? { state.withLock { $0.error } }
        var hasEnded: Bool { state.withLock { $0.hasEnded } }

        init(_ stream: FutureStream<ConnectionChange>) {
            stream.onComplete(context: ImmediateContext(), cancelToken: token) { [state] change in
                state.withLock {
                    switch change {
                    case .success(let change): $0.changes.append(change)
                    case .failure(let error): $0.error = error
                    }
                }
            }
            stream.collect().onComplete(context: ImmediateContext()) { [state] _ in
                state.withLock { $0.hasEnded = true }
            }
        }
    }

    /// Receives changes with one handler, so that cancelling it ends the connection.
    private func read(_ stream: FutureStream<ConnectionChange>, _ token: CancelToken) -> Locked<[ConnectionChange]> {
        let changes = Locked<[ConnectionChange]>([])
        stream.onSuccess(context: ImmediateContext(), cancelToken: token) { change in
            changes.withLock { $0.append(change) }
        }
        return changes
    }

    private func advance(_ limit: TimeInterval = 30, until isThere: () -> Bool, line: UInt = #line) {
        XCTAssertTrue(simulator.advance(until: isThere, limit: limit), line: line)
    }

    func testItConnectsAgainAfterEachLoss() {
        let strap = strap()
        let changes = Changes(strap.stayConnected())
        advance { changes.all == [.connected] }
        for count in 1...3 {
            simulator.advance(by: 5)
            simulator.simulateLinkLoss(of: Self.strapAddress)
            advance { changes.all.count == 1 + 2 * count }
        }
        XCTAssertEqual(
            changes.all, [.connected] + Array(repeating: [.disconnected(.linkLost), .connected], count: 3).joined())
        XCTAssertEqual(strap.state, .connected)
        XCTAssertFalse(changes.hasEnded)
    }

    func testItNeverGivesUpAfterTimeOuts() {
        let strap = strap()
        let changes = Changes(strap.stayConnected(timeout: .seconds(5)))
        advance { changes.all == [.connected] }
        simulator.remove(Self.strapAddress)
        advance(600) { changes.all.count == 22 }
        XCTAssertEqual(
            changes.all, [.connected, .disconnected(.linkLost)] + Array(repeating: .timedOut, count: 20))
        simulator.add(Self.device(1))
        advance(60) { changes.all.last == .connected }
        XCTAssertNil(changes.error)
    }

    func testTheDelayGrowsWithConsecutiveFailures() {
        let strap = strap()
        let stream = strap.stayConnected(timeout: .seconds(5))
        let times = Locked<[Double]>([])
        let simulator = simulator
        stream.onSuccess(context: ImmediateContext()) { change in
            if change == .timedOut { times.withLock { $0.append(simulator.seconds) } }
        }
        advance { strap.state == .connected }
        simulator.advance(by: 5)
        simulator.remove(Self.strapAddress)
        advance(120) { times.withLock { $0.count } == 9 }
        let waits = times.withLock { times in zip(times.dropFirst(), times).map { $0 - $1 - 5 } }
        XCTAssertLessThan(waits[0], 1.5)
        XCTAssertGreaterThan(waits[7], 2.9)
        XCTAssertLessThan(waits[7], 7.6)  // 4 seconds, a quarter, and the end of the attempt
    }

    func testLeavingTheLastReaderEndsTheLink() {
        let strap = strap()
        let stream = strap.stayConnected()
        let (first, second) = (CancelToken(), CancelToken())
        let changes = read(stream, first)
        _ = read(stream, second)
        advance { changes.withLock { $0 } == [.connected] }
        stream.cancel(first)
        simulator.advance(by: 10)
        XCTAssertEqual(strap.state, .connected)
        stream.cancel(second)
        advance { strap.state == .disconnected }
        simulator.advance(by: 60)
        XCTAssertEqual(simulator.links, [])
        XCTAssertEqual(strap.disconnectReason, .application)
        XCTAssertTrue(stream.isFinished)
    }

    func testLeavingEndsAnAttempt() {
        let strap = strap()
        simulator.remove(Self.strapAddress)
        let token = CancelToken()
        let stream = strap.stayConnected()
        _ = read(stream, token)
        simulator.advance(by: 1)
        XCTAssertEqual(strap.state, .connecting)
        stream.cancel(token)
        advance { strap.state == .disconnected }
        simulator.add(Self.device(1))
        simulator.advance(by: 60)
        XCTAssertEqual(simulator.links, [])
    }

    func testALinkOfAnotherManagerStays() {
        let (manager, other) = (manager(), self.manager())
        let strap = strap(manager)
        let same = find([Self.device(1)], with: other)[0]
        same.connect()
        advance { same.state == .connected }
        let token = CancelToken()
        let stream = strap.stayConnected()
        let changes = read(stream, token)
        advance { changes.withLock { $0 } == [.connected] }
        stream.cancel(token)
        simulator.advance(by: 30)
        XCTAssertEqual(same.state, .connected)
        XCTAssertEqual(simulator.links.count, 1)
        // And it is not connected again when that link ends.
        same.disconnect()
        simulator.advance(by: 30)
        XCTAssertEqual(strap.state, .disconnected)
    }

    func testTheApplicationsEndEndsTheStream() {
        let strap = strap()
        let changes = Changes(strap.stayConnected())
        advance { changes.all == [.connected] }
        strap.disconnect()
        advance { changes.hasEnded }
        XCTAssertNil(changes.error)
        simulator.advance(by: 60)
        XCTAssertEqual(strap.state, .disconnected)
    }

    func testARefreshOfTheServicesIsAnInterruption() {
        let strap = strap()
        let changes = Changes(strap.stayConnected())
        advance { changes.all == [.connected] }
        let refreshed: Future<Peripheral> = strap.refreshServices()
        advance { refreshed.completed }
        guard case .success? = refreshed.result else { return XCTFail("\(String(describing: refreshed.result))") }
        advance { changes.all.count == 3 }
        XCTAssertEqual(changes.all.last, .connected)
        simulator.simulateLinkLoss(of: Self.strapAddress)
        advance { changes.all.count == 5 }
        XCTAssertFalse(changes.hasEnded)
    }

    /// The end of the loop does not end an attempt for which another call waits.
    func testTheEndOfTheLoopLeavesTheAttemptToACallThatWaitsForIt() async throws {
        let strap = strap()
        simulator.remove(Self.strapAddress)
        let token = CancelToken()
        let stream = strap.stayConnected()
        _ = read(stream, token)
        await simulator.advance(by: 2)
        let connect = Task(executorPreference: simulator.taskExecutor) { try await strap.connect() }
        await simulator.advance(by: 1)
        stream.cancel(token)
        XCTAssertTrue(stream.isFinished)
        simulator.add(Self.device(1))
        await simulator.advance(by: 30)
        try await connect.value
        XCTAssertEqual(strap.state, .connected)
        simulator.simulateLinkLoss(of: Self.strapAddress)
        await simulator.advance(by: 30)
        XCTAssertEqual(strap.state, .disconnected, "The connection was to last as long as its loop.")
    }

    func testAfterTheApplicationsEndAReconnectIsOnce() {
        let strap = strap()
        let changes = Changes(strap.stayConnected())
        advance { changes.all == [.connected] }
        strap.disconnect()
        strap.reconnect()
        advance { changes.hasEnded && strap.state == .connected }
        simulator.simulateLinkLoss(of: Self.strapAddress)
        simulator.advance(by: 30)
        XCTAssertEqual(strap.state, .disconnected)
    }

    func testAConnectTakesTheConnectionOver() {
        let strap = strap()
        let token = CancelToken()
        let stream = strap.stayConnected()
        let changes = read(stream, token)
        advance { changes.withLock { $0 } == [.connected] }
        connect(strap)
        XCTAssertTrue(stream.isFinished)
        stream.cancel(token)
        simulator.advance(by: 30)
        XCTAssertEqual(strap.state, .connected)
    }

    func testARefusalForGoodIsThrown() {
        let strap = strap()
        simulator.simulateConnectFailures(
            1, error: .failed("le-connection-concurrent-connection-limit"), of: Self.strapAddress)
        let changes = Changes(strap.stayConnected())
        advance { changes.hasEnded }
        guard case PeripheralError.connectionFailed? = changes.error else {
            return XCTFail("\(String(describing: changes.error))")
        }
        simulator.advance(by: 30)
        XCTAssertTrue(strap.state == .disconnected)
        XCTAssertEqual(calls("Connect"), 1)
    }

    func testATimeLimitOfZeroIsRefused() {
        let manager = manager()
        let changes = Changes(strap(manager).stayConnected(timeout: .zero))
        advance { changes.hasEnded }
        guard case PeripheralError.invalidArgument? = changes.error else {
            return XCTFail("\(String(describing: changes.error))")
        }
    }

    func testTheEndOfTheManagerIsThrown() {
        var manager: CentralManager? = manager()
        let strap = strap(manager!)
        let changes = Changes(strap.stayConnected())
        advance { changes.all == [.connected] }
        manager = nil
        advance { changes.hasEnded }
        XCTAssertEqual(changes.error as? PeripheralError, .disconnected)
        let late = Changes(strap.stayConnected())
        advance { late.hasEnded }
        XCTAssertEqual(late.error as? PeripheralError, .disconnected)
        withExtendedLifetime(manager) {}
    }

    func testThePowerOfTheAdapterIsAwaited() {
        let strap = strap()
        let changes = Changes(strap.stayConnected(timeout: .seconds(30)))
        advance { changes.all == [.connected] }
        simulator.advance(by: 5)
        simulator.simulatePowerOff()
        simulator.advance(by: 10)
        simulator.simulatePowerOn()
        advance { changes.all.count == 3 }
        // BlueZ reports the end of the link before that of the adapter.
        XCTAssertEqual(changes.all, [.connected, .disconnected(.linkLost), .connected])
    }

    func testALoopReadsAfterEachConnection() async throws {
        let strap = strap()
        let rate = CharacteristicIdentifier(uuid: "2A37", service: ServiceIdentifier(uuid: "180D"))
        let values = Locked<[Data]>([])
        let task = Task(executorPreference: simulator.taskExecutor) {
            for try await change in strap.stayConnected() where change == .connected {
                let data: Data = try await strap.read(rate)
                let count = values.withLock {
                    $0.append(data)
                    return $0.count
                }
                if count == 2 { break }
            }
        }
        await simulator.advance(by: 10)
        simulator.simulateLinkLoss(of: Self.strapAddress)
        await simulator.advance(by: 10)
        try await task.value
        XCTAssertEqual(values.withLock { $0 }, [Data([0, 60]), Data([0, 60])])
        await simulator.advance(by: 10)
        XCTAssertEqual(strap.state, .disconnected)
        XCTAssertEqual(simulator.links, [])
    }

    func testCancellingTheTaskEndsTheLink() async throws {
        let strap = strap()
        let task = Task(executorPreference: simulator.taskExecutor) {
            for try await _ in strap.stayConnected() {}
        }
        await simulator.advance(by: 10)
        XCTAssertEqual(strap.state, .connected)
        task.cancel()
        await simulator.advance(by: 10)
        try await task.value
        XCTAssertEqual(strap.state, .disconnected)
    }
}
