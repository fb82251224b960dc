import BlueCapKit
import XCTest

/// Two subscribers of one characteristic.
extension PeripheralBodies {
    /// Served, and with two centrals that have discovered it.
    private func visited(with other: any StageCentral) throws -> Oven {
        let oven = try visited()
        // With btvirt, the link of the first central ends the advertisement.
        oven.manager.stopAdvertising()
        try outcome(of: oven.manager.startAdvertising(Oven.name, uuids: [CBUUID(string: Oven.heat)]))
        try other.connect(to: Oven.name, advertising: Oven.heat)
        return oven
    }

    public func twoSubscribersReceiveEachValueOnceInOrder(with other: any StageCentral) throws {
        let oven = try visited(with: other)
        for (characteristic, uuid) in [
            (oven.overSocket, Oven.uuid(0x21)), (oven.overBus, "00002a37-0000-1000-8000-00805f9b34fb"),
        ] {
            for central in [central, other] { try central.subscribe(to: uuid) }
            var values = (UInt8(0)..<100).map { [$0] }
            for value in values { try characteristic.update(withData: Data(value)) }
            for central in [central, other] { XCTAssertEqual(try central.values(of: uuid, count: 100), values, uuid) }
            // A value that is sent twice may be late, but arrives before the next value.
            values.append([200])
            try characteristic.update(withData: Data([200]))
            for central in [central, other] { XCTAssertEqual(try central.values(of: uuid, count: 101), values, uuid) }
        }
        try other.disconnect()
        try central.disconnect()
    }

    /// Needs BlueZ 5.76 or later.
    public func updatesForOneCentralKeepTheirPlace(with other: any StageCentral) throws {
        let oven = try visited(with: other)
        let characteristic = oven.overSocket
        XCTAssertTrue(oven.manager.capabilities.directedUpdates)
        watchSubscribers(of: characteristic)
        // One after the other: the first subscriber is the first central.
        try central.subscribe(to: Oven.uuid(0x21))
        expect("a subscriber") { $0.subscribers.last == 1 }
        let first = try XCTUnwrap(characteristic.subscribers.first)
        try other.subscribe(to: Oven.uuid(0x21))
        expect("two subscribers") { $0.subscribers.last == 2 }
        let second = try XCTUnwrap(characteristic.subscribers.first { $0.identifier != first.identifier })
        var expected: (first: [[UInt8]], second: [[UInt8]]) = ([], [])
        for number in UInt8(0)..<200 {
            let value = [number]
            // Runs of each kind, and each change between two of them.
            switch number % 12 {
            case 0, 1, 4, 7:
                try characteristic.update(withData: Data(value))
                expected.first.append(value)
                expected.second.append(value)
            case 2, 5, 6, 9:
                try characteristic.update(withData: Data(value), for: first)
                expected.first.append(value)
            default:
                try characteristic.update(withData: Data(value), for: second)
                expected.second.append(value)
            }
        }
        // The last one is for both, so that a value that comes twice, or to the wrong central, comes before it.
        try characteristic.update(withData: Data([200]))
        expected.first.append([200])
        expected.second.append([200])
        for (central, values) in [(central, expected.first), (other, expected.second)] {
            XCTAssertEqual(try central.values(of: Oven.uuid(0x21), count: values.count), values)
        }
        try outcome(of: characteristic.whenUpdatesSent())
        XCTAssertEqual(characteristic.droppedUpdates, 0)
        XCTAssertEqual(characteristic.value, Data([200]))
        try other.disconnect()
        try central.disconnect()
    }

    /// Up to BlueZ 5.75.
    public func updatesForOneCentralAreRefused() throws {
        let oven = try visited()
        XCTAssertFalse(oven.manager.capabilities.directedUpdates)
        watchSubscribers(of: oven.overSocket)
        try central.subscribe(to: Oven.uuid(0x21))
        expect("a subscriber") { $0.subscribers.last == 1 }
        let subscriber = try XCTUnwrap(oven.overSocket.subscribers.first)
        XCTAssertThrowsError(try oven.overSocket.update(withData: Data([1]), for: subscriber)) { error in
            guard case MutableCharacteristicError.directedUpdateRefused(.notSupported) = error else {
                return XCTFail("\(error)")
            }
        }
        try oven.overSocket.update(withData: Data([2]))
        XCTAssertEqual(try central.values(of: Oven.uuid(0x21), count: 1), [[2]], "nothing was sent before")
        try central.disconnect()
    }

    public func aSubscriberStaysWhenAnotherOneLeaves(_ other: any StageCentral) throws {
        let oven = try visited(with: other)
        for central in [central, other] { try central.subscribe(to: Oven.uuid(0x21)) }
        try oven.overSocket.update(withData: Data([1]))
        for central in [central, other] { XCTAssertEqual(try central.values(of: Oven.uuid(0x21), count: 1), [[1]]) }
        try other.disconnect()
        try oven.overSocket.update(withData: Data([2]))
        XCTAssertEqual(try central.values(of: Oven.uuid(0x21), count: 2), [[1], [2]])
        try central.disconnect()
    }
}
