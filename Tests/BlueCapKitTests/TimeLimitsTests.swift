import BlueCapFutures
import BlueCapReactor
import XCTest

@testable import BlueCapKit

final class TimeLimitsTests: XCTestCase {
    private let loop = ManualLoop()
    private let past = Locked<[UInt64]>([])
    private lazy var limits = TimeLimits(loop) { [past] operations in
        past.withLock { $0 += operations.map(\.id.rawValue) }
    }

    private func add(_ id: UInt64, _ seconds: Double) {
        limits.add(OperationID(rawValue: id), of: PeripheralKey(rawValue: 1), seconds: seconds)
    }

    /// The operations that exceed their limits in this time.
    private func exceeded(after seconds: Double) -> [UInt64] {
        loop.advance(by: seconds)
        return past.withLock { past in
            defer { past = [] }
            return past
        }
    }

    func testEachLimitIsReportedAtItsTime() {
        add(1, 30)
        add(2, 40)
        add(3, 10)
        XCTAssertEqual(exceeded(after: 9.9), [])
        XCTAssertEqual(exceeded(after: 0.2), [3])
        XCTAssertEqual(exceeded(after: 19.8), [])
        XCTAssertEqual(exceeded(after: 0.2), [1])
        XCTAssertEqual(exceeded(after: 10), [2])
        XCTAssertEqual(exceeded(after: 100), [])
    }

    func testLimitsOfTheSameTimeAreReportedInTheirOrder() {
        for id in (1...5).reversed() { add(UInt64(id), 1) }
        XCTAssertEqual(exceeded(after: 1), [1, 2, 3, 4, 5])
    }

    func testALimitThatIsRemovedIsNotReported() {
        add(1, 1)
        add(2, 2)
        limits.remove(OperationID(rawValue: 1))
        XCTAssertEqual(exceeded(after: 1.5), [])
        XCTAssertEqual(exceeded(after: 1), [2])
    }

    /// The operation after the one that has exceeded its limit begins in the report.
    func testALimitThatIsAddedInAReportIsNotDelayed() {
        let loop = loop
        let past = past
        let limits = Locked<TimeLimits?>(nil)
        let own = TimeLimits(loop) { operations in
            past.withLock { $0 += operations.map(\.id.rawValue) }
            if operations.contains(where: { $0.id.rawValue == 2 }) {
                limits.withLock { $0 }?.add(OperationID(rawValue: 3), of: PeripheralKey(rawValue: 1), seconds: 1)
            }
        }
        limits.withLock { $0 = own }
        own.add(OperationID(rawValue: 1), of: PeripheralKey(rawValue: 1), seconds: 30)
        own.add(OperationID(rawValue: 2), of: PeripheralKey(rawValue: 1), seconds: 5)
        XCTAssertEqual(exceeded(after: 5), [2])
        XCTAssertEqual(exceeded(after: 1), [3])
        XCTAssertEqual(exceeded(after: 23), [])
        XCTAssertEqual(exceeded(after: 1), [1])
    }
}
