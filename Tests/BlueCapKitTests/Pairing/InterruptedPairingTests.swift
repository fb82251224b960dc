import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

/// What ends a manager, its adapter or its link, in each phase of a pairing: every future is completed, no request stays
/// open, and no bond appears.
final class InterruptedPairingTests: LockTestCase {
    override var versions: [BlueZVersion] { [.v5_66, .v5_82] }

    private struct Interruption {
        let name: String
        let act: (InterruptedPairingTests, Peripheral) -> Void
    }

    private let interruptions = [
        Interruption(name: "reset") { test, _ in test.manager?.reset() },
        Interruption(name: "invalidate") { test, _ in test.manager?.invalidate() },
        Interruption(name: "the end of the manager") { test, _ in test.manager = nil },
        Interruption(name: "cancelPairing") { _, peripheral in peripheral.cancelPairing() },
        Interruption(name: "disconnect") { _, peripheral in peripheral.disconnect() },
        Interruption(name: "terminate") { _, peripheral in peripheral.terminate() },
        Interruption(name: "link loss") { test, _ in test.simulator.simulateLinkLoss(of: test.address) },
        Interruption(name: "power off") { test, _ in test.simulator.simulatePowerOff() },
        Interruption(name: "adapter removal") { test, _ in test.simulator.simulateAdapterRemoval() },
        Interruption(name: "daemon kill") { test, _ in test.simulator.simulateDaemonDeath() },
        Interruption(name: "daemon stop") { test, _ in test.simulator.simulateDaemonStop() },
    ]

    /// Begins something, interrupts it after each of these times, and checks what is left.
    private func interrupt(
        after delays: [TimeInterval] = [0, 0.004, 0.05, 3], isConnected: Bool = true,
        _ begin: (Peripheral) -> [Future<Void>]
    ) throws {
        for interruption in interruptions {
            for delay in delays {
                let peripheral = try lock(
                    .ask(.displayYesNo), VirtualSecurity(.displayYesNo), isConnected: isConnected)
                let futures = begin(peripheral)
                simulator.advance(by: delay)
                XCTAssertFalse(futures.allSatisfy(\.completed), "nothing is interrupted")
                interruption.act(self, peripheral)
                let what = "\(interruption.name) after \(delay) s"
                XCTAssertTrue(
                    simulator.advance(until: { futures.allSatisfy(\.completed) }, limit: 70),
                    "\(what): \(futures.map(\.completed))")
                simulator.advance(by: 35)
                XCTAssertFalse(requests.withLock { $0.contains(where: \.isOpen) }, what)
                XCTAssertTrue(requests.withLock { $0.allSatisfy { $0.whenEnded().completed } }, what)
                XCTAssertFalse(peripheral.isPairing || peripheral.isPaired || peripheral.isBonded, what)
                restore(after: interruption)
            }
        }
    }

    /// A simulator with its daemon and adapter, without the lock.
    private func restore(after interruption: Interruption) {
        manager = nil
        requests.withLock { $0 = [] }
        answers.withLock { $0 = [] }
        simulator.advance(by: 5)
        simulator.remove(address)
        if interruption.name.hasPrefix("daemon") { simulator.simulateDaemonReturn() }
        if interruption.name.hasPrefix("adapter") { simulator.simulateAdapterAddition() }
        if interruption.name.hasPrefix("power") { simulator.simulatePowerOn() }
        simulator.simulateDeviceRemoval(of: address)
        simulator.simulateKeyLoss(of: address)
        simulator.advance(by: 5)
    }

    private func ignore<T: Sendable>(_ future: Future<T>) -> Future<Void> {
        future.map(context: ImmediateContext()) { _ in }
    }

    func testAPairingOverALink() throws { try interrupt { [ignore($0.pair())] } }

    func testAPairingThatMakesItsLink() throws {
        try interrupt(isConnected: false) { [ignore($0.pair(timeout: .infinity))] }
    }

    func testAnOperationThatPairsOnDemand() throws {
        try interrupt { peripheral in
            [
                ignore(read(encrypted, of: peripheral)), ignore(read(encrypted, of: peripheral)),
                ignore(read(open, of: peripheral)),
                start(events, of: peripheral),
            ]
        }
    }

    /// The first refusal is BlueZ's; then the manager calls `Pair`.
    func testAnOperationThatWaitsForAPairing() throws {
        try interrupt { peripheral in
            simulator.simulateRefusedCalls(of: "ReadValue", error: .bluez("NotPermitted", "Not paired"))
            simulator.simulateRefusedCalls(of: "StartNotify", error: .bluez("NotPermitted", "Not paired"))
            return [
                ignore(read(encrypted, of: peripheral)),
                start(guardedEvents, of: peripheral),
            ]
        }
    }

    func testARepairThatSearches() throws {
        try interrupt(after: [0, 0.05, 2.5, 6]) { peripheral in
            simulator.simulateOutOfRange(of: address)
            return [ignore(peripheral.repair(timeout: 60))]
        }
    }
}
