import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import XCTest

/// Subscriptions when links, daemons and tables change; D3 to D5 are those of Documentation/Reliability.md.
final class NotificationLinkTests: XCTestCase {
    private let journal = NotificationJournal()

    // MARK: D3, restoration

    func testASubscriptionComesBackWithOneWriteAndAGapMark() throws {
        let (stage, characteristic) = try AttributeStage.subscribed(journal)
        stage.notify(1)
        stage.loseLink()
        XCTAssertFalse(characteristic.isNotifying)
        stage.simulator.advance(by: 1)
        XCTAssertEqual(stage.subscriptionCount(), 0, "bluetoothd would subscribe without a call")
        XCTAssertEqual(stage.count(of: "StopNotify"), 1)
        stage.reconnect()
        stage.awaitNotifying(characteristic)
        stage.notify(2)
        XCTAssertEqual(journal.entries, [.number(1), .gap, .number(2)])
        XCTAssertEqual(stage.count(of: "StartNotify"), 2)
        XCTAssertEqual(stage.subscriptionCount(), 1)
    }

    func testTheGapIsReportedInEveryForm() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        let journals = (0..<4).map { _ in NotificationJournal() }
        journals[0].watch(characteristic.receiveNotificationUpdates())
        journals[1].watch(characteristic.receiveNotificationUpdates() as FutureStream<Data?>)
        journals[2].watch(characteristic.receiveNotificationUpdates() as FutureStream<Data>)
        journals[3].watch(characteristic.receiveNotificationUpdates() as FutureStream<Characteristic>)
        try stage.start(characteristic)
        stage.interrupt(characteristic)
        stage.notify(2)
        let interrupted = NotificationJournal.Entry.failure("\(CharacteristicError.notificationsInterrupted)")
        XCTAssertEqual(journals[0].entries, [.gap, .number(2)])
        XCTAssertEqual(journals[1].entries, [.gap, .number(2)])
        XCTAssertEqual(journals[2].entries, [interrupted, .number(2)])
        XCTAssertEqual(journals[3].entries, [interrupted, .number(2)])
    }

    func testManySubscriptionsComeBackWithOneWriteEach() throws {
        let stage = try AttributeStage.explored()
        let characteristics = try ["2A37", "2A39", "2A3A"].map { try stage.characteristic($0) }
        for characteristic in characteristics { try stage.start(characteristic) }
        for round in 1...3 {
            stage.loseLink()
            stage.reconnect()
            for characteristic in characteristics { stage.awaitNotifying(characteristic) }
            XCTAssertEqual(stage.count(of: "StartNotify"), 3 + 3 * round)
        }
    }

    func testASubscriptionThatWasStoppedWithoutALinkStaysAway() throws {
        let (stage, characteristic) = try AttributeStage.subscribed(journal)
        stage.loseLink()
        try stage.wait(characteristic.stopNotifying() as Future<Void>)
        stage.reconnect()
        stage.simulator.advance(by: 5)
        XCTAssertFalse(characteristic.isNotifying)
        XCTAssertEqual(stage.count(of: "StartNotify"), 1)
        XCTAssertEqual(journal.entries, [])
    }

    func testALinkThatTheApplicationEndedBringsItBackToo() throws {
        let (stage, characteristic) = try AttributeStage.subscribed(journal)
        stage.peripheral.disconnect()
        XCTAssertTrue(stage.simulator.advance(until: { stage.peripheral.state == .disconnected }, limit: 30))
        stage.reconnect()
        stage.awaitNotifying(characteristic)
        XCTAssertEqual(journal.entries, [.gap])
    }

    func testAStartThatTheLinksEndOvertakesFails() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        stage.simulator.simulateSilence(of: AttributeStage.address)
        let started: Future<Characteristic> = characteristic.startNotifying()
        stage.simulator.advance(by: 1)
        stage.simulator.simulateLinkLoss(of: AttributeStage.address)
        XCTAssertEqual(stage.failure(of: started) as? PeripheralError, .disconnected)
        stage.simulator.simulateSilence(false, of: AttributeStage.address)
        stage.simulator.advance(by: 1)
        XCTAssertEqual(stage.subscriptionCount(), 0)
        stage.reconnect()
        stage.simulator.advance(by: 5)
        XCTAssertEqual(stage.subscriptionCount(), 0)
    }

    func testAStartBeforeTheServicesAreKnownWaitsForThem() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        stage.loseLink()
        stage.reconnect()
        try stage.start(characteristic)
        XCTAssertTrue(characteristic.isNotifying)
    }

    // MARK: The daemon and the adapter

    func testASubscriptionOutlivesTheDaemon() throws {
        let (stage, characteristic) = try AttributeStage.subscribed(journal)
        stage.notify(1)
        stage.simulator.simulateDaemonDeath()
        XCTAssertTrue(stage.simulator.advance(until: { !stage.isLinked }, limit: 30))
        XCTAssertFalse(characteristic.isNotifying)
        stage.simulator.simulateDaemonReturn()
        stage.reconnect()
        stage.awaitNotifying(characteristic)
        stage.notify(2)
        XCTAssertEqual(journal.entries, [.number(1), .gap, .number(2)])
    }

    func testAStartThatTheDaemonsDeathOvertakesFails() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        stage.simulator.simulateSlowReplies(by: 1)
        let started: Future<Void> = characteristic.startNotifying()
        stage.simulator.advance(by: 0.1)
        stage.simulator.simulateDaemonDeath()
        XCTAssertEqual(stage.failure(of: started) as? PeripheralError, .disconnected)
    }

    func testASubscriptionOutlivesAnAdapterThatWasOff() throws {
        let (stage, characteristic) = try AttributeStage.subscribed()
        stage.simulator.simulatePowerOff()
        XCTAssertTrue(stage.simulator.advance(until: { !stage.isLinked }, limit: 30))
        stage.simulator.simulatePowerOn()
        stage.reconnect()
        stage.awaitNotifying(characteristic)
    }

    // MARK: The table

    func testACharacteristicThatIsGoneEndsItsStreams() throws {
        let (stage, characteristic) = try AttributeStage.subscribed(journal)
        let other = VirtualService("180F", characteristics: [VirtualCharacteristic("2A19", [.read])])
        stage.simulator.simulateServicesChanged(of: AttributeStage.address, to: [other])
        XCTAssertTrue(stage.simulator.advance(until: { !characteristic.isValid }, limit: 30))
        stage.simulator.advance(by: 5)
        XCTAssertEqual(journal.entries, [.failure("\(CharacteristicError.invalidated)")])
        let started: Future<Void> = characteristic.startNotifying()
        XCTAssertNotNil(stage.failure(of: started))
    }

    func testACharacteristicThatHasMovedIsSubscribedToAgain() throws {
        let (stage, characteristic) = try AttributeStage.subscribed(journal)
        let other = VirtualService("180F", characteristics: [VirtualCharacteristic("2A19", [.read])])
        stage.simulator.simulateServicesChanged(of: AttributeStage.address, to: [other, AttributeStage.heart])
        XCTAssertTrue(stage.simulator.advance(until: { self.journal.entries == [.gap] }, limit: 30))
        stage.awaitNotifying(characteristic)
        stage.notify(1)
        XCTAssertEqual(journal.entries, [.gap, .number(1)])
    }

    func testTerminatingEndsTheStreams() throws {
        let (stage, _) = try AttributeStage.subscribed()
        stage.peripheral.terminate()
        stage.simulator.advance(by: 5)
        XCTAssertEqual(stage.subscriptionCount(), 0)
    }

    // MARK: D4, from the first value on

    func testTheFirstValueIsNotLost() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        journal.watch(characteristic.receiveNotificationUpdates())
        let started: Future<Characteristic> = characteristic.startNotifying()
        // As soon as the peripheral has the subscription, and before BlueZ has replied.
        XCTAssertTrue(
            stage.simulator.advance(
                until: { stage.simulator.links.first?.subscriptions.isEmpty == false }, limit: 5))
        stage.simulator.notify(AttributeStage.address, characteristic: .uuid("2A37"), value: [1])
        try stage.wait(started)
        stage.notify(2)
        XCTAssertEqual(journal.entries, [.number(1), .number(2)])
    }

    func testARefusedSubscriptionHasThePeripheralsReason() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        stage.simulator.simulateDropAfter(requests: 1, of: AttributeStage.address)
        let started: Future<Void> = characteristic.startNotifying()
        XCTAssertEqual(stage.failure(of: started) as? PeripheralError, .disconnected)
    }
}
