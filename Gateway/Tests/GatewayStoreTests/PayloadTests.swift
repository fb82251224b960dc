import Foundation
import GatewayCore
import XCTest

@testable import GatewayStore

final class PayloadTests: XCTestCase {
    private func stored(_ body: String, dropped: Int64 = 0, isRestarted: Bool = false) throws -> StoredValue {
        StoredValue(
            id: 1, device: try device(1), sequence: 7, topic: "t", milliseconds: 1_764_149_400_005,
            body: Data(body.utf8),
            dropped: dropped, isRestarted: isRestarted)
    }

    func testTheEnvelopePrecedesTheMembersOfTheBody() throws {
        let start = #"{"sequence":7,"time":"2025-11-26T09:30:00.005Z""#
        let cases: [(String, String)] = [
            (#"{"a":1}"#, #"{"a":1}"#), ("{}", "{}"), (" {\n\t} ", "{}"), (#" { "a" : {} }"# + "\r\n", #"{"a" : {}}"#),
            (#"{"a":"}","b":[{}]}"#, #"{"a":"}","b":[{}]}"#), (#"{"é":"ü😀"}"#, #"{"é":"ü😀"}"#),
        ]
        for (body, expected) in cases {
            let text = String(bytes: try stored(body).payload(repeated: false), encoding: .utf8)
            let members = expected == "{}" ? "}" : "," + expected.dropFirst()
            XCTAssertEqual(text, start + members)
            let object = try JSONSerialization.jsonObject(with: try stored(body).payload(repeated: true))
            XCTAssertEqual((object as? [String: Any])?["repeated"] as? Bool, true)
        }
    }

    func testRepeatedDroppedAndRestartedAppearOnlyIfTheyApply() throws {
        let text = String(
            bytes: try stored("{}", dropped: 3, isRestarted: true).payload(repeated: true), encoding: .utf8)
        XCTAssertEqual(
            text,
            #"{"sequence":7,"time":"2025-11-26T09:30:00.005Z","repeated":true,"dropped":3,"restarted":true}"#)
    }

    func testABodyMayBeASliceOfData() throws {
        let data = Data(#"xx{"a":1}yy"#.utf8)
        let slice = data[2..<9]
        XCTAssertEqual(StoredValue.members(of: slice).map { String(bytes: $0, encoding: .utf8) }, #""a":1"#)
    }

    func testWhatIsNoObjectIsRefused() throws {
        for body in ["", " ", "1", "[]", "{", "}", "null", "\"{}\"", "{}x"] {
            XCTAssertNil(StoredValue.members(of: Data(body.utf8)), body)
        }
    }

    func testTimesAreWrittenInUTCWithMillisecondsAndBounded() {
        let cases: [(Double, String)] = [
            (0, "1970-01-01T00:00:00.000Z"), (951_782_400.1234, "2000-02-29T00:00:00.123Z"),
            (0.9999, "1970-01-01T00:00:01.000Z"), (-5, "1970-01-01T00:00:00.000Z"),
            (.nan, "1970-01-01T00:00:00.000Z"), (.infinity, "9999-12-31T23:59:59.999Z"),
            (1e30, "9999-12-31T23:59:59.999Z"), (-.infinity, "1970-01-01T00:00:00.000Z"),
        ]
        for (seconds, expected) in cases {
            let value = StoredValue.milliseconds(of: Date(timeIntervalSince1970: seconds))
            XCTAssertEqual(StoredValue.text(ofMilliseconds: value), expected)
        }
    }

    func testFrequentEventsAreLoggedOnceInAnIntervalWithTheirNumber() {
        var events = RareEvents(interval: .seconds(60))
        XCTAssertEqual(events.add(3, at: .seconds(5)), 3)
        XCTAssertNil(events.add(at: .seconds(6)))
        XCTAssertNil(events.add(2, at: .seconds(64)))
        XCTAssertEqual(events.add(at: .seconds(65)), 4)
    }
}
