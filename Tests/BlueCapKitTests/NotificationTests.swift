import BlueCapKit
import BlueZSimulator
import Futures
import XCTest

/// Subscriptions and what they bring, on the simulator in virtual time; D1 to D6 are those of Documentation/Reliability.md.
final class NotificationTests: XCTestCase {
    private static let service = VirtualService(
        "180D",
        characteristics: [
            VirtualCharacteristic("2A37", [.notify, .read], value: [0]),
            VirtualCharacteristic("2A38", [.read], value: [1]),
            VirtualCharacteristic("2A39", [.indicate]),
        ])

    private let journal = NotificationJournal()

    private func makeStage(link: VirtualLink = VirtualLink()) throws -> AttributeStage {
        let stage = try AttributeStage([Self.service], link: link)
        try stage.explore()
        return stage
    }

    private func start(
        _ characteristic: Characteristic, over transport: NotificationTransport = .signals, on stage: AttributeStage
    ) throws {
        let started: Future<Characteristic> = characteristic.startNotifying(over: transport)
        try stage.wait(started)
    }

    private func notify(_ bytes: UInt8..., from uuid: String = "2A37", on stage: AttributeStage) {
        for byte in bytes {
            stage.simulator.notify(AttributeStage.address, characteristic: .uuid(uuid), value: [byte])
        }
        stage.simulator.advance(by: 0.5)
    }

    private func loseLink(on stage: AttributeStage) {
        stage.simulator.simulateLinkLoss(of: AttributeStage.address)
        XCTAssertTrue(stage.simulator.advance(until: { !stage.isLinked }, limit: 30))
    }

    private func reconnect(on stage: AttributeStage) {
        stage.peripheral.reconnect()
        XCTAssertTrue(stage.simulator.advance(until: { stage.isLinked }, limit: 30))
    }

    private func subscriptionCount(on stage: AttributeStage, _ uuid: String = "2A37") -> Int {
        stage.simulator.subscriptions(to: .uuid(uuid), at: AttributeStage.address).count
    }

    // MARK: Subscribing

    func testValuesComeToAllFormsOfStreams() throws {
        let stage = try makeStage()
        let characteristic = try stage.characteristic("2A37")
        let journals = (0..<4).map { _ in NotificationJournal() }
        journals[0].watch(characteristic.receiveNotificationUpdates())
        journals[1].watch(characteristic.receiveNotificationUpdates() as FutureStream<Data?>)
        journals[2].watch(characteristic.receiveNotificationUpdates() as FutureStream<Data>)
        journals[3].watch(characteristic.receiveNotificationUpdates(capacity: nil) as FutureStream<Characteristic>)
        try start(characteristic, on: stage)
        XCTAssertTrue(characteristic.isNotifying)
        notify(1, on: stage)
        notify(2, on: stage)
        for journal in journals { XCTAssertEqual(journal.bytes, [1, 2]) }
        XCTAssertEqual(characteristic.dataValue, Data([2]))
    }

    func testAnIndicationIsReceivedLikeANotification() throws {
        let stage = try makeStage()
        let characteristic = try stage.characteristic("2A39")
        journal.watch(characteristic.receiveNotificationUpdates())
        try start(characteristic, on: stage)
        notify(1, 2, 3, from: "2A39", on: stage)
        XCTAssertEqual(journal.bytes, [1, 2, 3])
    }

    func testWhatCannotNotifyFailsAtOnce() throws {
        let stage = try makeStage()
        let characteristic = try stage.characteristic("2A38")
        let started: Future<Void> = characteristic.startNotifying()
        XCTAssertEqual(stage.failure(of: started) as? CharacteristicError, .notifyNotSupported)
        journal.watch(characteristic.receiveNotificationUpdates())
        XCTAssertEqual(journal.entries, [.failure("\(CharacteristicError.notifyNotSupported)")])
        XCTAssertEqual(stage.simulator.statistics.count(of: "StartNotify"), 0)
    }

    func testWithoutALinkItFailsAtOnce() throws {
        let stage = try makeStage()
        let characteristic = try stage.characteristic("2A37")
        loseLink(on: stage)
        let started: Future<Characteristic> = characteristic.startNotifying()
        XCTAssertEqual(stage.failure(of: started) as? PeripheralError, .disconnected)
    }

    func testStreamsReceiveNothingWithoutASubscription() throws {
        let stage = try makeStage()
        let characteristic = try stage.characteristic("2A37")
        journal.watch(characteristic.receiveNotificationUpdates())
        notify(1, on: stage)
        XCTAssertEqual(journal.entries, [])
    }

    func testASubscriptionNeedsNoStream() throws {
        let stage = try makeStage()
        let characteristic = try stage.characteristic("2A37")
        try start(characteristic, on: stage)
        notify(1, 2, on: stage)
        XCTAssertEqual(characteristic.dataValue, Data([2]))
        journal.watch(characteristic.receiveNotificationUpdates())
        notify(3, on: stage)
        XCTAssertEqual(journal.bytes, [3])
    }

    // MARK: Stopping

    func testStoppingThenStartingAgainKeepsTheStreams() throws {
        let stage = try makeStage()
        let characteristic = try stage.characteristic("2A37")
        journal.watch(characteristic.receiveNotificationUpdates())
        try start(characteristic, on: stage)
        notify(1, on: stage)
        try stage.wait(characteristic.stopNotifying() as Future<Void>)
        XCTAssertFalse(characteristic.isNotifying)
        XCTAssertEqual(subscriptionCount(on: stage), 0)
        notify(2, on: stage)
        try start(characteristic, on: stage)
        notify(3, on: stage)
        XCTAssertEqual(journal.entries, [.number(1), .number(3)])
    }

    func testTheStreamsMayEndBeforeTheSubscription() throws {
        let stage = try makeStage()
        let characteristic = try stage.characteristic("2A37")
        let stream: FutureStream<Data> = characteristic.receiveNotificationUpdates()
        journal.watch(stream)
        try start(characteristic, on: stage)
        characteristic.stopNotificationUpdates()
        notify(1, on: stage)
        XCTAssertEqual(journal.entries, [])
        XCTAssertEqual(characteristic.dataValue, Data([1]))
        try stage.wait(characteristic.stopNotifying() as Future<Characteristic>)
        XCTAssertEqual(subscriptionCount(on: stage), 0)
    }

    func testTheSubscriptionMayEndBeforeTheStreams() throws {
        let stage = try makeStage()
        let characteristic = try stage.characteristic("2A37")
        journal.watch(characteristic.receiveNotificationUpdates())
        try start(characteristic, on: stage)
        let stopped: Future<Characteristic> = characteristic.stopNotifying()
        characteristic.stopNotificationUpdates()
        try stage.wait(stopped)
        notify(1, on: stage)
        XCTAssertEqual(journal.entries, [])
    }

    func testAStopWhileStartingIsDoneAfterTheStart() throws {
        let stage = try makeStage()
        let characteristic = try stage.characteristic("2A37")
        let started: Future<Void> = characteristic.startNotifying()
        let stopped: Future<Void> = characteristic.stopNotifying()
        try stage.wait(started)
        try stage.wait(stopped)
        XCTAssertEqual(subscriptionCount(on: stage), 0)
    }

    func testAStreamThatNobodyHoldsIsGivenUp() throws {
        let stage = try makeStage()
        let characteristic = try stage.characteristic("2A37")
        try start(characteristic, on: stage)
        weak var forgotten: FutureStream<Data>?
        do {
            let stream: FutureStream<Data> = characteristic.receiveNotificationUpdates()
            forgotten = stream
            notify(1, on: stage)
            XCTAssertEqual(stream.count, 1)
        }
        notify(2, on: stage)
        XCTAssertNil(forgotten)
    }

    // MARK: D1, order and completeness

    func testTenThousandValuesComeOnceAndInOrder() throws {
        let stage = try makeStage(link: .immediate)
        let characteristic = try stage.characteristic("2A37")
        journal.watch(characteristic.receiveNotificationUpdates())
        try start(characteristic, on: stage)
        stage.simulator.simulateNotifications(
            count: 10_000, size: 20, of: AttributeStage.address, characteristic: .uuid("2A37"))
        XCTAssertTrue(stage.simulator.advance(until: { self.journal.values.count >= 10_000 }, limit: 600))
        expectNumbers(journal.values, 10_000)
    }

    func testASlowHandlerLosesNothing() throws {
        let stage = try makeStage(link: .immediate)
        let characteristic = try stage.characteristic("2A37")
        let queue = DispatchQueue(label: "slow")
        queue.suspend()
        let stream: FutureStream<(characteristic: Characteristic, data: Data?)> =
            characteristic.receiveNotificationUpdates(capacity: 1)
        journal.watch(stream, context: QueueContext(queue: queue))
        try start(characteristic, on: stage)
        stage.simulator.simulateNotifications(
            count: 10_000, size: 20, of: AttributeStage.address, characteristic: .uuid("2A37"))
        let isLast: @Sendable () -> Bool = { Self.number(of: characteristic.dataValue.map(Array.init) ?? []) == 9_999 }
        XCTAssertTrue(stage.simulator.advance(until: isLast, limit: 600))
        XCTAssertEqual(journal.entries, [])
        queue.resume()
        queue.sync {}
        let journal = journal
        let done = expectation(for: NSPredicate { _, _ in journal.values.count == 10_000 }, evaluatedWith: nil)
        wait(for: [done], timeout: 20)
        expectNumbers(journal.values, 10_000)
        XCTAssertEqual(stream.droppedCount, 0)
    }

    func testABoundedStreamThatNobodyHearsKeepsTheNewestAndCountsTheOthers() throws {
        let stage = try makeStage(link: .immediate)
        let characteristic = try stage.characteristic("2A37")
        let stream: FutureStream<Data> = characteristic.receiveNotificationUpdates(capacity: 10)
        try start(characteristic, on: stage)
        stage.simulator.simulateNotifications(
            count: 100, size: 20, of: AttributeStage.address, characteristic: .uuid("2A37"))
        XCTAssertTrue(stage.simulator.advance(until: { stream.droppedCount == 90 }, limit: 60))
        journal.watch(stream)
        XCTAssertEqual(journal.values.map(Self.number), Array(90..<100))
    }

    static func number(of bytes: [UInt8]) -> Int {
        bytes.prefix(8).reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    private func expectNumbers(
        _ values: [[UInt8]], _ count: Int, file: StaticString = #filePath, line: UInt = #line
    ) {
        XCTAssertEqual(values.count, count, file: file, line: line)
        let wrong = values.enumerated().first { $0.offset != Self.number(of: $0.element) }
        XCTAssertNil(wrong, "not in order", file: file, line: line)
    }

    // MARK: D2, reads

    func testAValueThatOurOwnReadBroughtIsNoNotification() throws {
        let stage = try makeStage()
        let characteristic = try stage.characteristic("2A37")
        journal.watch(characteristic.receiveNotificationUpdates())
        try start(characteristic, on: stage)
        notify(1, on: stage)
        stage.simulator.setValue([9], of: .uuid("2A37"), at: AttributeStage.address)
        try stage.wait(characteristic.read() as Future<Characteristic>)
        XCTAssertEqual(characteristic.dataValue, Data([9]))
        notify(2, on: stage)
        XCTAssertEqual(journal.entries, [.number(1), .number(2)])
    }

    func testNotificationsThatComeDuringAReadAreDelivered() throws {
        let stage = try makeStage()
        let characteristic = try stage.characteristic("2A37")
        journal.watch(characteristic.receiveNotificationUpdates())
        try start(characteristic, on: stage)
        stage.simulator.simulateLateAnswers(by: 1, of: AttributeStage.address)
        let read: Future<Characteristic> = characteristic.read()
        notify(1, 2, on: stage)
        try stage.wait(read)
        XCTAssertEqual(journal.bytes, [1, 2])
    }

    func testAReadOfAnotherManagerIsNoNotificationEither() throws {
        let stage = try AttributeStage([Self.service])
        let other = try SecondManager(beside: stage)
        try stage.explore()
        let characteristic = try stage.characteristic("2A37")
        journal.watch(characteristic.receiveNotificationUpdates())
        try start(characteristic, on: stage)
        try stage.wait(other.explore(on: stage).read() as Future<Characteristic>)
        XCTAssertEqual(journal.entries, [])
    }

    // MARK: D6, sharing

    func testStartingTwiceIsOneSubscription() throws {
        let stage = try makeStage()
        let characteristic = try stage.characteristic("2A37")
        let first: Future<Characteristic> = characteristic.startNotifying()
        let second: Future<Characteristic> = characteristic.startNotifying()
        try stage.wait(first)
        try stage.wait(second)
        XCTAssertEqual(stage.simulator.statistics.count(of: "StartNotify"), 1)
    }

    func testTwoManagersShareOneSubscriptionAndTheLastEndsIt() throws {
        let stage = try AttributeStage([Self.service])
        let other = try SecondManager(beside: stage)
        try stage.explore()
        let characteristic = try stage.characteristic("2A37")
        let theirs = try other.explore(on: stage)
        let others = NotificationJournal()
        journal.watch(characteristic.receiveNotificationUpdates())
        others.watch(theirs.receiveNotificationUpdates())
        try start(characteristic, on: stage)
        try start(theirs, on: stage)
        notify(1, on: stage)
        XCTAssertEqual(journal.bytes, [1])
        XCTAssertEqual(others.bytes, [1])
        try stage.wait(characteristic.stopNotifying() as Future<Void>)
        XCTAssertEqual(stage.simulator.statistics.count(of: "StopNotify"), 0)
        notify(2, on: stage)
        XCTAssertEqual(journal.bytes, [1])
        XCTAssertEqual(others.bytes, [1, 2])
        try stage.wait(theirs.stopNotifying() as Future<Void>)
        XCTAssertEqual(stage.simulator.statistics.count(of: "StopNotify"), 1)
        XCTAssertEqual(subscriptionCount(on: stage), 0)
    }

    func testAManagerThatEndsLeavesNoSubscriptionBehind() throws {
        let stage = try makeStage()
        let characteristic = try stage.characteristic("2A37")
        try start(characteristic, on: stage)
        stage.endManager()
        XCTAssertTrue(stage.simulator.advance(until: { self.subscriptionCount(on: stage) == 0 }, limit: 10))
    }
}

/// Another manager of this process, at the same peripheral.
private struct SecondManager {
    let manager: CentralManager
    let peripheral: Peripheral

    /// While there is no link: who is connected does not advertise.
    init(beside stage: AttributeStage) throws {
        let manager = CentralManager(options: [CentralManagerOptionBusAddressKey: stage.simulator.address])
        self.manager = manager
        XCTAssertTrue(stage.simulator.advance(until: { manager.poweredOn }, limit: 5))
        let scan = manager.startScanning()
        XCTAssertTrue(stage.simulator.advance(until: { !manager.peripherals.isEmpty }, limit: 5))
        manager.stopScanning()
        peripheral = try XCTUnwrap(manager.peripherals.first)
        withExtendedLifetime(scan) {}
    }

    func explore(on stage: AttributeStage) throws -> Characteristic {
        peripheral.connect()
        let peripheral = peripheral
        XCTAssertTrue(stage.simulator.advance(until: { peripheral.state == .connected }, limit: 30))
        try stage.wait(peripheral.discoverAllServices() as Future<Peripheral>)
        for service in peripheral.services { try stage.wait(service.discoverAllCharacteristics() as Future<Service>) }
        return try XCTUnwrap(peripheral.services.lazy.compactMap { $0.characteristic(CBUUID(string: "2A37")) }.first)
    }
}
