import BlueCapKit
import XCTest

/// Notifications and indications.
extension CentralBodies {
    /// Subscribed, with every value going to the journal.
    private func subscribed(
        to key: String, of peripheral: Peripheral, over transport: NotificationTransport = .signals
    ) throws -> Characteristic {
        let characteristic = try characteristic(key, of: peripheral)
        journal.watch(characteristic.receiveNotificationUpdates())
        try outcome(of: characteristic.startNotifying(over: transport) as Future<Characteristic>)
        XCTAssertTrue(characteristic.isNotifying)
        return characteristic
    }

    public func receivesWhatIsNotifiedUntilItStops() throws {
        let (manager, peripheral) = try explored()
        let characteristic = try subscribed(to: "notify", of: peripheral)
        try stage.notify("notify", [[1], [2], [2], [3]])
        expect("four values") { $0.values.count == 4 }
        XCTAssertEqual(journal.values, [Data([1]), Data([2]), Data([2]), Data([3])], "equal ones, too")

        try outcome(of: characteristic.stopNotifying() as Future<Characteristic>)
        XCTAssertFalse(characteristic.isNotifying)
        try stage.notify("notify", [[4]])
        try outcome(of: characteristic.startNotifying() as Future<Characteristic>)
        try stage.notify("notify", [[5]])
        expect("a fifth value") { $0.values.compactMap { $0 }.count == 5 }
        XCTAssertEqual(journal.values.compactMap { $0 }.last, Data([5]))
        end(manager)
    }

    public func receivesWhatIsNotifiedUntilTheLinkHasEnded() throws {
        let (manager, peripheral) = try explored()
        _ = try subscribed(to: "notify", of: peripheral)
        // BlueZ ends the link after two seconds.
        peripheral.disconnect()
        try stage.notify("notify", [[1], [2], [3]])
        expect("the end") { $0.connectionEvents == [.connect, .forceDisconnect] }
        XCTAssertEqual(journal.values, [Data([1]), Data([2]), Data([3])])
        end(manager)
    }

    public func receivesWhatIsIndicated() throws {
        let (manager, peripheral) = try explored()
        _ = try subscribed(to: "indicate", of: peripheral)
        try stage.notify("indicate", [[1], [1], [2]])
        expect("three values") { $0.values.count == 3 }
        XCTAssertEqual(journal.values, [Data([1]), Data([1]), Data([2])])
        end(manager)
    }

    public func aReadWhileSubscribedIsNoNotification() throws {
        let (manager, peripheral) = try explored()
        let characteristic = try subscribed(to: "notify", of: peripheral)
        try stage.notify("notify", [[1]])
        expect("a value") { $0.values.count == 1 }
        try stage.setValue([50], of: "notify")
        XCTAssertEqual(try read(characteristic), Data([50]))
        try stage.notify("notify", [[2]])
        expect("a second value") { $0.values.count >= 2 }
        XCTAssertEqual(journal.values, [Data([1]), Data([2])])
        end(manager)
    }

    public func aSubscriptionAndWhatIsUnderWayOutliveAReset() throws {
        let (manager, peripheral) = try explored()
        _ = try subscribed(to: "notify", of: peripheral)
        try stage.notify("notify", [[1]])
        expect("a value") { $0.values.count == 1 }
        let states = journal.states.count
        let reads: [Future<Characteristic>] = [
            try characteristic("long", of: peripheral).read(), try characteristic("short", of: peripheral).read(),
        ]
        manager.reset()
        expect("the state after the reset") { $0.states.count > states }
        XCTAssertEqual(
            try reads.map { try outcome(of: $0).dataValue }, [Data(StagePeripheral.longValue), Data([1, 2])])
        try stage.notify("notify", [[2], [3]])
        expect("more values") { $0.values.count >= 3 }
        XCTAssertEqual(journal.values, [Data([1]), Data([2]), Data([3])], "each once, and none that was there before")
        XCTAssertEqual(peripheral.state, .connected)
        end(manager)
    }

    public func aSubscriptionComesBackWithTheLink() throws {
        let (manager, peripheral) = try explored()
        _ = try subscribed(to: "notify", of: peripheral)
        try stage.notify("notify", [[1]])
        expect("a value") { $0.values.count == 1 }
        try stage.drop()
        expect("the end") { $0.connectionEvents == [.connect, .disconnect] }
        peripheral.reconnect()
        expect("the link") { $0.connectionEvents == [.connect, .disconnect, .connect] }
        expect("the mark of the gap") { $0.values.count == 2 }
        try stage.notify("notify", [[2], [3]])
        expect("values of the second link") { $0.values.count == 4 }
        XCTAssertEqual(journal.values, [Data([1]), nil, Data([2]), Data([3])])
        end(manager)
    }

    public func aThousandNotificationsArriveInOrder() throws { try aThousandArrive(over: .signals) }

    public func aThousandNotificationsArriveInOrderThroughASocket() throws { try aThousandArrive(over: .socket) }

    private func aThousandArrive(over transport: NotificationTransport) throws {
        let (manager, peripheral) = try explored()
        _ = try subscribed(to: "notify", of: peripheral, over: transport)
        try stage.count("notify", to: 1000)
        expect("the last one") { $0.values.count == 1000 }
        let numbers = journal.values.map { $0.map { $0.prefix(2).reversed().reduce(0) { 256 * $0 + Int($1) } } }
        XCTAssertEqual(numbers, Array(0..<1000))
        end(manager)
    }
}
