import BlueZ
import XCTest

@testable import BlueCapKit

final class PeripheralEntryTests: XCTestCase {
    private let key = PeripheralKey(rawValue: 1)
    private let session = CentralSession(
        queue: nil, profileManager: nil,
        options: ManagerOptions([CentralManagerOptionBusAddressKey: "loopback:name=nobody"]))

    private func make() -> Peripheral { Peripheral(session: session, key: key) }

    func testOneKeyHasOneObjectWhileThereAreReferencesToIt() {
        var entry = PeripheralEntry()
        let first = entry.peripheral.hold(or: make)
        XCTAssertTrue(entry.weaken().peripheral.object === first)
        XCTAssertTrue(entry.peripheral.hold(or: make) === first)
    }

    func testAnObjectThatIsDeallocatedLeavesItsSuccessorInPlace() {
        var core = session.core.withLock { $0 }
        let successor = core.hold(key, in: session)
        XCTAssertTrue(core.withEntry(of: key) { $0.weaken() }.peripheral.object === successor)
        XCTAssertTrue(core.withEntry(of: key) { $0.peripheral.object } === successor)
    }

    func testAnEntryWithoutContentsIsRemoved() {
        session.withEntry(of: key) { $0.attempt = (1, ConnectID(1)) }
        XCTAssertEqual(session.core.withLock { $0.entries.keys }, [key])
        session.withEntry(of: key) { $0.attempt = nil }
        XCTAssertEqual(session.core.withLock { $0.entries.keys }, [])
    }

    func testAReleasedPeripheralLeavesNoEntry() {
        var peripheral: Peripheral? = session.core.withLock { $0.hold(key, in: session) }
        XCTAssertNotNil(peripheral)
        // The entry's own reference is the last one when it is released outside the lock.
        var entry: PeripheralEntry? = session.withEntry(of: key) { $0.weaken() }
        XCTAssertTrue(entry?.peripheral.object === peripheral)
        (peripheral, entry) = (nil, nil)
        XCTAssertEqual(session.core.withLock { $0.entries.keys }, [])
    }
}
