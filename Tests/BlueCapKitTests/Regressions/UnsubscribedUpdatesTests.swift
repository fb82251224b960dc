import BlueCapKit
import BlueZSimulator
import XCTest

/// A program that updated a characteristic to which no central was subscribed failed with `updateQueueFull` after 1,024
/// updates.
final class UnsubscribedUpdatesTests: XCTestCase {
    func testUpdatesWithoutSubscribersNeverFailAndTheNewestAreSent() throws {
        let simulator = Simulator.inProcess(room: .empty)
        let level = MutableCharacteristic(uuid: "2A19", properties: [.read, .notify], permissions: .readable)
        let service = MutableService(uuid: "180F")
        service.characteristics = [level]
        let manager = try PeripheralManager(configuration: .init(busAddress: simulator.address))
        let added = manager.add(service)
        let advertised = manager.startAdvertising("Battery")
        XCTAssertTrue(simulator.advance(until: { added.completed && advertised.completed }, limit: 5))

        let values = (0..<3_000).map { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
        for value in values { try level.update(withData: Data(value)) }

        XCTAssertEqual(level.value, Data(values[2_999]))
        XCTAssertEqual(level.pendingUpdates.count, level.updateQueueLimit)
        XCTAssertEqual(level.droppedUpdates, 3_000 - 1_024)
        let phone = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:01", name: "Phone"))
        XCTAssertTrue(simulator.advance(until: { phone.state == .connected }, limit: 5))
        let subscribed = phone.subscribe(to: "2A19")
        XCTAssertTrue(simulator.advance(until: { subscribed.result != nil }, limit: 5))
        XCTAssertTrue(simulator.advance(until: { phone.values.count == 1_024 }, limit: 60))
        XCTAssertEqual(phone.values.map(\.bytes), Array(values.suffix(1_024)))
        withExtendedLifetime(manager) {}
    }
}
