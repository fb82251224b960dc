import XCTest

@testable import BlueCapKit

final class ConnectionStatisticsTests: XCTestCase {
    private let start = Date(timeIntervalSince1970: 1_000)
    private func after(_ seconds: TimeInterval) -> Date { start.addingTimeInterval(seconds) }

    func testNothingHasHappenedAtFirst() {
        let statistics = ConnectionStatistics()
        XCTAssertEqual(statistics.connectedAt, .distantPast)
        XCTAssertEqual(statistics.disconnectedAt, .distantPast)
        XCTAssertEqual(statistics.secondsConnected(at: after(5)), 0)
        XCTAssertEqual(statistics.cumulativeSecondsDisconnected(since: start, at: after(5)), 5)
    }

    func testConnectedAndDisconnectedTimeAddUpToTheTimeSinceDiscovery() {
        var statistics = ConnectionStatistics()
        statistics.connected(at: after(10))
        XCTAssertEqual(statistics.secondsConnected(at: after(12)), 2)
        XCTAssertEqual(statistics.totalSecondsConnected, 0)
        XCTAssertEqual(statistics.cumulativeSecondsConnected(at: after(12)), 2)
        statistics.disconnected(at: after(15))
        XCTAssertEqual(statistics.secondsConnected(at: after(20)), 5)
        XCTAssertEqual(statistics.disconnectedAt, after(15))
        statistics.connected(at: after(20))
        XCTAssertEqual(statistics.connectedAt, after(20))
        XCTAssertEqual(statistics.totalSecondsConnected, 5)
        XCTAssertEqual(statistics.cumulativeSecondsConnected(at: after(23)), 8)
        XCTAssertEqual(statistics.cumulativeSecondsDisconnected(since: start, at: after(23)), 15)
        XCTAssertEqual(statistics.connectionCount, 2)
        XCTAssertEqual(statistics.disconnectionCount, 1)
    }

    func testTheSameNewsTwiceCountsOnce() {
        var statistics = ConnectionStatistics()
        statistics.disconnected(at: after(1))
        statistics.connected(at: after(2))
        statistics.connected(at: after(3))
        statistics.disconnected(at: after(4))
        statistics.disconnected(at: after(5))
        XCTAssertEqual(statistics.connectionCount, 1)
        XCTAssertEqual(statistics.disconnectionCount, 1)
        XCTAssertEqual(statistics.totalSecondsConnected, 2)
    }

    func testAClockThatIsSetBackYieldsNoNegativeTimes() {
        var statistics = ConnectionStatistics()
        statistics.connected(at: after(10))
        XCTAssertEqual(statistics.secondsConnected(at: after(5)), 0)
        statistics.disconnected(at: after(5))
        XCTAssertEqual(statistics.totalSecondsConnected, 0)
        XCTAssertEqual(statistics.cumulativeSecondsDisconnected(since: start, at: after(-5)), 0)
    }
}
