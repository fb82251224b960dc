import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

/// A negative capacity ended the process in `connect` and `startPollingRSSI`; `startScanning` failed, as it should.
final class NegativeCapacityTests: XCTestCase {
    private let simulator = Simulator.inProcess(room: .empty)

    func testANegativeCapacityIsAFailureAndNothingIsBegun() throws {
        simulator.add(.strap())
        let (manager, strap) = try simulator.firstPeripheral()

        let events: FutureStream<(peripheral: Peripheral, connectionEvent: ConnectionEvent)> = strap.connect(
            capacity: -1)
        let connections: FutureStream<Void> = strap.connect(capacity: -1)
        let strengths = strap.startPollingRSSI(capacity: -1)
        XCTAssertEqual(failures(of: events), failures(of: strengths))
        XCTAssertEqual(failures(of: connections), failures(of: strengths))
        XCTAssertEqual(
            failures(of: strengths),
            [.invalidArgument("A stream's capacity is zero or more elements, not -1.")])
        simulator.advance(by: 5)
        XCTAssertEqual(strap.state, .disconnected)
        withExtendedLifetime(manager) {}
    }

    private func failures<T: Sendable>(of stream: FutureStream<T>) -> [PeripheralError] {
        let failures = Locked<[PeripheralError]>([])
        stream.onFailure(context: ImmediateContext()) { error in
            failures.withLock { $0 += [error as? PeripheralError].compactMap { $0 } }
        }
        return failures.withLock { $0 }
    }
}
