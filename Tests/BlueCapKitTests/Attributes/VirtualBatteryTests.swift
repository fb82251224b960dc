import BlueCapBlueZ
import BlueCapGATT
import XCTest

@testable import BlueCapKit

/// C4: a battery service that BlueZ does not export has a service in the list nevertheless.
final class VirtualBatteryTests: XCTestCase {
    private var state = AttributeState()
    private let named = [CBUUID(0x180D), CBUUID.battery]
    private let heartRate = [
        AttributeDeclaration(
            handle: AttributeHandle(0x10), kind: .service, uuid: CBUUID(0x180D), isPrimary: true),
        AttributeDeclaration(
            handle: AttributeHandle(0x11), kind: .characteristic, uuid: CBUUID(0x2A38),
            parent: AttributeHandle(0x10), properties: .read),
    ]

    override func setUp() {
        _ = state.linkUp(isResolved: true)
        _ = state.fencePassed(link: 1)
    }

    private func id() throws -> AttributeID { try XCTUnwrap(state.table.id(at: .batteryLevel)) }

    func testItsLevelIsReadWithoutACall() throws {
        _ = state.tableRead(heartRate + AttributeDeclaration.virtualBattery, naming: named, link: 1)
        XCTAssertTrue(state.isReady)
        XCTAssertEqual(state.batteryChanged(85), [])
        let operation = OperationID(rawValue: 1)
        XCTAssertEqual(
            state.submit(.read(offset: 0), on: try id(), operation, timeout: .infinity),
            [.settle(operation, .value(Data([85])))])
        XCTAssertEqual(state.table[try id()]?.value, Data([85]))
    }

    func testItCannotBeWritten() throws {
        _ = state.tableRead(heartRate + AttributeDeclaration.virtualBattery, naming: named, link: 1)
        let operation = OperationID(rawValue: 1)
        XCTAssertEqual(
            state.submit(.write(Data([1]), .withResponse, offset: 0), on: try id(), operation, timeout: .infinity),
            [.settle(operation, .failed(.characteristic(.writeNotSupported)))])
    }

    func testALevelThatComesLateHasTheTableReadAgain() {
        _ = state.tableRead(heartRate, naming: [CBUUID(0x180D)], link: 1)
        XCTAssertTrue(state.isReady)
        XCTAssertEqual(
            state.batteryChanged(85), [.startTimer(.discovery(.quiet), 0.25), .startTimer(.discovery(.limit), 5)])
    }

    func testAPeripheralThatShowsItsOwnBatteryNeedsNone() {
        let own = [
            AttributeDeclaration(
                handle: AttributeHandle(0x20), kind: .service, uuid: .battery, isPrimary: true),
            AttributeDeclaration(
                handle: AttributeHandle(0x21), kind: .characteristic, uuid: CBUUID(0x2A19),
                parent: AttributeHandle(0x20), properties: .read),
        ]
        _ = state.tableRead(heartRate + own, naming: named, link: 1)
        XCTAssertEqual(state.batteryChanged(85), [])
    }

    func testItGoesWithTheLevel() throws {
        _ = state.tableRead(heartRate + AttributeDeclaration.virtualBattery, naming: named, link: 1)
        let level = try id()
        XCTAssertNotEqual(state.batteryChanged(nil), [])
        XCTAssertEqual(state.table[level]?.isPresent, false)
    }

    func testItsLevelCanBeSubscribedTo() throws {
        _ = state.tableRead(heartRate + AttributeDeclaration.virtualBattery, naming: named, link: 1)
        let level = try id()
        let device = try XCTUnwrap(
            ObjectKey(adapter: 0).flatMap { ObjectKey(device: BluetoothAddress(rawValue: 1), on: $0) })
        let key = try XCTUnwrap(state.key(of: level, on: device))
        XCTAssertTrue(key.isVirtual)
        var subscriptions = Subscriptions()
        let call = SubscriptionMachine.Call(rawValue: 1)
        var orders = Orders()
        orders.subject.device = device
        subscriptions.event(level, .startAsked(OperationID(rawValue: 1), .signals), state, into: &orders)
        let asked = orders.count
        XCTAssertEqual(orders.pending.map(\.action), [.subscribe(call, .signals)])
        subscriptions.send(level, .began(call), into: &orders)
        XCTAssertEqual(
            orders.pending[asked...].map(\.action),
            [.subscribed(afterGap: false), .settle(OperationID(rawValue: 1), .done)])
        XCTAssertTrue(
            orders.pending.allSatisfy { $0.subject.characteristic == level && $0.subject.attribute == key })
    }
}
