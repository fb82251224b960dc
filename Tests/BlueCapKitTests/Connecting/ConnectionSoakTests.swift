import BlueZSimulator
import TestBasics
import TestSupport
import XCTest

@testable import BlueCapKit

/// A thousand rounds of connecting, discovering, reading and disconnecting while everything that can go wrong does.
///
/// `SOAK_ROUNDS` in the environment makes it more of them; `make soak` sets it.
final class ConnectionSoakTests: ConnectionStage {
    private lazy var random = TestRandom(self)

    func testEveryFutureCompletesNothingLeaksAndStatisticsAddUpOverAThousandRounds() throws {
        let rounds = ProcessInfo.processInfo.environment["SOAK_ROUNDS"].flatMap(Int.init) ?? 1_000
        // The disk's queue may still be at work for the managers of earlier tests.
        RestorationKeeper.waitForAll()
        try Shortage.warmUp()
        let descriptors = openDescriptors()
        weak var goneManager: CentralManager?
        weak var goneSession: CentralSession?
        do {
            let manager = manager()
            goneManager = manager
            goneSession = manager.session
            let peripherals = find((1...4).map { Self.device($0) }, with: manager)
            for peripheral in peripherals {
                simulator.simulateRandomFaults(
                    seed: random.next(), share: 0.4, of: VirtualAddress(stringLiteral: peripheral.address))
            }
            let runners = peripherals.map { SoakRunner($0, rounds: rounds / peripherals.count) }
            for runner in runners { runner.begin() }
            var seconds = 0.0
            while runners.contains(where: { !$0.isDone }) {
                if Bool.random(using: &random) { goWrong() }
                let step = Double.random(in: 0.05...1.5, using: &random)
                seconds += step
                simulator.advance(by: step)
                guard seconds < Double(rounds) * 60 else {
                    return XCTFail("stuck: \(runners.map(\.report)), \(peripherals.map(\.state))")
                }
            }
            calm()
            XCTAssertTrue(simulator.advance(until: { simulator.links.isEmpty }, limit: 60))
            simulator.advance(by: 60)
            XCTAssertEqual(simulator.discoverySessions, [])
            for (runner, peripheral) in zip(runners, peripherals) { check(runner, peripheral) }
            XCTAssertGreaterThan(runners.map(\.reads).reduce(0, +), rounds / 4, "the faults leave nothing to test")
            checkRest(of: manager.session)
        }
        simulator.advance(by: 5)
        XCTAssertNil(goneManager)
        XCTAssertNil(goneSession)
        // Another thread may have a file open at this moment; what leaks stays.
        var left: [String: String] = [:]
        let isClean = Shortage.wait(limit: 10) {
            let now = openDescriptors()
            left = now.filter { descriptors[$0.key] != $0.value }
            return now.count <= descriptors.count
        }
        XCTAssertTrue(isClean, "opened since the beginning: \(left)")
    }

    private func check(_ runner: SoakRunner, _ peripheral: Peripheral) {
        XCTAssertEqual(runner.asked, runner.answered, "futures that never completed")
        XCTAssertEqual(peripheral.state, .disconnected)
        XCTAssertEqual(Int(peripheral.connectionCount), runner.connections)
        XCTAssertEqual(peripheral.connectionCount, peripheral.disconnectionCount)
        // What was given up may have been a time-out or a disconnection.
        XCTAssertGreaterThanOrEqual(Int(peripheral.timeoutCount), runner.timeouts)
        XCTAssertLessThanOrEqual(Int(peripheral.timeoutCount), runner.timeouts + runner.surrenders)
        XCTAssertEqual(peripheral.totalSecondsConnected, peripheral.cumulativeSecondsConnected)
        XCTAssertEqual(
            peripheral.cumulativeSecondsConnected + peripheral.cumulativeSecondsDisconnected,
            peripheral.session.date.timeIntervalSince(peripheral.discoveredAt), accuracy: 0.001)
    }

    /// What a manager keeps for what is under way: nothing is.
    private func checkRest(of session: CentralSession) {
        session.core.withLock { core in
            XCTAssertTrue(core.completions.isEmpty)
            XCTAssertTrue(core.shell.orders.pending.isEmpty)
            XCTAssertEqual(core.shell.timers.count, 0)
            // The last round of each may have left its stream open: nothing has ended it.
            let uses = core.state.peripherals.used.map(\.use)
            XCTAssertLessThanOrEqual(uses.map(\.connections.count).reduce(0, +), 4)
            XCTAssertTrue(uses.allSatisfy { $0.attempt == nil && $0.searches.isEmpty })
        }
    }

    // MARK: Faults

    private func goWrong() {
        let address = VirtualAddress(stringLiteral: "C0:00:00:00:00:0\(Int.random(in: 1...4, using: &random))")
        switch Int.random(in: 0..<16, using: &random) {
        case 0, 1: simulator.simulateLinkLoss(of: address)
        case 2: simulator.simulateConnectFailures(Int.random(in: 1...4, using: &random), of: address)
        case 3: simulator.simulateConnectReplyThenDrop(after: Double.random(in: 0...0.4, using: &random), of: address)
        case 4: simulator.simulateDropAfter(requests: 1, of: address)
        case 5: simulator.simulateLateAnswers(by: Double.random(in: 0...3, using: &random), of: address)
        case 6: simulator.simulateUnresolvedServices(Bool.random(using: &random), of: address)
        case 7: simulator.simulateUntoldConnections(Bool.random(using: &random), of: address)
        case 8: simulator.simulateDeviceRemoval(of: address)
        case 9: simulator.simulateSilence(Bool.random(using: &random), of: address)
        case 10:
            simulator.simulatePowerOff()
            simulator.advance(by: Double.random(in: 0...3, using: &random))
            simulator.simulatePowerOn()
        case 11:
            simulator.simulateDaemonDeath()
            simulator.advance(by: Double.random(in: 0...3, using: &random))
            simulator.simulateDaemonReturn()
        case 12: simulator.simulateSlowReplies(by: Double.random(in: 0...1, using: &random))
        case 13: calm()
        case 14:
            simulator.simulateConnectFailures(
                1, error: .failed("le-connection-concurrent-connection-limit"), of: address)
        default:
            let peripherals = simulator.peripherals
            simulator.remove(address)
            simulator.advance(by: Double.random(in: 0...8, using: &random))
            if let gone = peripherals.first(where: { $0.address == address }) { simulator.add(gone) }
        }
    }

    private func calm() {
        simulator.simulateSlowReplies(by: 0)
        // Random faults stay.
        for peripheral in simulator.peripherals {
            simulator.simulateConnectFailures(0, of: peripheral.address)
            simulator.simulateSilence(false, of: peripheral.address)
            simulator.simulateLateAnswers(by: 0, of: peripheral.address)
            simulator.simulateUnresolvedServices(false, of: peripheral.address)
        }
    }
}

/// One peripheral's rounds. On the loop's thread alone, which in virtual time is the test's.
private final class SoakRunner: @unchecked Sendable {
    private let peripheral: Peripheral
    private var left: Int
    private var stage = ""
    private(set) var connections = 0
    private(set) var timeouts = 0
    private(set) var surrenders = 0
    private(set) var failures = 0
    private(set) var reads = 0
    private(set) var asked = 0
    private(set) var answered = 0
    private(set) var isDone = false

    init(_ peripheral: Peripheral, rounds: Int) {
        self.peripheral = peripheral
        left = rounds
    }

    var report: String { "\(left) left, \(stage), \(asked) asked, \(answered) answered" }

    func begin() {
        guard left > 0 else {
            isDone = true
            return
        }
        left -= 1
        stage = "connecting"
        let stream = peripheral.connect(timeoutRetries: 1, disconnectRetries: 2, connectionTimeout: 5)
        stream.onComplete(context: ImmediateContext()) { [weak self] result in
            guard let self else { return }
            switch result {
            case .success(let event): received(event.connectionEvent)
            case .failure:
                failures += 1
                begin()
            }
        }
    }

    private func received(_ event: ConnectionEvent) {
        stage = "\(event)"
        switch event {
        case .connect:
            connections += 1
            work()
        case .timeout:
            timeouts += 1
            peripheral.reconnect()
        case .disconnect: peripheral.reconnect()
        case .forceDisconnect: begin()
        case .giveUp:
            surrenders += 1
            begin()
        }
    }

    private func work() {
        asked += 1
        peripheral.discoverAllServices(timeout: 10)
            .flatMap(context: ImmediateContext()) { peripheral -> Future<Service> in
                guard let service = peripheral.service(CBUUID(string: "180D")) else {
                    throw PeripheralError.noServices
                }
                return service.discoverAllCharacteristics(timeout: 10)
            }
            .flatMap(context: ImmediateContext()) { service -> Future<Characteristic> in
                guard let characteristic = service.characteristics.first else { throw PeripheralError.noServices }
                return characteristic.read(timeout: 10)
            }
            .onComplete(context: ImmediateContext()) { [weak self] result in
                guard let self else { return }
                answered += 1
                if case .success = result { reads += 1 }
                // If the link was lost before, its end has been reported, or will be.
                if peripheral.state == .connected { peripheral.disconnect() }
            }
    }
}
