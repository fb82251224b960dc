import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

/// Objects and descriptors of subscriptions that are no longer needed.
final class NotificationLeftoverTests: XCTestCase {
    func testNothingIsLeftOfAManagerWithSubscriptionsInEveryForm() throws {
        weak var remaining: Characteristic?
        weak var manager: CentralManager?
        let stage = try AttributeStage.explored()
        try apart {
            let characteristic = try stage.characteristic("2A37")
            remaining = characteristic
            manager = stage.manager
            let journal = NotificationJournal()
            let pairs: FutureStream<(characteristic: Characteristic, data: Data?)> =
                characteristic.receiveNotificationUpdates()
            journal.watch(pairs)
            journal.watch(characteristic.receiveNotificationUpdates() as FutureStream<Characteristic>)
            try stage.start(characteristic)
            stage.notify(1)
            XCTAssertEqual(journal.bytes, [1, 1])
        }
        stage.endManager()
        stage.simulator.advance(by: 5)
        XCTAssertNil(manager)
        XCTAssertEqual(stage.subscriptionCount(), 0)
        // The stage holds the peripheral, and with it the session, and that none of the characteristics.
        XCTAssertNil(remaining)
    }

    func testNothingIsLeftOfAStreamThatEndsBeforeItsCharacteristicIsFound() throws {
        let stage = try AttributeStage([AttributeStage.heart])
        stage.simulator.remove(AttributeStage.address)
        stage.peripheral.connect()
        stage.simulator.advance(by: 1)
        let rate = CharacteristicIdentifier(uuid: "2A37", service: ServiceIdentifier(uuid: "180D"))
        weak var remaining: FutureStream<NotificationEvent>?
        apart {
            let (stream, token) = (stage.peripheral.notificationEvents(rate), CancelToken())
            remaining = stream
            stream.onComplete(context: ImmediateContext(), cancelToken: token) { XCTFail("\($0)") }
            stage.simulator.advance(by: 1)
            XCTAssertFalse(stream.isFinished)
            stream.cancel(token)
            XCTAssertTrue(stream.isFinished)
        }
        stage.simulator.advance(by: 1)
        XCTAssertNil(remaining)
    }

    func testAThousandSubscriptionsLeaveNothingBehind() throws {
        let (stage, characteristic) = try AttributeStage.rate(link: .immediate)
        let journal = NotificationJournal()
        journal.watch(characteristic.receiveNotificationUpdates())
        let before = openDescriptors().count
        for round in 0..<1_000 {
            try stage.start(characteristic, over: round.isMultiple(of: 2) ? .socket : .signals)
            stage.simulator.notify(AttributeStage.address, characteristic: .uuid("2A37"), value: [1])
            XCTAssertTrue(stage.simulator.advance(until: { journal.entries.count == round + 1 }, limit: 5))
            try stage.wait(characteristic.stopNotifying() as Future<Void>)
        }
        XCTAssertEqual(stage.subscriptionCount(), 0)
        stage.simulator.advance(by: 1)
        // Threads of earlier tests may have closed descriptors since.
        XCTAssertLessThanOrEqual(openDescriptors().count, before, "\(openDescriptors())")
    }

    /// So that nothing that the body held is held by the test's frame.
    @inline(never)
    private func apart(_ body: () throws -> Void) rethrows { try body() }
}
