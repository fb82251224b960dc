import BlueCapKit
import XCTest

/// Updates, subscribers, and what is registered again with the next daemon.
extension PeripheralBodies {
    public func aThousandUpdatesArriveInOrderOverASocket() throws {
        try aThousandArrive(at: Oven.uuid(0x21)) { $0.overSocket }
    }

    public func aThousandUpdatesArriveInOrderOverTheBus() throws {
        try aThousandArrive(at: "00002a37-0000-1000-8000-00805f9b34fb") { $0.overBus }
    }

    private func aThousandArrive(at uuid: String, _ characteristic: (Oven) -> MutableCharacteristic) throws {
        let oven = try visited()
        let characteristic = characteristic(oven)
        try central.subscribe(to: uuid)
        let values = (0..<1000).map { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
        for value in values { try characteristic.update(withData: Data(value)) }
        XCTAssertEqual(try central.values(of: uuid, count: 1000), values)
        try outcome(of: characteristic.whenUpdatesSent())
        XCTAssertEqual(characteristic.pendingUpdates, [])
        try central.disconnect()
    }

    public func indicationsArriveInOrder() throws {
        let oven = try visited()
        try central.subscribe(to: Oven.uuid(0x23))
        let values = (UInt8(0)..<20).map { [$0 / 2] }
        for value in values { try oven.indicated.update(withData: Data(value)) }
        XCTAssertEqual(try central.values(of: Oven.uuid(0x23), count: 20), values, "equal ones, too")
        try outcome(of: oven.indicated.whenUpdatesSent())
        try central.disconnect()
    }

    /// Also where a socket is open: `bluetoothd` takes an empty packet for its end.
    public func anUpdateOfNoBytesIsOneOfThem() throws {
        let oven = try visited()
        try central.subscribe(to: Oven.uuid(0x21))
        let values: [[UInt8]] = [[1], [], [2], [], [], [3]]
        for value in values { try oven.overSocket.update(withData: Data(value)) }
        XCTAssertEqual(try central.values(of: Oven.uuid(0x21), count: values.count), values)
        try central.disconnect()
    }

    public func updatesWaitForASubscriber() throws {
        let oven = try visited()
        for number in UInt8(1)...3 { try oven.overSocket.update(withData: Data([number])) }
        XCTAssertEqual(oven.overSocket.pendingUpdates.count, 3)
        XCTAssertEqual(try central.read(Oven.uuid(0x21)), .value([3]), "the newest is the value")
        try central.subscribe(to: Oven.uuid(0x21))
        XCTAssertEqual(try central.values(of: Oven.uuid(0x21), count: 3), [[1], [2], [3]])
        try central.disconnect()
    }

    public func subscribersComeAndGo() throws {
        let oven = try visited()
        watchSubscribers(of: oven.overSocket)
        try central.subscribe(to: Oven.uuid(0x21))
        expect("a subscriber") { $0.subscribers == [1] }
        XCTAssertTrue(oven.overSocket.isUpdating)
        try central.unsubscribe(from: Oven.uuid(0x21))
        expect("no subscriber") { $0.subscribers == [1, 0] }
        try central.subscribe(to: Oven.uuid(0x21))
        expect("a subscriber") { $0.subscribers == [1, 0, 1] }
        try central.disconnect()
        expect("no subscriber") { $0.subscribers == [1, 0, 1, 0] }
        XCTAssertFalse(oven.overSocket.isUpdating)
    }

    func watchSubscribers(of characteristic: MutableCharacteristic) {
        let journal = journal
        characteristic.whenSubscribersChange().onSuccess(context: ImmediateContext()) { subscribers in
            journal.write { entries in
                // The stream begins with the present state.
                guard !(entries.subscribersByName.isEmpty && subscribers.isEmpty) else { return }
                entries.subscribersByName.append(subscribers.map { "\($0) \($0.identifier)" })
            }
        }
    }

    public func aServiceThatComesAndGoesLeavesTheOthersAlone() throws {
        let oven = try visited()
        try central.subscribe(to: Oven.uuid(0x21))
        try oven.overSocket.update(withData: Data([1]))
        XCTAssertEqual(try central.values(of: Oven.uuid(0x21), count: 1), [[1]])
        let light = MutableService(uuid: Oven.uuid(3))
        light.characteristics = [
            MutableCharacteristic(uuid: Oven.uuid(0x31), properties: .read, permissions: .readable, value: Data([5]))
        ]
        try outcome(of: oven.manager.add(light))
        try oven.overSocket.update(withData: Data([2]))
        XCTAssertEqual(try central.values(of: Oven.uuid(0x21), count: 2), [[1], [2]])
        oven.manager.remove(light)
        try oven.overSocket.update(withData: Data([3]))
        XCTAssertEqual(try central.values(of: Oven.uuid(0x21), count: 3), [[1], [2], [3]])
        try central.disconnect()
    }

    public func allComesBackAfterTheDaemonsDeath() throws {
        let oven = try visited()
        watchSubscribers(of: oven.overSocket)
        try central.subscribe(to: Oven.uuid(0x21))
        expect("a subscriber") { $0.subscribers == [1] }
        try stage.killDaemon()
        expect("the news that there is none") { $0.subscribers == [1, 0] && $0.states.last == .resetting }
        for number in UInt8(1)...3 { try oven.overSocket.update(withData: Data([number])) }
        try central.awaitLoss()
        try stage.startDaemon()
        expect("power") { $0.states == [.poweredOn, .resetting, .poweredOn] }
        // The oven has been given no order: the manager has registered everything again.
        try visit()
        XCTAssertEqual(try table(), Oven.table)
        XCTAssertEqual(try central.read(Oven.uuid(0x11)), .value([1, 2]))
        try central.subscribe(to: Oven.uuid(0x21))
        XCTAssertEqual(try central.values(of: Oven.uuid(0x21), count: 3), [[1], [2], [3]])
        expect("a subscriber again") { $0.subscribers == [1, 0, 1] }
        try central.disconnect()
    }
}
