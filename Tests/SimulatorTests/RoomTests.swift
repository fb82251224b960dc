import XCTest

@testable import BlueZSimulator

final class RoomTests: XCTestCase {
    func testABuiltInRoomGoesToJSONAndBackUnchanged() throws {
        for room in [Room.furnished, .crowd(50), .empty] {
            let data = try JSONEncoder().encode(room)
            XCTAssertEqual(try Room.decoded(from: data), room)
        }
    }

    func testOnlyTheAddressMustBeThere() throws {
        let json = #"{"peripherals": [{"address": "c0:ff:ee:00:00:01"}]}"#
        let room = try Room.decoded(from: Data(json.utf8))
        XCTAssertEqual(room.peripherals, [VirtualPeripheral("C0:FF:EE:00:00:01")])
    }

    func testEveryKeyOfTheFormatIsRead() throws {
        let json = """
            {"name": "desk", "peripherals": [{
                "address": "C0:FF:EE:00:00:01", "addressType": "random", "name": "Mine", "interval": 0.1,
                "rssi": {"walk": {"around": -60, "spread": 5, "seed": 3}},
                "appearsAfter": 1, "disappearsAfter": 9, "isRemembered": false,
                "advertisement": {
                    "localName": "Tag", "serviceUUIDs": ["180D"], "manufacturerData": {"0x004C": "02 15", "6": "ff"},
                    "serviceData": {"feaa": "10eb"}, "txPower": -4, "flags": 0, "appearance": 833, "connectable": false
                }}]}
            """
        let peripheral = try XCTUnwrap(Room.decoded(from: Data(json.utf8)).peripherals.first)
        XCTAssertEqual(
            peripheral,
            VirtualPeripheral(
                "C0:FF:EE:00:00:01", addressType: .random, name: "Mine",
                rssi: .walk(around: -60, spread: 5, seed: 3),
                advertisement: Advertisement(
                    localName: "Tag", serviceUUIDs: ["180D"], manufacturerData: [0x4C: [2, 0x15], 6: [0xFF]],
                    serviceData: ["feaa": [0x10, 0xEB]], txPower: -4, flags: 0, appearance: 833, isConnectable: false),
                interval: 0.1, appearsAfter: 1, disappearsAfter: 9))
    }

    func testWhatIsWrongInAFileIsSaidWithItsPlace() {
        let wrong = [
            (#"{"peripherals": [{"address": "nowhere"}]}"#, "peripherals[0].address"),
            (#"{"peripherals": [{"address": "C0:FF:EE:00:00:01", "rsi": -3}]}"#, "peripherals[0].rsi: unknown key"),
            (#"{"peripherals": [{}]}"#, "peripherals[0] lacks \"address\""),
            (
                #"{"peripherals": [{"address": "C0:FF:EE:00:00:01", "advertisement": {"serviceUUIDs": ["heart"]}}]}"#,
                "\"heart\" is no UUID"
            ),
            (
                #"{"peripherals": [{"address": "C0:FF:EE:00:00:01"}, {"address": "C0:FF:EE:00:00:01"}]}"#,
                "C0:FF:EE:00:00:01 is there twice"
            ),
        ]
        for (json, words) in wrong {
            XCTAssertThrowsError(try Room.decoded(from: Data(json.utf8))) { error in
                XCTAssertTrue("\(error)".contains(words), "\(error)")
            }
        }
    }

    func testRoomsAreFoundByName() throws {
        XCTAssertGreaterThanOrEqual(try Room.named("room").peripherals.count, 8)
        XCTAssertEqual(try Room.named("empty").peripherals, [])
        XCTAssertEqual(try Room.named("crowd:1000").peripherals.count, 1000)
        XCTAssertThrowsError(try Room.named("crowd:many"))
        XCTAssertThrowsError(try Room.named("/no/such/file.json")) { error in
            XCTAssertTrue("\(error)".contains("crowd:N"), "\(error)")
        }
    }

    func testACrowdHasNoAddressTwice() {
        let addresses = Room.crowd(10_000).peripherals.map(\.address)
        XCTAssertEqual(Set(addresses).count, 10_000)
    }

    func testAStepCourseHoldsEachStrengthUntilTheNext() {
        let course = RSSICourse.steps([.init(after: 2, rssi: -50), .init(after: 5, rssi: -40)])
        XCTAssertEqual([0, 2, 4.9, 5, 100].map(course.rssi(at:)), [-50, -50, -50, -40, -40])
    }

    func testAWalkIsTheSameOnEveryRunAndKeepsItsBounds() {
        let course = RSSICourse.walk(around: -60, spread: 6, seed: 4)
        let values = stride(from: 0, to: 200, by: 0.5).map(course.rssi(at:))
        XCTAssertEqual(values, stride(from: 0, to: 200, by: 0.5).map(course.rssi(at:)))
        XCTAssertTrue(values.allSatisfy { (-66 ... -54).contains($0) })
        XCTAssertGreaterThan(Set(values).count, 4, "it does walk")
    }

    func testAPeripheralSpeaksOnItsGridWhileItIsThere() throws {
        let peripheral = VirtualPeripheral("C0:00:00:00:00:01", interval: 1, appearsAfter: 10, disappearsAfter: 12)
        let first = try XCTUnwrap(peripheral.advertises(atOrAfter: 0))
        XCTAssertTrue((10..<11).contains(first))
        XCTAssertEqual(peripheral.advertises(atOrAfter: first), first)
        let second = try XCTUnwrap(peripheral.advertises(atOrAfter: first + 0.001))
        XCTAssertEqual(second, first + 1, accuracy: 1e-9)
        XCTAssertNil(peripheral.advertises(atOrAfter: 12))
    }
}
