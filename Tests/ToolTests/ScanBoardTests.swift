import XCTest

@testable import bluecap

final class ScanBoardTests: XCTestCase {
    private func names(_ board: ScanBoard) -> [String?] { board.rows.map(\.sighting.name) }

    private func board(_ peripherals: [(UInt8, Int?)]) -> ScanBoard {
        var board = ScanBoard()
        for (number, rssi) in peripherals { _ = board.see(sighting(number, rssi), at: 0) }
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
            _ = board.see(sighting(1, rssi), at: Double(time))
            XCTAssertEqual(names(board), ["P1", "P2"], "after \(rssi)")
        }
    }

    func testARowThatHasClearlyMovedChangesItsPlace() {
        var board = board([(1, -60), (2, -66)])
        for time in 0..<12 { _ = board.see(sighting(1, -90), at: Double(time)) }
        XCTAssertEqual(names(board), ["P2", "P1"])
    }

    func testTheGoneSinkToTheEndAndReturn() {
        var board = board([(1, -40), (2, -80)])
        _ = board.expire(sighting(1, -40).identifier)
        XCTAssertEqual(names(board), ["P2", "P1"])
        _ = board.see(sighting(1, -40), at: 31)
        XCTAssertEqual(names(board), ["P1", "P2"])
        XCTAssertEqual(board.count, 2)
    }

    func testTheNewestIsTheOneDiscoveredLast() {
        var board = board([(1, -40), (2, -80)])
        _ = board.see(sighting(1, -41), at: 5)
        XCTAssertEqual(board.newestRow?.sighting.name, "P2")
    }

    func testTheFirstSightingIsADiscoveryAndTheLaterOnesAreUpdates() {
        var board = ScanBoard()
        let strap = Samples.strap
        XCTAssertEqual(board.see(strap, at: 2), .discovered(strap))

        var stronger = strap
        stronger.rssi = -40
        stronger.manufacturerData[0x006B] = Data([1])
        XCTAssertEqual(board.see(stronger, at: 3), .updated(stronger, isNews: false))

        var named = stronger
        named.name = "Pulse"
        XCTAssertEqual(board.see(named, at: 4), .updated(named, isNews: true))
        XCTAssertEqual(board.see(named, at: 5), .updated(named, isNews: false))
    }

    func testAPeripheralThatReturnsFromSilenceIsNewsButNotDiscoveredTwice() {
        var board = ScanBoard()
        let strap = Samples.strap
        _ = board.see(strap, at: 2)
        XCTAssertEqual(board.expire(strap.identifier), .expired(strap))
        XCTAssertNil(board.expire(strap.identifier))
        XCTAssertEqual(board.see(strap, at: 40), .updated(strap, isNews: true))
    }

    func testAPeripheralThatHasExpiredIsForgottenAfterTenMinutes() {
        var (board, endless) = (board([(1, -40), (2, -50)]), board([(1, -40)]))
        endless.memory = .infinity
        for time in [30.0, 599] { _ = board.see(sighting(3, -60), at: time) }
        _ = board.expire(sighting(1, -40).identifier)
        _ = board.see(sighting(4, -70), at: 599)
        XCTAssertEqual(names(board), ["P2", "P3", "P4", "P1"])
        // The second one has not expired: it is connected.
        _ = board.see(sighting(5, -80), at: 700)
        XCTAssertEqual(names(board), ["P2", "P3", "P4", "P5"])
        let again = sighting(1, -40)
        XCTAssertEqual(board.see(again, at: 701), .discovered(again))
        XCTAssertEqual(names(board), ["P1", "P2", "P3", "P4", "P5"])

        _ = endless.expire(again.identifier)
        for time in [700, 1e6] { _ = endless.see(sighting(2, -40), at: time) }
        XCTAssertEqual(endless.see(again, at: 1e6), .updated(again, isNews: true))
    }

    func testRowsOfManyAddressesDoNotAccumulate() {
        var board = ScanBoard()
        for number in 0..<20_000 {
            var sighting = sighting(1, -60)
            sighting.identifier = UUID()
            _ = board.see(sighting, at: Double(number))
            _ = board.expire(sighting.identifier)
        }
        XCTAssertLessThan(board.count, 700)
    }

    func testSilenceOfAnUnknownPeripheralIsIgnored() {
        var board = ScanBoard()
        XCTAssertNil(board.expire(Samples.strap.identifier))
        XCTAssertEqual(board.count, 0)
    }
}
