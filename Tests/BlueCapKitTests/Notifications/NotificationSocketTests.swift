import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import XCTest

/// Notifications over a socket, past the bus.
final class NotificationSocketTests: XCTestCase {
    private let journal = NotificationJournal()

    func testValuesComeOverTheSocketAndNotOverTheBus() throws {
        let (stage, characteristic) = try AttributeStage.subscribed(journal, over: .socket)
        XCTAssertTrue(characteristic.isNotifying)
        let signals = stage.simulator.statistics.signals(of: "PropertiesChanged")
        stage.notify(1, 1, 2)
        XCTAssertEqual(journal.bytes, [1, 1, 2])
        XCTAssertEqual(characteristic.dataValue, Data([2]))
        XCTAssertEqual(stage.simulator.statistics.signals(of: "PropertiesChanged"), signals)
    }

    func testAHundredThousandShortValuesComeOnceAndInOrder() throws { try flood(100_000, size: 20, over: .socket) }

    func testAHundredThousandLongValuesComeOnceAndInOrder() throws { try flood(100_000, size: 244, over: .socket) }

    func testLongValuesComeOnceAndInOrderOverTheBusToo() throws { try flood(10_000, size: 244, over: .signals) }

    private func flood(_ count: Int, size: Int, over transport: NotificationTransport) throws {
        let (stage, characteristic) = try AttributeStage.rate(link: .immediate)
        let counter = OrderCounter(size: size)
        let stream: FutureStream<Data> = characteristic.receiveNotificationUpdates()
        stream.onSuccess(context: ImmediateContext()) { counter.count($0) }
        try stage.start(characteristic, over: transport)
        stage.flood(count, size: size)
        XCTAssertTrue(stage.simulator.advance(until: { counter.next >= count }, limit: 3_600))
        XCTAssertEqual(counter.next, count)
        XCTAssertEqual(counter.wrong, 0)
        XCTAssertEqual(stream.droppedCount, 0)
    }

    func testStoppingGivesTheSocketBack() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        journal.watch(characteristic.receiveNotificationUpdates())
        for round in 1...3 as ClosedRange<UInt8> {
            try stage.start(characteristic, over: .socket)
            stage.notify(round)
            try stage.wait(characteristic.stopNotifying() as Future<Void>)
            XCTAssertEqual(stage.subscriptionCount(), 0)
        }
        XCTAssertEqual(journal.entries, [.number(1), .number(2), .number(3)])
    }

    func testAReadBesideASocketIsNoNotification() throws {
        let (stage, characteristic) = try AttributeStage.subscribed(journal, over: .socket)
        stage.simulator.setValue([9], of: .uuid("2A37"), at: AttributeStage.address)
        try stage.read(characteristic)
        XCTAssertEqual(journal.entries, [])
        XCTAssertEqual(characteristic.dataValue, Data([9]))
    }

    func testALostLinkBringsAnotherSocketAndAGapMark() throws {
        let (stage, characteristic) = try AttributeStage.subscribed(journal, over: .socket)
        stage.notify(1)
        stage.loseLink()
        XCTAssertFalse(characteristic.isNotifying)
        stage.reconnect()
        stage.awaitNotifying(characteristic)
        stage.notify(2)
        XCTAssertEqual(journal.entries, [.number(1), .gap, .number(2)])
        XCTAssertEqual(stage.count(of: "AcquireNotify"), 2)
        XCTAssertEqual(stage.count(of: "StartNotify"), 0)
    }

    func testADaemonThatReturnsBringsAnotherSocketAndAGapMark() throws {
        let (stage, characteristic) = try AttributeStage.subscribed(journal, over: .socket)
        stage.simulator.simulateDaemonDeath()
        XCTAssertTrue(stage.simulator.advance(until: { !stage.isLinked }, limit: 30))
        stage.simulator.simulateDaemonReturn()
        stage.reconnect()
        stage.awaitNotifying(characteristic)
        stage.notify(2)
        XCTAssertEqual(journal.entries, [.gap, .number(2)])
    }

    func testASocketWhoseSubscriptionWasWithdrawnIsNotAcquired() throws {
        let stage = try AttributeStage.explored(bluez: .v5_66)
        // A peripheral that may need a pairing is subscribed to over signals first.
        stage.manager?.pairingPolicy = .justWorks
        let characteristic = try stage.characteristic("2A37")
        stage.simulator.simulateSlowReplies(by: 0.5)
        let started: Future<Void> = characteristic.startNotifying(over: .socket, timeout: 0.2)
        XCTAssertEqual(stage.failure(of: started) as? CharacteristicError, .notifyTimeout)
        stage.simulator.advance(by: 10)
        XCTAssertEqual(stage.count(of: "StartNotify"), 1)
        XCTAssertEqual(stage.count(of: "AcquireNotify"), 0)
    }

    func testIndicationsComeThroughASocketWhereBlueZAllowsIt() throws {
        let stage = try AttributeStage.explored(bluez: .v5_82)
        let characteristic = try stage.characteristic("2A39")
        journal.watch(characteristic.receiveNotificationUpdates())
        try stage.start(characteristic, over: .socket)
        stage.notify(1, 2, from: "2A39")
        XCTAssertEqual(journal.entries, [.number(1), .number(2)])
    }

    func testBlueZ566HasNoSocketForIndications() throws {
        let stage = try AttributeStage.explored(bluez: .v5_66)
        let characteristic = try stage.characteristic("2A39")
        let started: Future<Void> = characteristic.startNotifying(over: .socket)
        XCTAssertEqual(stage.failure(of: started) as? CharacteristicError, .notifyNotSupported)
        XCTAssertFalse(characteristic.isNotifying)
        try stage.start(characteristic)
    }
}

/// Counts numbered values, and those that are not the next.
private final class OrderCounter: Sendable {
    private let state = Locked((next: 0, wrong: 0))
    private let size: Int

    init(size: Int) { self.size = size }

    var next: Int { state.withLock { $0.next } }
    var wrong: Int { state.withLock { $0.wrong } }

    func count(_ value: Data) {
        state.withLock { state in
            if number(of: value) != state.next || value.count != size { state.wrong += 1 }
            state.next += 1
        }
    }
}
