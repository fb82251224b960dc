import XCTest

@testable import BlueCapReactor

final class FloodDetectorTests: XCTestCase {
    private var detector = FloodDetector()
    private var microseconds: UInt64 = 1_000_000

    /// Plays batches of messages; returns the decision after each.
    private func batches(
        _ number: Int, of messages: Int, each interval: UInt64, isCalled: Bool = false, answered: Int = 0,
        waiting: Int = 0
    ) -> [Bool] {
        (0..<number).map { _ in
            microseconds += interval
            for _ in 0..<messages { detector.received(1) }
            if isCalled { detector.received(1, isCall: true) }
            for _ in 0..<answered { detector.answeredCall() }
            return detector.batchEnded(at: Instant.origin.advanced(by: Double(microseconds) / 1e6), waiting: waiting)
        }
    }

    func testAFloodIsNoticedWhateverTheSizeOfItsBatches() {
        XCTAssertEqual(batches(200, of: 1, each: 20).last, true)
        detector = FloodDetector()
        XCTAssertEqual(batches(20, of: 8, each: 140).last, true)
        XCTAssertEqual(batches(20, of: 12, each: 200).last, true)
    }

    func testARoomFullOfDevicesAndAFastLinkAreNoFlood() {
        XCTAssertFalse(batches(5_000, of: 1, each: 200).contains(true))
        XCTAssertFalse(batches(500, of: 60, each: 7_500).contains(true))
    }

    func testAFloodEndsWithinOneWindowOfItsLastSignal() {
        XCTAssertEqual(batches(200, of: 1, each: 20).last, true)
        XCTAssertEqual(batches(2, of: 1, each: 7_000).last, false)
        XCTAssertFalse(batches(100, of: 1, each: 1_000).contains(true))
    }

    func testACallOfAPeerEndsAFlood() {
        XCTAssertEqual(batches(200, of: 1, each: 20).last, true)
        XCTAssertEqual(batches(1, of: 1, each: 20, isCalled: true), [false])
        XCTAssertFalse(batches(1_000, of: 3, each: 20, isCalled: true).contains(true))
    }

    func testNobodyWaitsLongerForAReply() {
        XCTAssertFalse(batches(1_000, of: 1, each: 20, waiting: 1).contains(true))
        XCTAssertFalse(batches(1_000, of: 8, each: 20, waiting: 16).contains(true))
        XCTAssertEqual(batches(100, of: 8, each: 20, waiting: 64).last, true)
        XCTAssertEqual(batches(1, of: 1, each: 20, waiting: 1), [false])
    }

    func testThereIsNoRestWhenTheProgramIsAboutToMakeTheNextCall() {
        XCTAssertFalse(batches(1_000, of: 1, each: 20, answered: 1).contains(true))
        XCTAssertEqual(batches(1, of: 1, each: 20), [true], "the answer belongs to the batch before")
        XCTAssertEqual(batches(100, of: 8, each: 20, answered: 8, waiting: 56).last, true)
    }
}
