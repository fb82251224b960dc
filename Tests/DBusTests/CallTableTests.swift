import BlueCapReactor
import XCTest

@testable import BlueCapDBus

final class CallTableTests: XCTestCase {
    private var table = CallTable<String, String>(limit: 10)
    private var serial: UInt32 = 0

    private func at(_ seconds: Double) -> Instant { Instant.origin.advanced(by: seconds) }

    /// Sends what may be sent, with serials from 1 on in the order of sending.
    private func sendAll() -> [String] {
        var sent: [String] = []
        while let (number, request) = table.next() {
            serial += 1
            table.sent(number, serial: serial)
            sent.append(request)
        }
        return sent
    }

    func testAnAnswerFindsItsCallOnce() {
        table.add("a?", completion: "a", deadline: at(1))
        table.add("b?", completion: "b", deadline: at(1))
        XCTAssertEqual(sendAll(), ["a?", "b?"])

        XCTAssertEqual(table.answered(serial: 2), "b")
        XCTAssertNil(table.answered(serial: 2))
        XCTAssertNil(table.answered(serial: 99))
        XCTAssertEqual(table.answered(serial: 1), "a")
        XCTAssertEqual(table.count, 0)
        XCTAssertNil(table.nextDeadline)
    }

    func testAnswersInAnyOrderFindTheirCalls() {
        table = CallTable(limit: 100)
        // The serials of a connection begin again after the largest number.
        serial = .max - 50
        for number in 0..<100 { table.add("\(number)", completion: "\(number)", deadline: at(1)) }
        while let (number, _) = table.next() {
            serial = serial == .max ? 1 : serial + 1
            table.sent(number, serial: serial)
        }
        XCTAssertEqual(table.inFlight, 100)
        for serial in UInt32(1)...50 { XCTAssertEqual(table.answered(serial: serial), "\(serial + 49)") }
        for number in (0..<50).reversed() {
            let serial = UInt32.max - 49 + UInt32(number)
            XCTAssertEqual(table.answered(serial: serial), "\(number)")
            XCTAssertNil(table.answered(serial: serial))
        }
        XCTAssertEqual(table.inFlight, 0)
        XCTAssertEqual(table.count, 0)
    }

    func testTheLateAnswerOfACallThatTimedOutFindsNothing() {
        table.add("slow?", completion: "slow", deadline: at(1))
        _ = sendAll()

        XCTAssertEqual(table.expire(at: at(0.9)), [])
        XCTAssertEqual(table.expire(at: at(1)), ["slow"])
        table.add("next?", completion: "next", deadline: at(3))
        _ = sendAll()
        XCTAssertNil(table.answered(serial: 1))
        XCTAssertEqual(table.answered(serial: 2), "next")
    }

    func testNoMoreThanTheLimitAreInFlightAndTheRestKeepTheirOrder() {
        table = CallTable(limit: 2)
        for name in ["a", "b", "c", "d"] { table.add(name, completion: name, deadline: at(1)) }
        XCTAssertEqual(sendAll(), ["a", "b"])
        XCTAssertEqual(table.inFlight, 2)

        XCTAssertEqual(table.answered(serial: 2), "b")
        XCTAssertEqual(sendAll(), ["c"])
        XCTAssertEqual(table.answered(serial: 1), "a")
        XCTAssertEqual(sendAll(), ["d"])
        XCTAssertEqual(table.count, 2)
    }

    func testACallThatTimesOutWhileItWaitsIsNeverSent() {
        table = CallTable(limit: 1)
        table.add("first", completion: "first", deadline: at(9))
        table.add("impatient", completion: "impatient", deadline: at(1))
        table.add("patient", completion: "patient", deadline: at(9))
        _ = sendAll()

        XCTAssertEqual(table.expire(at: at(2)), ["impatient"])
        XCTAssertEqual(table.answered(serial: 1), "first")
        XCTAssertEqual(sendAll(), ["patient"])
    }

    func testTheOneThatTimesOutMakesRoomForTheNext() {
        table = CallTable(limit: 1)
        table.add("a", completion: "a", deadline: at(1))
        table.add("b", completion: "b", deadline: at(5))
        XCTAssertEqual(sendAll(), ["a"])
        XCTAssertEqual(table.expire(at: at(1)), ["a"])
        XCTAssertEqual(sendAll(), ["b"])
    }

    func testACallThatCannotBeSentIsOver() throws {
        table = CallTable(limit: 1)
        table.add("a", completion: "a", deadline: at(1))
        let (number, _) = try XCTUnwrap(table.next())
        XCTAssertEqual(table.refused(number), "a")
        XCTAssertEqual(table.inFlight, 0)
        XCTAssertEqual(table.expire(at: at(9)), [])
    }

    func testAllThatIsLeftComesOutInTheOrderOfTheCalls() {
        table = CallTable(limit: 1)
        for name in ["a", "b", "c"] { table.add(name, completion: name, deadline: at(1)) }
        _ = sendAll()
        XCTAssertEqual(table.removeAll(), ["a", "b", "c"])
        XCTAssertEqual(table.count, 0)
        XCTAssertNil(table.next())
        XCTAssertNil(table.answered(serial: 1))
    }

    func testAHundredThousandAnsweredCallsLeaveNothingBehind() {
        table = CallTable(limit: 100)
        for serial in UInt32(1)...100_000 {
            table.add("", completion: "", deadline: at(25 + Double(serial)))
            if let (number, _) = table.next() { table.sent(number, serial: serial) }
            XCTAssertNotNil(table.answered(serial: serial))
        }
        XCTAssertEqual(table.count, 0)
        XCTAssertNil(table.nextDeadline)
    }
}
