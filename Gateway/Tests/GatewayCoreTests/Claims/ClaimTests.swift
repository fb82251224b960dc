import Foundation
import GatewayCore
import GatewayTestSupport
import XCTest

final class ClaimTests: XCTestCase {
    func testAClaimIsTheSameAfterItsPayload() throws {
        let claim = Claim(
            .yields, strength: -63.2, bid: -61.5, freeLinks: 2, successor: "attic", session: 38_211, number: 17)
        XCTAssertEqual(try Claim.decode(claim.payload), claim)
        XCTAssertEqual(
            String(decoding: claim.payload, as: UTF8.self),
            #"{"bid":-61.5,"freeLinks":2,"number":17,"session":38211,"state":"yields","strength":-63,"#
                + #""successor":"attic","version":1}"#)
        for state in Claim.State.allCases {
            let claim = Claim(state, strength: nil, bid: -127, session: .max, number: .max)
            XCTAssertEqual(try Claim.decode(claim.payload), claim)
        }
    }

    func testAnEmptyPayloadRemovesTheClaim() throws {
        XCTAssertNil(try Claim.decode(Data()))
    }

    func testWhatIsNotAClaimIsRefused() {
        let start = #"{"version":1,"state":"holds","bid":-60,"session":1,"number":1"#
        let table: [(line: UInt, payload: String, error: ClaimError)] = [
            (#line, "x", .malformed), (#line, "[]", .malformed), (#line, "{}", .malformed),
            (#line, "\u{0}", .malformed),
            (#line, #"{"version":1}"#, .malformed), (#line, #"{"version":0}"#, .malformed),
            (#line, #"{"version":1,"state":"eats","bid":-60,"session":1,"number":1}"#, .malformed),
            (#line, start.replacingOccurrences(of: "-60", with: #""loud""#) + "}", .malformed),
            (#line, start + #","strength":21}"#, .outOfRange),
            (#line, start + #","strength":-1e300}"#, .outOfRange), (#line, start + #","freeLinks":-1}"#, .outOfRange),
            (#line, #"{"version":1,"state":"holds","bid":-60,"session":-1,"number":1}"#, .malformed),
            (#line, start + #","freeLinks":2000}"#, .outOfRange),
            (#line, start + ",\"successor\":\"" + String(repeating: "a", count: 300) + "\"}", .outOfRange),
            (#line, String(repeating: " ", count: 1_025), .tooLong(1_025)),
        ]
        for row in table {
            XCTAssertThrowsError(try Claim.decode(Data(row.payload.utf8)), line: row.line) {
                XCTAssertEqual($0 as? ClaimError, row.error, line: row.line)
            }
        }
        XCTAssertTrue(ClaimError.tooLong(1_025).description.contains("at most 1024"))
    }

    /// A gateway of a later version is left its device.
    func testALaterVersionHoldsItsDevice() throws {
        let claim = try Claim.decode(Data(#"{"version":2,"state":{"phase":"auction"}}"#.utf8))
        XCTAssertEqual(claim?.state, .holds)
        XCTAssertNil(claim?.strength)
    }

    func testRandomBytesNeverTrap() {
        var numbers = SeededNumbers(SeededNumbers.seed)
        let valid = Array(Claim(.takes, strength: -60, bid: -60, session: 3, number: 4).payload)
        for _ in 0..<3_000 {
            var bytes = valid
            for _ in 0..<Int.random(in: 1...6, using: &numbers) {
                bytes[Int.random(in: 0..<bytes.count, using: &numbers)] = .random(in: 0...255, using: &numbers)
            }
            _ = try? Claim.decode(Data(bytes))
        }
    }
}
