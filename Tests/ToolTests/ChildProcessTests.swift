import TestBasics
import XCTest

@testable import bluecap

final class ChildProcessTests: XCTestCase, StartsPrograms {
    func testTheStatusIsPassedOn() async throws {
        let child = try ChildProcess(["sh", "-c", "exit 7"], environment: [:])
        let status = await child.status()
        XCTAssertEqual(status, 7)
    }

    func testASignalHasTheStatusThatShellsGiveIt() async throws {
        let child = try ChildProcess(["sh", "-c", "kill -TERM $$"], environment: [:])
        let status = await child.status()
        XCTAssertEqual(status, 128 + SIGTERM)
    }

    func testTheChangesReachTheCommand() async throws {
        let child = try ChildProcess(
            ["sh", "-c", "test \"$ROOM\" = 'a b' && test -n \"$PATH\""], environment: ["ROOM": "a b"])
        let status = await child.status()
        XCTAssertEqual(status, 0)
    }

    func testAForwardedSignalEndsTheCommand() async throws {
        let child = try ChildProcess(["sleep", "60"], environment: [:])
        child.forward(SIGTERM)
        let status = await child.status()
        XCTAssertEqual(status, 128 + SIGTERM)
    }

    func testACommandThatCannotRunHasTheShellsStatus() {
        XCTAssertThrowsError(try ChildProcess(["/no/such/command"], environment: [:])) { error in
            XCTAssertEqual((error as? ToolFailure)?.status, 127)
        }
        XCTAssertThrowsError(try ChildProcess(["/"], environment: [:])) { error in
            XCTAssertEqual((error as? ToolFailure)?.status, 126)
        }
    }
}

final class ServiceArgumentTests: XCTestCase {
    func testAServiceIsNamedByShortOrLongUUIDOrByName() {
        let heartRate = try? Arguments.service("180D")
        XCTAssertNotNil(heartRate)
        for text in ["180d", "0x180D", "0000180d-0000-1000-8000-00805f9b34fb", "heart rate"] {
            XCTAssertEqual(try? Arguments.service(text), heartRate, text)
        }
        XCTAssertNoThrow(try Arguments.service("6e400001-b5a3-f393-e0a9-e50e24dcca9e"))
        for text in ["", "18", "xyzzy", "180D-", "0x"] { XCTAssertThrowsError(try Arguments.service(text), text) }
    }
}
