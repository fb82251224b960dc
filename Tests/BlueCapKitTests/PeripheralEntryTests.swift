import BlueZ
import XCTest

@testable import BlueCapKit

final class PeripheralEntryTests: XCTestCase {
    private let key = PeripheralKey(rawValue: 1)
    private let session = CentralSession(
        queue: nil, profileManager: nil,
        CentralManager.Configuration.reading([CentralManagerOptionBusAddressKey: "loopback:name=absent"]))

    func testOneKeyHasOneObjectWhileThereAreReferencesToIt() {
        var core = session.core.withLock { $0 }
        let first = core.objects.hold(key, in: session)
        XCTAssertTrue(core.objects.weaken(key).0 === first)
        XCTAssertTrue(core.objects.hold(key, in: session) === first)
    }

    func testAnObjectThatIsDeallocatedLeavesItsSuccessorInPlace() {
        var core = session.core.withLock { $0 }
        let successor = core.objects.hold(key, in: session)
        XCTAssertTrue(core.objects.weaken(key).0 === successor)
        XCTAssertTrue(core.objects[key] === successor)
    }

    func testAnEntryWithoutContentsIsRemoved() {
        session.withEntry(of: key) { $0.attempt = (1, ConnectID(1)) }
        XCTAssertEqual(session.core.withLock { $0.objects.entries.keys }, [key])
        session.withEntry(of: key) { $0.attempt = nil }
        XCTAssertEqual(session.core.withLock { $0.objects.entries.keys }, [])
    }

    func testAReleasedPeripheralLeavesNoEntry() {
        var peripheral: Peripheral? = session.core.withLock { $0.objects.hold(key, in: session) }
        XCTAssertNotNil(peripheral)
        // The entry's own reference is the last one when it is released outside the lock.
        var objects: (Peripheral?, PeripheralEntry)? = session.core.withLock { $0.objects.weaken(key) }
        XCTAssertTrue(objects?.0 === peripheral)
        (peripheral, objects) = (nil, nil)
        XCTAssertEqual(session.core.withLock { $0.objects.entries.keys }, [])
        XCTAssertEqual(session.core.withLock { $0.objects.references.keys }, [])
    }
}
