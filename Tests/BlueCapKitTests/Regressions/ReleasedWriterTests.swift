import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

/// If `bluetoothd` closed the socket of a writer that the program had released, its last writes were never completed: they
/// waited for the reason of the writer's end, and nothing ended the writer.
final class ReleasedWriterTests: XCTestCase {
    private let address: VirtualAddress = "C0:00:00:00:00:01"

    private struct Scene {
        let simulator: Simulator
        let manager: CentralManager
        let characteristic: Characteristic

        /// Lets time pass until all are completed, and returns their failures.
        func failures(of writes: [Future<Void>]) -> [any Error] {
            XCTAssertTrue(simulator.advance(until: { writes.allSatisfy(\.completed) }, limit: 10), "never completed")
            return writes.compactMap { $0.result?.error }
        }
    }

    private func scene() throws -> Scene {
        let simulator = Simulator.inProcess(room: .empty)
        let strap = VirtualPeripheral.strap([VirtualCharacteristic("2A3B", [.writeWithoutResponse])])
        let (manager, peripheral) = try simulator.connected(to: strap)
        let characteristic = try simulator.outcome(of: peripheral.characteristic(.strap("2A3B")))
        return Scene(simulator: simulator, manager: manager, characteristic: characteristic)
    }

    /// The socket closes and a value is written in one turn of the loop; the program keeps the future of the write alone.
    private func writeToClosedSocket(_ scene: Scene) -> Future<Void> {
        scene.characteristic.acquireWriter().flatMap(context: ImmediateContext()) { [address] writer in
            scene.simulator.simulateSocketLoss(of: address)
            return writer.write(Data([1]))
        }
    }

    func testAWriteOfAReleasedWriterFailsIfTheDaemonClosesTheSocket() throws {
        let scene = try scene()
        let write = writeToClosedSocket(scene)
        XCTAssertEqual(scene.failures(of: [write]) as? [CharacteristicError], [.writerClosed])
    }

    func testAWriteOfAReleasedWriterFailsWithTheLinkIfThatFallsNext() throws {
        let scene = try scene()
        let write = writeToClosedSocket(scene)
        scene.simulator.advance(by: 0.5)
        XCTAssertFalse(write.completed)
        scene.simulator.simulateLinkLoss(of: address)
        XCTAssertEqual(scene.failures(of: [write]) as? [PeripheralError], [.disconnected])
    }

    func testEachOfManyWritesOfAReleasedWriterIsCompleted() throws {
        let scene = try scene()
        let all = Locked<[Future<Void>]>([])
        let last = scene.characteristic.acquireWriter().flatMap(context: ImmediateContext()) { [address] writer in
            let writes = (0..<5_000).map { writer.write(Data([UInt8(truncatingIfNeeded: $0)])) }
            scene.simulator.simulateSocketLoss(of: address)
            all.withLock { $0 = writes }
            return writer.write(Data([1]))
        }
        XCTAssertTrue(scene.simulator.advance(until: { last.completed }, limit: 10), "never completed")
        let failures = scene.failures(of: all.withLock { $0 })
        XCTAssertFalse(failures.isEmpty)
        XCTAssertEqual(failures.compactMap { $0 as? CharacteristicError }, failures.map { _ in .writerClosed })
    }
}
