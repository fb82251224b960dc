import BlueZSimulator
import BlueCapFutures
import BlueCapReactor
import XCTest

@testable import BlueCapKit
@testable import BlueCapBlueZ

/// Updates reach the subscribed centrals, in order and without a loss.
final class UpdatingTests: PeripheralStage {
    private func served(
        _ properties: CBCharacteristicProperties = [.read, .notify], overSocket: Bool = true
    ) throws -> MutableCharacteristic {
        let service = Self.heart(properties)
        service.characteristics[0].sendsUpdatesOverSocket = overSocket
        try serve(service)
        return service.characteristics[0]
    }

    private static func bytes(_ number: Int) -> Data { Data([UInt8(number & 0xFF), UInt8(number >> 8)]) }
    private func bytes(_ number: Int) -> Data { Self.bytes(number) }

    private func update(_ characteristic: MutableCharacteristic, _ numbers: Range<Int>) throws {
        for number in numbers { try characteristic.update(withData: bytes(number)) }
    }

    private func expect(_ phone: CentralLink, _ numbers: Range<Int>, file: StaticString = #filePath, line: UInt = #line)
    {
        wait(60, file: file, line: line) { phone.values.count >= numbers.count }
        XCTAssertEqual(phone.values.map { Data($0.bytes) }, numbers.map(bytes), file: file, line: line)
    }

    func testAThousandUpdatesArriveInOrderOverASocket() throws {
        let characteristic = try served()
        let phone = subscriber()
        try update(characteristic, 0..<1_000)
        expect(phone, 0..<1_000)
        try value(of: characteristic.whenUpdatesSent())
        XCTAssertEqual(characteristic.pendingUpdates, [])
        XCTAssertEqual(characteristic.value, bytes(999))
    }

    func testIndicationsAreConfirmedOneByOne() throws {
        let characteristic = try served([.read, .indicate])
        let phone = subscriber(indications: true)
        try update(characteristic, 0..<20)
        expect(phone, 0..<20)
        XCTAssertTrue(phone.values.allSatisfy(\.isIndication))
        try value(of: characteristic.whenUpdatesSent())
    }

    func testUpdatesWaitForASubscriber() throws {
        let characteristic = try served()
        try update(characteristic, 0..<5)
        XCTAssertFalse(characteristic.isUpdating)
        XCTAssertEqual(characteristic.pendingUpdates, (0..<5).map(bytes))
        let phone = subscriber()
        expect(phone, 0..<5)
        XCTAssertTrue(characteristic.isUpdating)
        simulator.advance(by: 1)
        XCTAssertEqual(characteristic.pendingUpdates, [])
    }

    func testUpdatesGoOnWithTheNextSubscriber() throws {
        let characteristic = try served()
        let first = subscriber()
        try update(characteristic, 0..<3)
        expect(first, 0..<3)
        first.disconnect()
        wait { !characteristic.isUpdating }
        try update(characteristic, 3..<6)
        let second = subscriber("C0:FF:EE:00:CE:02")
        wait { second.values.count == 3 }
        XCTAssertEqual(second.values.map { Data($0.bytes) }, (3..<6).map(bytes))
    }

    func testAnUnconfirmedIndicationGoesOutAgainToTheNextSubscriber() throws {
        let characteristic = try served([.read, .indicate])
        subscriber(confirms: false, indications: true)
        try update(characteristic, 0..<2)
        wait(60) { !characteristic.isUpdating }
        XCTAssertEqual(characteristic.pendingUpdates, (0..<2).map(bytes))
        let phone = subscriber("C0:FF:EE:00:CE:02", indications: true)
        expect(phone, 0..<2)
    }

    func testSubscribersAreKnownAsFarAsBlueZReportsThem() throws {
        let characteristic = try served()
        let changes = Elements(characteristic.whenSubscribersChange())
        XCTAssertFalse(characteristic.hasSubscribers)
        let phone = subscriber()
        wait { characteristic.hasSubscribers }
        let central = try XCTUnwrap(characteristic.subscribers.first)
        XCTAssertEqual(central.address?.description, "C0:FF:EE:00:CE:01")
        XCTAssertEqual(central.maximumUpdateValueLength, 244)
        XCTAssertFalse(central.isAnonymous)
        _ = result(of: phone.unsubscribe(from: "2A37"))
        wait { !characteristic.hasSubscribers }
        XCTAssertEqual(changes.values.map(\.count), [1, 0])
    }

    /// On a machine that stood still, the stream said of its first subscriber twice that it had come.
    func testAChangeBeforeTheStreamHasBegunIsReportedOnce() throws {
        let characteristic = try served()
        let session = try XCTUnwrap(characteristic.core.withLock { $0.session })
        let subscriber = MutableCharacteristic.Subscriber(
            central: Central(address: nil, mtu: nil), source: ServerSubscriber(peer: nil, directWay: .closed))
        let changes = Locked<Elements<[Central]>?>(nil)
        session.loop.post {
            let stream = characteristic.whenSubscribersChange()
            changes.withLock { $0 = Elements(stream) }
            characteristic.subscribersChanged(to: [subscriber], session)
        }
        simulator.advance(by: 1)
        XCTAssertEqual(changes.withLock { $0?.values.map(\.count) }, [1])
    }

    func testOverTheBusSubscribersAreAnonymous() throws {
        let characteristic = try served(overSocket: false)
        _ = result(of: phone().subscribe(to: "2A37"))
        wait { characteristic.hasSubscribers }
        let central = try XCTUnwrap(characteristic.subscribers.first)
        XCTAssertTrue(central.isAnonymous)
        XCTAssertEqual(characteristic.subscribers.count, 1)
    }

    func testWhatCannotBeUpdatedThrows() throws {
        let characteristic = try served()
        func error(_ body: () throws -> Void) -> MutableCharacteristicError? {
            do {
                try body()
                return nil
            } catch {
                return error as? MutableCharacteristicError
            }
        }
        let alone = MutableCharacteristic(uuid: "2A37")
        XCTAssertEqual(error { try alone.update(withData: Data()) }, .unconfigured)
        XCTAssertEqual(error { try alone.update(withString: ["Unknown": "00"]) }, .unconfigured)
        let mute = try XCTUnwrap(manager.services[0].characteristic(CBUUID(string: "2A39")))
        XCTAssertEqual(error { try mute.update(withData: Data()) }, .notifyNotSupported)
        XCTAssertEqual(
            error { try characteristic.update(withData: Data(count: 513)) }, .tooLong(count: 513, maximum: 512))
        XCTAssertEqual(error { try characteristic.update(withString: ["Other": "01"]) }, .notSerializable)
        XCTAssertNil(error { try characteristic.update(withString: ["Unknown": "0001"]) })
        XCTAssertEqual(characteristic.value, Data([0, 1]))
        XCTAssertNil(error { try characteristic.update(UInt16(513)) })
        XCTAssertEqual(characteristic.value, Data([1, 2]))
        XCTAssertFalse(try characteristic.updateValue(UInt8(3)))
    }

    func testAFullQueueRefusesUnlessItMayDrop() throws {
        let characteristic = try served([.read, .indicate])
        subscriber(confirms: false, indications: true)
        wait { characteristic.hasSubscribers }
        characteristic.updateQueueLimit = 3
        try update(characteristic, 0..<3)
        XCTAssertThrowsError(try characteristic.update(withData: bytes(3))) { error in
            XCTAssertEqual(error as? MutableCharacteristicError, .updateQueueFull(limit: 3))
        }
        XCTAssertEqual(characteristic.value, bytes(2), "What is not sent is not set either.")
        characteristic.updateQueuePolicy = .dropOldest
        try update(characteristic, 3..<5)
        XCTAssertEqual(characteristic.pendingUpdates, (2..<5).map(bytes))
        XCTAssertEqual(characteristic.droppedUpdates, 2)
    }

    // MARK: Without subscribers

    func testOfLatestASubscriberReceivesTheNewestValueAlone() throws {
        let characteristic = try served()
        characteristic.unsubscribedUpdatePolicy = .latest
        try update(characteristic, 0..<600)
        XCTAssertEqual(characteristic.pendingUpdates, [bytes(599)])
        XCTAssertEqual(characteristic.droppedUpdates, 599)
        let phone = subscriber()
        wait { characteristic.hasSubscribers }
        try update(characteristic, 600..<603)
        expect(phone, 599..<603)
    }

    func testOfDiscardASubscriberReceivesWhatIsSentAfterwards() throws {
        let characteristic = try served()
        characteristic.unsubscribedUpdatePolicy = .discard
        XCTAssertFalse(try characteristic.updateValue(UInt8(7)))
        XCTAssertEqual(characteristic.value, Data([7]), "The value is set nevertheless.")
        XCTAssertEqual(characteristic.pendingUpdates, [])
        try value(of: characteristic.whenUpdatesSent())
        let phone = subscriber()
        wait { characteristic.hasSubscribers }
        try update(characteristic, 1..<3)
        expect(phone, 1..<3)
        XCTAssertEqual(characteristic.droppedUpdates, 1)
    }

    func testThePolicyAppliesToWhatWaitsWhenTheLastSubscriberLeaves() throws {
        let kept: [UnsubscribedUpdatePolicy: [Int]] = [.queue: [0, 1, 2], .latest: [2], .discard: []]
        for policy in UnsubscribedUpdatePolicy.allCases {
            simulator = Simulator.inProcess(room: .empty)
            let characteristic = try served([.read, .indicate])
            characteristic.unsubscribedUpdatePolicy = policy
            let silent = subscriber(confirms: false, indications: true)
            wait { characteristic.hasSubscribers }
            try update(characteristic, 0..<3)
            let sent = characteristic.whenUpdatesSent()
            silent.disconnect()
            wait { !characteristic.hasSubscribers }
            let numbers = try XCTUnwrap(kept[policy])
            XCTAssertEqual(characteristic.pendingUpdates, numbers.map(bytes), "\(policy)")
            XCTAssertEqual(characteristic.droppedUpdates, 3 - numbers.count, "\(policy)")
            simulator.run()
            XCTAssertEqual(sent.completed, numbers.isEmpty, "\(policy)")
            let phone = subscriber("C0:FF:EE:00:CE:02", indications: true)
            wait { characteristic.hasSubscribers && characteristic.pendingUpdates.isEmpty }
            XCTAssertEqual(phone.values.map { Data($0.bytes) }, numbers.map(bytes), "\(policy)")
        }
    }

    func testNothingIsDroppedWhileOneOfSeveralSubscribersStays() throws {
        let characteristic = try served()
        characteristic.unsubscribedUpdatePolicy = .discard
        let (first, second) = (phone(), phone("C0:FF:EE:00:CE:02"))
        _ = result(of: first.subscribe(to: "2A37"))
        _ = result(of: second.subscribe(to: "2A37"))
        try update(characteristic, 0..<200)
        first.disconnect()
        wait { first.state != .connected }
        try update(characteristic, 200..<400)
        expect(second, 0..<400)
        XCTAssertEqual(characteristic.droppedUpdates, 0)
    }

    func testThePolicyHoldsOverARestartOfTheDaemon() throws {
        let characteristic = try served()
        characteristic.unsubscribedUpdatePolicy = .latest
        subscriber()
        wait { characteristic.hasSubscribers }
        simulator.simulateDaemonDeath()
        wait { !characteristic.hasSubscribers }
        try update(characteristic, 0..<5)
        simulator.simulateDaemonReturn()
        wait(30) { self.simulator.advertisements.count == 1 && self.offered() == ["180D"] }
        try update(characteristic, 5..<7)
        let again = subscriber("C0:FF:EE:00:CE:02")
        expect(again, 6..<7)
        XCTAssertEqual(characteristic.droppedUpdates, 6)
    }

    func testARemovalGivesUpWhatWaits() throws {
        let characteristic = try served()
        try update(characteristic, 0..<3)
        let sent = characteristic.whenUpdatesSent()
        manager.removeAllServices()
        XCTAssertEqual(failure(of: sent) as? MutableCharacteristicError, .unconfigured)
        XCTAssertEqual(characteristic.pendingUpdates, [])
        XCTAssertEqual(failure(of: characteristic.whenUpdatesSent()) as? MutableCharacteristicError, .unconfigured)
    }

    func testUpdatesFromManyThreadsAreAllSent() throws {
        let characteristic = try served()
        let phone = subscriber()
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for number in 0..<100 { try? characteristic.update(withData: Self.bytes(thread * 100 + number)) }
        }
        wait(60) { phone.values.count == 800 }
        XCTAssertEqual(Set(phone.values.map(\.bytes)).count, 800)
        for thread in 0..<8 {
            let own = phone.values.map { Int($0.bytes[0]) | Int($0.bytes[1]) << 8 }.filter { $0 / 100 == thread }
            XCTAssertEqual(own, Array(thread * 100..<thread * 100 + 100))
        }
    }
}
