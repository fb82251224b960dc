import BlueCapReactor
import BlueZSimulator
import TestBasics
import XCTest

@testable import BlueCapKit

/// Tasks that connect, discover, read and write, and are cancelled at any time, while links are lost.
final class WithdrawalSoakTests: ConnectionStage {
    private lazy var random = TestRandom(self)

    func testEachTaskEndsAndNothingIsLeft() async throws {
        let manager = manager()
        let straps = find((1...3).map { Self.device($0, link: VirtualLink(callLatency: 0.1)) }, with: manager)
        let place = CharacteristicIdentifier(uuid: "2A37", service: ServiceIdentifier(uuid: "180D"))
        var tasks: [Task<Void, any Error>] = []
        let (ended, succeeded) = (Locked(0), Locked(0))
        for _ in 0..<600 {
            let strap = straps.randomElement(using: &random)!
            let limit: Duration? =
                Bool.random(using: &random) ? .milliseconds(.random(in: 50...5_000, using: &random)) : nil
            let kind = Int.random(in: 0..<5, using: &random)
            let task = Task(executorPreference: simulator.taskExecutor) {
                defer { ended.withLock { $0 += 1 } }
                switch kind {
                case 0: _ = try await strap.read(place, timeout: limit)
                case 1: try await strap.discoverAllServices(timeout: limit)
                default:
                    try await strap.connect(timeout: limit)
                    _ = try await strap.read(place, timeout: limit)
                }
                succeeded.withLock { $0 += 1 }
            }
            tasks.append(task)
            if Int.random(in: 0..<3, using: &random) == 0 { tasks.randomElement(using: &random)?.cancel() }
            if Int.random(in: 0..<8, using: &random) == 0 { goWrong(strap) }
            await simulator.advance(by: Double.random(in: 0...0.6, using: &random))
        }
        for strap in straps { simulator.simulateSilence(false, of: VirtualAddress(stringLiteral: strap.address)) }
        for task in tasks { task.cancel() }
        await simulator.run()
        XCTAssertEqual(ended.withLock { $0 }, tasks.count)
        XCTAssertGreaterThan(succeeded.withLock { $0 }, 30)
        for strap in straps { strap.disconnect() }
        await simulator.advance(by: 60)
        XCTAssertTrue(straps.allSatisfy { $0.state == .disconnected })
        XCTAssertEqual(simulator.links, [])
        XCTAssertEqual(simulator.discoverySessions, [])
        manager.session.core.withLock { core in
            XCTAssertTrue(core.completions.isEmpty)
            XCTAssertEqual(core.shell.timers.count, 0)
        }
    }

    private func goWrong(_ strap: Peripheral) {
        let address = VirtualAddress(stringLiteral: strap.address)
        switch Int.random(in: 0..<6, using: &random) {
        case 0: strap.disconnect()
        case 1: simulator.simulateDeviceRemoval(of: address)
        case 2: simulator.simulateSilence(Bool.random(using: &random), of: address)
        case 3: simulator.simulateConnectFailures(Int.random(in: 1...4, using: &random), of: address)
        default: simulator.simulateLinkLoss(of: address)
        }
    }
}
