import BlueCapBlueZ
import XCTest

@testable import BlueCapKit

final class PeripheralRecordTests: XCTestCase {
    private let key = PeripheralKey(rawValue: 1)
    private let session = CentralSession(
        queue: nil, profileManager: nil,
        (.init(busAddress: "loopback:name=nobody"), nil))

    private var recordCount: Int {
        session.core.withLock { core in core.state.peripherals.compactMap { key, _ in key }.count }
    }

    // The last reference to an object is not released under the lock.

    func testOneKeyHasOneObjectWhileThereAreReferencesToIt() {
        let first = session.core.withLock { $0.state.peripherals.hold(key, in: session) }
        XCTAssertTrue(session.core.withLock { $0.state.peripherals.weaken(key) }.0 === first)
        XCTAssertTrue(session.core.withLock { $0.state.peripherals.hold(key, in: session) } === first)
    }

    func testAnObjectThatIsDeallocatedLeavesItsSuccessorInPlace() {
        let successor = session.core.withLock { $0.state.peripherals.hold(key, in: session) }
        XCTAssertTrue(session.core.withLock { $0.state.peripherals.weaken(key) }.0 === successor)
        XCTAssertTrue(session.core.withLock { $0.state.peripherals[objectOf: key] } === successor)
    }

    func testARecordWithoutContentsIsRemoved() {
        session.core.withLock { core in core.state.peripherals.change(key) { $0.isBondOurs = true } }
        XCTAssertEqual(recordCount, 1)
        session.core.withLock { core in core.state.peripherals.change(key) { $0.isBondOurs = false } }
        XCTAssertEqual(recordCount, 0)
    }

    func testAPeripheralThatIsReleasedLeavesNoRecord() {
        var peripheral: Peripheral? = session.core.withLock { $0.state.peripherals.hold(key, in: session) }
        XCTAssertNotNil(peripheral)
        // The record's own reference is the last one when it is released outside the lock.
        var objects: (Peripheral?, [AttributeID: ObjectReference<AnyObject>]?)? = session.core.withLock {
            $0.state.peripherals.weaken(key)
        }
        XCTAssertTrue(objects?.0 === peripheral)
        (peripheral, objects) = (nil, nil)
        XCTAssertEqual(recordCount, 0)
    }

    func testAUseEndsAfterTheOrdersThatPrecedeTheRelease() {
        var state = CentralState(maximumPeripherals: 8)
        var orders = Orders()
        state.peripheral(key, into: &orders) { $0.connect(.connectAsked(ConnectionPolicy()), into: &$1) }
        _ = state.release(key, into: &orders)
        XCTAssertNil(state.endUse(of: key), "It is being connected.")
        state.peripheral(key, into: &orders) { $0.disconnectAsked(into: &$1) }
        XCTAssertEqual(orders.pending.last?.action, .endUse)
        XCTAssertTrue(state.hasState(of: key))
        XCTAssertNotNil(state.endUse(of: key))
        XCTAssertFalse(state.hasState(of: key))
    }

    func testTheLinkOfAnotherProgramIsKnownWhenTheApplicationBeginsToUseThePeripheral() {
        var state = CentralState(maximumPeripherals: 8)
        var orders = Orders()
        let status = LinkStatus(device: ObjectKey(adapter: 0), isConnected: true)
        state.statusChanged(status, of: key, into: &orders)
        XCTAssertFalse(state.hasState(of: key))
        XCTAssertEqual(state.use(of: key).state.status, status)
    }
}
