import XCTest

@testable import BlueZSimulator

final class RadioTests: XCTestCase {
    func testNothingIsSentWhileNoAdapterScans() {
        var radio = Radio()
        radio.add(VirtualPeripheral("C0:00:00:00:00:01"), behavior: nil, now: 0)
        XCTAssertNil(radio.nextUtterance)
        radio.beginListening(now: 5)
        XCTAssertNotNil(radio.nextUtterance)
        radio.endListening()
        XCTAssertEqual(radio.utterances(upTo: 100).count, 0)
    }

    func testEveryIntervalBringsOneAdvertisementOfEach() {
        var radio = Radio()
        radio.add(VirtualPeripheral("C0:00:00:00:00:01", interval: 0.5), behavior: nil, now: 0)
        radio.add(VirtualPeripheral("C0:00:00:00:00:02", interval: 0.25), behavior: nil, now: 0)
        radio.beginListening(now: 0)
        let received = radio.utterances(upTo: 9.9999, limit: .max)
        XCTAssertEqual(received.map(\.seconds), received.map(\.seconds).sorted())
        XCTAssertEqual(received.filter { $0.resident.peripheral.interval == 0.5 }.count, 20)
        XCTAssertEqual(received.filter { $0.resident.peripheral.interval == 0.25 }.count, 40)
    }

    func testALoopThatFellBehindGetsTheRestLater() {
        var radio = Radio()
        radio.add(VirtualPeripheral("C0:00:00:00:00:01", interval: 0.02), behavior: nil, now: 0)
        radio.beginListening(now: 0)
        XCTAssertEqual(radio.utterances(upTo: 100, limit: 10).count, 10)
        XCTAssertEqual(radio.utterances(upTo: 100, limit: 10).count, 10)
    }

    func testABehaviourDecidesWhatIsSentAndWhetherItIsReceived() {
        final class Blinker: PeripheralBehavior {
            func rssi(of peripheral: VirtualPeripheral, at seconds: Double) -> Int? { seconds < 5 ? -40 : nil }
            func advertisement(of peripheral: VirtualPeripheral, at seconds: Double) -> Advertisement {
                Advertisement(localName: "Blink")
            }
        }
        var radio = Radio()
        radio.add(VirtualPeripheral("C0:00:00:00:00:01"), behavior: Blinker(), now: 0)
        XCTAssertEqual(radio.sender("C0:00:00:00:00:01")?.sighting(at: 1)?.report.name, "Blink")
        XCTAssertNil(radio.sender("C0:00:00:00:00:01")?.sighting(at: 6))
    }
}

final class DeadlineQueueTests: XCTestCase {
    func testTheEarliestComesFirstAndEqualsInTheirOrder() {
        var queue = DeadlineQueue<String>()
        queue.set("c", to: 2)
        queue.set("a", to: 1)
        queue.set("b", to: 1)
        XCTAssertNil(queue.popDue(at: 0.5))
        XCTAssertEqual((0..<3).compactMap { _ in queue.popDue(at: 5)?.key }, ["a", "b", "c"])
        XCTAssertTrue(queue.isEmpty)
    }

    func testADeadlineMovesLaterAndEarlier() {
        var queue = DeadlineQueue<String>()
        queue.set("a", to: 1)
        queue.set("a", to: 10)
        XCTAssertNil(queue.popDue(at: 5))
        XCTAssertEqual(queue.next, 10)
        queue.set("a", to: 3)
        XCTAssertEqual(queue.popDue(at: 5)?.deadline, 3)
        XCTAssertNil(queue.popDue(at: 50), "it comes once")
    }

    func testWhatIsRemovedDoesNotCome() {
        var queue = DeadlineQueue<Int>()
        for key in 0..<100 { queue.set(key, to: Double(key % 10)) }
        for key in 0..<100 where key % 2 == 0 { queue.remove(key) }
        var came: [Int] = []
        while let due = queue.popDue(at: 100) { came.append(due.key) }
        XCTAssertEqual(came.sorted(), (0..<100).filter { $0 % 2 == 1 })
    }
}
