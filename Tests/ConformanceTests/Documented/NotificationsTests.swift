import BlueCapKit
import BlueZSimulator
import XCTest

/// What the documents declare of notifications; they differ in what the streams yield.
final class NotificationsTests: DocumentedCase, @unchecked Sendable {
    private func characteristic() throws -> Characteristic { try connectedCharacteristic(Sensor.dataUUID) }

    /// The sensor notifies a value.
    private func notify(_ bytes: [UInt8]) {
        settle()
        simulator.notify(Sensor.address, characteristic: AttributeSelector(Sensor.dataUUID), value: bytes)
    }

    private var subscriptions: [String] {
        simulator.subscriptions(to: AttributeSelector(Sensor.dataUUID), at: Sensor.address)
    }

    // MARK: Subscribing

    func testSubscribingYieldsTheCharacteristic() throws {
        let startNotifying: (Characteristic) -> () -> Future<Characteristic> = Characteristic.startNotifying
        let characteristic = try characteristic()
        XCTAssertEqual(try outcome(startNotifying(characteristic)()), characteristic)
        XCTAssertEqual(subscriptions.count, 1)
    }

    func testSubscribingYieldsNothingInTheLatestDocument() throws {
        let startNotifying: (Characteristic) -> () -> Future<Void> = Characteristic.startNotifying
        try outcome(startNotifying(characteristic())())
        XCTAssertEqual(subscriptions.count, 1)
    }

    func testUnsubscribingYieldsTheCharacteristic() throws {
        let stopNotifying: (Characteristic) -> () -> Future<Characteristic> = Characteristic.stopNotifying
        let characteristic = try outcome(characteristic().startNotifying())
        XCTAssertEqual(try outcome(stopNotifying(characteristic)()), characteristic)
        XCTAssertEqual(subscriptions, [])
    }

    func testUnsubscribingYieldsNothingInTheLatestDocument() throws {
        let stopNotifying: (Characteristic) -> () -> Future<Void> = Characteristic.stopNotifying
        try outcome(stopNotifying(outcome(characteristic().startNotifying()))())
        XCTAssertEqual(subscriptions, [])
    }

    func testWhatCannotNotifyIsRefused() throws {
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        let error = failure(of: characteristic.startNotifying() as Future<Characteristic>)
        XCTAssertEqual(error as? CharacteristicError, .notifyNotSupported)
    }

    // MARK: Receiving

    func testUpdatesAreCharacteristicsInTheEarliestDocument() throws {
        let receive: (Characteristic) -> (Int?) -> FutureStream<Characteristic> =
            Characteristic.receiveNotificationUpdates(capacity:)
        let characteristic = try outcome(characteristic().startNotifying())
        receive(characteristic)(nil).onSuccess { characteristic in
            self.seen.note("\(characteristic.dataValue.map(Array.init) ?? [])")
        }
        let unlimited: FutureStream<Characteristic> = characteristic.receiveNotificationUpdates()
        let limited: FutureStream<Characteristic> = characteristic.receiveNotificationUpdates(capacity: 1)
        notify([1, 2, 3])
        eventually("the update") { seen.texts == ["[1, 2, 3]"] }
        XCTAssertEqual([unlimited.count, limited.count], [1, 1])
    }

    func testUpdatesAreCharacteristicsAndDataInTheMiddleDocument() throws {
        let receive: (Characteristic) -> (Int) -> FutureStream<(characteristic: Characteristic, data: Data?)> =
            Characteristic.receiveNotificationUpdates(capacity:)
        let characteristic = try outcome(characteristic().startNotifying())
        receive(characteristic)(Int.max).onSuccess { (characteristic, data) in
            self.seen.note("\(characteristic.uuid == Sensor.dataUUID) \(data.map(Array.init) ?? [])")
        }
        notify([1, 2, 3])
        eventually("the update") { seen.texts == ["true [1, 2, 3]"] }
    }

    func testUpdatesAreOfBothWhenNothingElseIsSaid() throws {
        let updates = try outcome(characteristic().startNotifying()).receiveNotificationUpdates()
        updates.onSuccess { update in self.seen.note("\(update.characteristic.uuid) \(update.data?.count ?? -1)") }
        notify([1, 2, 3])
        eventually("the update") { seen.texts == ["\(Sensor.dataUUID) 3"] }
    }

    func testUpdatesAreDataInTheLatestDocument() throws {
        let receive: (Characteristic) -> (Int) -> FutureStream<Data> =
            Characteristic.receiveNotificationUpdates(capacity:)
        let characteristic = try outcome(characteristic().startNotifying())
        receive(characteristic)(Int.max).onSuccess { data in self.seen.note("\(Array(data))") }
        notify([1, 2, 3])
        eventually("the update") { seen.texts == ["[1, 2, 3]"] }
    }

    func testUpdatesAreOptionalDataInTheLatestDocumentsText() throws {
        let receive: (Characteristic) -> (Int) -> FutureStream<Data?> =
            Characteristic.receiveNotificationUpdates(capacity:)
        let characteristic = try outcome(characteristic().startNotifying())
        receive(characteristic)(Int.max).onSuccess { data in self.seen.note("\(data.map(Array.init) ?? [])") }
        notify([1, 2, 3])
        eventually("the update") { seen.texts == ["[1, 2, 3]"] }
    }

    func testTheCapacityIsThatOfTheStream() throws {
        let characteristic = try outcome(characteristic().startNotifying())
        let updates: FutureStream<Data> = characteristic.receiveNotificationUpdates(capacity: 2)
        for number in UInt8(1)...4 { notify([number]) }
        settle()
        updates.onSuccess { data in self.seen.note("\(Array(data))") }
        eventually("the latest two") { seen.texts == ["[3]", "[4]"] }
    }

    func testReceivingEndsAndTheSubscriptionStays() throws {
        let stopNotificationUpdates: (Characteristic) -> () -> Void = Characteristic.stopNotificationUpdates
        let characteristic = try outcome(characteristic().startNotifying())
        characteristic.receiveNotificationUpdates().onSuccess { _ in self.seen.note("an update") }
        stopNotificationUpdates(characteristic)()
        notify([1])
        pass(1)
        XCTAssertEqual(seen.texts, [])
        XCTAssertEqual(subscriptions.count, 1)
    }
}
