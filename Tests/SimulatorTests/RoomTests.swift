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

    func testTheExampleHasWhatTheExamplesOfBlueCapForIOSLookFor() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let room = try Room.contents(ofFile: root.appendingPathComponent("Examples/Rooms/bluecap.json").path)
        func peripheral(_ uuid: String) -> VirtualPeripheral? {
            room.peripherals.first { $0.advertisement.serviceUUIDs.contains(uuid) }
        }
        let accelerometer = "f000aa10-0451-4000-b000-000000000000"
        let tag = try XCTUnwrap(peripheral(accelerometer))
        let service = try XCTUnwrap(tag.services.first { $0.uuid == accelerometer })
        XCTAssertEqual(
            service.characteristics.map { $0.uuid.prefix(8) }, ["f000aa11", "f000aa12", "f000aa13"])
        XCTAssertEqual(service.characteristics[0].flags, [.read, .notify])
        // The region of the example of ranging: 500E475A-ECEA-4837-83E3-6153A5029769.
        let region: [UInt8] = [
            0x50, 0x0E, 0x47, 0x5A, 0xEC, 0xEA, 0x48, 0x37, 0x83, 0xE3, 0x61, 0x53, 0xA5, 0x02, 0x97, 0x69,
        ]
        XCTAssertTrue(
            room.peripherals.contains { $0.advertisement.manufacturerData[0x4C].map { Array($0[2..<18]) } == region })
        XCTAssertNotNil(peripheral("180d"))
        XCTAssertNotNil(peripheral("180f"))
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
