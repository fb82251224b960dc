import GatewayCore
import GatewayRadio
import XCTest

/// What is decided without a radio.
final class RadioValueTests: XCTestCase {
    func testAnIntakeReturnsGroupsInOrder() async {
        let intake = ValueIntake<Int, String>(limit: 10)
        for number in 0..<3 { intake.add(number, key: "a") }
        var group = await intake.next()
        XCTAssertEqual(group?.elements, [0, 1, 2])
        XCTAssertEqual(group?.missing, [:])
        let next = Task { await intake.next() }
        intake.add(3, key: "a")
        group = await next.value
        XCTAssertEqual(group?.elements, [3])
    }

    func testAFullIntakeNamesWhatIsMissing() async {
        let intake = ValueIntake<Int, String>(limit: 2)
        let firsts = (0..<4).map { intake.add($0, key: $0 == 3 ? "b" : "a") }
        XCTAssertEqual(firsts, [false, false, true, false])
        XCTAssertEqual(intake.count, 2)
        var group = await intake.next()
        XCTAssertEqual(group?.elements, [0, 1])
        XCTAssertEqual(group?.missing, ["a": 1, "b": 1])
        intake.add(4, key: "a")
        group = await intake.next()
        XCTAssertEqual(group?.elements, [4])
        XCTAssertEqual(group?.missing, [:])
    }

    func testAnIntakeThatHasEndedReturnsWhatWaits() async {
        let intake = ValueIntake<Int, String>(limit: 2)
        intake.add(1, key: "a")
        intake.finish()
        let last = await intake.next()
        XCTAssertEqual(last?.elements, [1])
        let none = await intake.next()
        XCTAssertNil(none)
    }

    func testACancelledTaskWaitsNoLonger() async {
        let intake = ValueIntake<Int, String>(limit: 2)
        let next = Task { await intake.next() }
        next.cancel()
        let group = await next.value
        XCTAssertNil(group)
    }

    func testADeviceNameIsAnAddressInEitherForm() throws {
        XCTAssertEqual(DeviceName("C0:FF:EE:00:18:0D")?.description, "c0ffee00180d")
        XCTAssertEqual(DeviceName("c0ffee00180d")?.address, "C0:FF:EE:00:18:0D")
        for text in [
            "", "c0ffee00180", "c0ffee00180dd", "C0:FF:EE:00:18:0G", "C:0FF:EE:00:18:0D0", "C0FF:EE:00:18:0D",
            "é0ffee00180d",
        ] {
            XCTAssertNil(DeviceName(text), text)
        }
    }
}
