import BlueCapKit
import Foundation
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
            let values = (UInt8(0)..<100).map { [$0] }
            for value in values { try characteristic.update(withData: Data(value)) }
            for central in [central, other] { XCTAssertEqual(try central.values(of: uuid, count: 100), values, uuid) }
        }
        // What comes twice comes late, so it is waited for: a value that is the last one of both.
        try oven.overSocket.update(withData: Data([200]))
        for central in [central, other] {
            XCTAssertEqual(try central.values(of: Oven.uuid(0x21), count: 101).suffix(2), [[99], [200]])
        }
        try other.disconnect()
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
