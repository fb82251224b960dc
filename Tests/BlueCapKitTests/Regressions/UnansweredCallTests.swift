import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

/// BlueZ 5.82 does not reply to a read if its pairing fails while the link ends. Each operation ends nevertheless: with the
/// link, or by its time-out.
final class UnansweredCallTests: XCTestCase {
    private static let address: VirtualAddress = "C0:00:00:00:00:01"

    private let simulator = Simulator.inProcess(room: .empty)
    private var manager: CentralManager?

    /// A characteristic of a connected peripheral.
    private func connectedCharacteristic(isPaired: Bool = false) throws -> Characteristic {
        let value = VirtualCharacteristic(
            "2A37", [.read, .write, .writeWithoutResponse, .notify], value: [1],
            descriptors: [VirtualDescriptor("2901", value: [0x41])])
        let (manager, peripheral) = try simulator.connected(
            to: .strap([value]), pairingPolicy: isPaired ? .justWorks : .reject)
        self.manager = manager
        if isPaired {
            try simulator.outcome(of: peripheral.pair(), within: 10)
            XCTAssertTrue(peripheral.isBonded)
        }
        return try simulator.outcome(of: peripheral.characteristic(.strap("2A37")), within: 10)
    }

    private struct Operation {
        let name: String
        let timeOut: any Error
        let begin: (Characteristic, TimeInterval) -> Future<Void>
    }

    private let operations = [
        Operation(name: "read", timeOut: CharacteristicError.readTimeout) { $0.read(timeout: $1) },
        Operation(name: "write", timeOut: CharacteristicError.writeTimeout) { $0.write(data: Data([1]), timeout: $1) },
        Operation(name: "startNotifying", timeOut: CharacteristicError.notifyTimeout) {
            $0.startNotifying(timeout: $1)
        },
        Operation(name: "startNotifying over a socket", timeOut: CharacteristicError.notifyTimeout) {
            $0.startNotifying(over: .socket, timeout: $1)
        },
        Operation(name: "descriptor read", timeOut: CharacteristicError.readTimeout) { characteristic, timeout in
            guard let descriptor = characteristic.descriptors.first(where: { $0.uuid == CBUUID(string: "2901") }) else {
                return Future(error: CharacteristicError.unconfigured)
            }
            return descriptor.read(timeout: timeout)
        },
        Operation(name: "acquireWriter", timeOut: CharacteristicError.writeTimeout) {
            $0.acquireWriter(timeout: $1).map(context: ImmediateContext()) { _ in }
        },
    ]

    private func error(of future: Future<Void>) -> String {
        future.result?.error.map { "\($0)" } ?? "\(String(describing: future.result))"
    }

    func testAnOperationThatBlueZNeverAnswersFailsWithTheLink() throws {
        let characteristic = try connectedCharacteristic()
        let peripheral = characteristic.peripheral
        for operation in operations {
            XCTAssertTrue(simulator.advance(until: { peripheral.state == .connected }, limit: 60))
            simulator.advance(by: 2)
            simulator.simulateUnansweredAttributes(of: Self.address)
            let future = operation.begin(characteristic, .infinity)
            simulator.advance(by: 5)
            XCTAssertFalse(future.completed, operation.name)
            simulator.simulateLinkLoss(of: Self.address)
            XCTAssertTrue(simulator.advance(until: { future.completed }, limit: 0.5), operation.name)
            XCTAssertEqual(error(of: future), "\(PeripheralError.disconnected)", operation.name)
            simulator.simulateUnansweredAttributes(false, of: Self.address)
            peripheral.reconnect()
        }
    }

    func testAnOperationThatBlueZNeverAnswersFailsWithItsTimeUnderALink() throws {
        let characteristic = try connectedCharacteristic(isPaired: true)
        let peripheral = characteristic.peripheral
        simulator.simulateUnansweredAttributes(of: Self.address)
        for operation in operations {
            let future = operation.begin(characteristic, 3)
            simulator.advance(by: 2.9)
            XCTAssertFalse(future.completed, operation.name)
            simulator.advance(by: 0.2)
            XCTAssertEqual(error(of: future), "\(operation.timeOut)", operation.name)
            XCTAssertEqual(peripheral.state, .connected)
            // BlueZ's answer is not waited for any more, and the next operation is not behind it.
            simulator.advance(by: 100)
        }
    }

    func testWithoutATimeLimitAnOperationEndsWithTheCall() throws {
        let characteristic = try connectedCharacteristic(isPaired: true)
        simulator.simulateUnansweredAttributes(of: Self.address)
        for operation in operations {
            let future = operation.begin(characteristic, .infinity)
            XCTAssertTrue(simulator.advance(until: { future.completed }, limit: 61), operation.name)
            XCTAssertEqual(error(of: future), "\(operation.timeOut)", operation.name)
            simulator.advance(by: 100)
        }
    }

    func testWithoutAPairingTheLinkIsEndedAndTheErrorSaysWhatMayBeMissing() throws {
        let characteristic = try connectedCharacteristic()
        let peripheral = characteristic.peripheral
        for operation in operations where ["read", "write", "descriptor read"].contains(operation.name) {
            for timeout in [.infinity, 20] as [TimeInterval] {
                XCTAssertTrue(simulator.advance(until: { peripheral.state == .connected }, limit: 60))
                simulator.advance(by: 2)
                simulator.simulateUnansweredAttributes(of: Self.address)
                let future = operation.begin(characteristic, timeout)
                simulator.advance(by: 34)
                XCTAssertEqual(peripheral.state, .connected, operation.name)
                XCTAssertEqual(future.completed, timeout.isFinite)
                simulator.advance(by: 2)
                XCTAssertTrue(future.completed)
                // BlueZ takes two seconds to end it.
                simulator.advance(by: 2.5)
                XCTAssertEqual(peripheral.state, .disconnected, operation.name)
                let unanswered = CharacteristicError.pairingRequired(
                    .encryption,
                    BusError(name: "org.freedesktop.DBus.Error.NoReply", message: "No answer came in time."))
                XCTAssertEqual(error(of: future), "\(timeout.isFinite ? operation.timeOut : unanswered)")
                simulator.simulateUnansweredAttributes(false, of: Self.address)
                peripheral.reconnect()
            }
        }
    }

    func testALongWriteHasTheTimeOfItsRequests() throws {
        let characteristic = try connectedCharacteristic()
        simulator.simulateUnansweredAttributes(of: Self.address)
        // 512 bytes in parts of 242, and their execution.
        let write: Future<Void> = characteristic.write(data: Data(count: 512))
        simulator.advance(by: 124)
        XCTAssertFalse(write.completed)
        simulator.advance(by: 2)
        XCTAssertTrue(write.completed)
    }

    func testOperationsWorkOnTheNextLink() throws {
        let characteristic = try connectedCharacteristic()
        let peripheral = characteristic.peripheral
        for operation in operations {
            simulator.simulateUnansweredAttributes(of: Self.address)
            _ = operation.begin(characteristic, .infinity)
            simulator.advance(by: 1)
            simulator.simulateLinkLoss(of: Self.address)
            simulator.advance(by: 1)
            simulator.simulateUnansweredAttributes(false, of: Self.address)
            peripheral.reconnect()
            XCTAssertTrue(simulator.advance(until: { peripheral.state == .connected }, limit: 60))
            // A StopNotify that was not answered either is waited for.
            simulator.advance(by: 40)
            for other in operations {
                let future = other.begin(characteristic, 20)
                XCTAssertNoThrow(
                    try simulator.outcome(of: future, within: 21), "\(other.name) after \(operation.name)")
                if other.name.hasPrefix("startNotifying") {
                    let stop: Future<Void> = characteristic.stopNotifying(timeout: 5)
                    XCTAssertNoThrow(try simulator.outcome(of: stop, within: 6), other.name)
                }
                // The writer has ended with its last reference.
                simulator.advance(by: 1)
            }
        }
    }

    func testAStopThatIsNotAnsweredFailsWithItsTime() throws {
        let characteristic = try connectedCharacteristic()
        let start: Future<Void> = characteristic.startNotifying(timeout: 5)
        XCTAssertTrue(simulator.advance(until: { start.completed }, limit: 6))
        simulator.simulateUnansweredAttributes(of: Self.address)
        let stop: Future<Void> = characteristic.stopNotifying(timeout: 3)
        simulator.advance(by: 3.1)
        XCTAssertEqual(error(of: stop), "\(CharacteristicError.notifyTimeout)")
        XCTAssertFalse(characteristic.isNotifying)
    }

    func testARunOfSubscribingEndsWithItsTime() throws {
        let peripheral = try connectedCharacteristic().peripheral
        simulator.simulateUnansweredAttributes(of: Self.address)
        let run: Future<Void> = peripheral.run { connected in
            _ = try await connected.notifications(.strap("2A37"), timeout: .seconds(3))
        }
        XCTAssertTrue(simulator.advance(until: { run.completed }, limit: 4))
        XCTAssertEqual(error(of: run), "\(CharacteristicError.notifyTimeout)")
    }
}
