import TestSupport
import XCTest

/// Ring 4: our peripheral on `hci1`, our central on `hci0`, real `bluetoothd` between.
final class RadioPeripheralTests: XCTestCase {
    func bodies() throws -> PeripheralBodies { PeripheralBodies(on: try RadioStage()) }

    func testLongValuesTakeSeveralPackets() throws { try longValues { OwnCentral(on: $0) } }
}

/// The same with `bleak` as the central; it takes its time to connect, so these are those that issues ask for.
final class RadioForeignCentralTests: XCTestCase {
    private func bodies() throws -> PeripheralBodies {
        PeripheralBodies(on: try RadioStage(), central: try ForeignCentral())
    }

    func testAllServicesAreFoundInTheirOrder() throws { try bodies().allServicesAreFoundInTheirOrder() }
    func testReadsAreAnsweredWithTheValue() throws { try bodies().readsAreAnsweredWithTheValue() }
    func testWritesArriveBothWays() throws { try bodies().writesArriveBothWays() }
    func testLongValuesTakeSeveralPackets() throws { try longValues { _ in try ForeignCentral() } }
    func testAThousandUpdatesArriveInOrderOverASocket() throws {
        try bodies().aThousandUpdatesArriveInOrderOverASocket()
    }
    func testIndicationsArriveInOrder() throws { try bodies().indicationsArriveInOrder() }
    func testSubscribersComeAndGo() throws { try bodies().subscribersComeAndGo() }
    func testAllComesBackAfterTheDaemonsDeath() throws { try bodies().allComesBackAfterTheDaemonsDeath() }
}

/// At bluetoothd's own MTU, 517, no value is longer than a packet.
private func longValues(_ central: (RadioStage) throws -> any StageCentral) throws {
    let stage = try RadioStage()
    try stage.restartDaemon(mtu: 100)
    defer { XCTAssertNoThrow(try stage.restartDaemon()) }
    try PeripheralBodies(on: stage, central: try central(stage)).longValuesTakeSeveralPackets(mtu: 100)
}
