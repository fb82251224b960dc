import XCTest

@testable import bluecap

final class ScanBoardTests: XCTestCase {
    private func names(_ board: ScanBoard) -> [String?] { board.rows.map(\.sighting.name) }

    private func board(_ peripherals: [(UInt8, Int?)]) -> ScanBoard {
        var board = ScanBoard()
        for (number, rssi) in peripherals { board.apply(.discovered(sighting(number, rssi)), at: 0) }
        return board
    }

    private func sighting(_ number: UInt8, _ rssi: Int?) -> Sighting {
        Samples.sighting(number, name: "P\(number)", rssi: rssi)
    }

    func testTheStrongestComeFirstAndTheUnknownLast() {
        XCTAssertEqual(names(board([(1, -80), (2, nil), (3, -45), (4, -60)])), ["P3", "P4", "P1", "P2"])
    }

    func testRowsThatAreAlikeKeepTheOrderOfTheirDiscovery() {
        XCTAssertEqual(names(board([(1, -61), (2, -60), (3, -59)])), ["P1", "P2", "P3"])
    }

    func testJitterDoesNotMoveARow() {
        var board = board([(1, -60), (2, -66)])
        for (time, rssi) in [-72, -55, -70, -60, -64, -73, -58].enumerated() {
            board.apply(.updated(sighting(1, rssi), isNews: false), at: Double(time))
            XCTAssertEqual(names(board), ["P1", "P2"], "after \(rssi)")
        }
    }

    func testARowThatHasClearlyMovedChangesItsPlace() {
        var board = board([(1, -60), (2, -66)])
        for time in 0..<12 { board.apply(.updated(sighting(1, -90), isNews: false), at: Double(time)) }
        XCTAssertEqual(names(board), ["P2", "P1"])
    }

    func testTheGoneSinkToTheEndAndReturn() {
        var board = board([(1, -40), (2, -80)])
        board.apply(.expired(sighting(1, -40)), at: 30)
        XCTAssertEqual(names(board), ["P2", "P1"])
        board.apply(.updated(sighting(1, -40), isNews: true), at: 31)
        XCTAssertEqual(names(board), ["P1", "P2"])
        XCTAssertEqual(board.count, 2)
    }

    func testTheNewestIsTheOneDiscoveredLast() {
        var board = board([(1, -40), (2, -80)])
        board.apply(.updated(sighting(1, -41), isNews: true), at: 5)
        XCTAssertEqual(board.newestRow?.sighting.name, "P2")
    }
}
