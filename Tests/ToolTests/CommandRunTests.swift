import TestBasics
import TestSupport
import XCTest

/// The radio lab's commands have a limit: a hanging one must not hang the tests.
final class CommandRunTests: XCTestCase, StartsPrograms {
    func testTheOutputIsReturnedWithoutItsLastLineBreak() throws {
        XCTAssertEqual(try CommandRun.output(of: "printf", ["a\nb\n"]), "a\nb")
        XCTAssertEqual(try CommandRun.output(of: "head", ["-c", "300000", "/dev/zero"]).utf8.count, 300_000)
    }

    func testAStatusIsAnError() {
        XCTAssertThrowsError(try CommandRun.output(of: "sh", ["-c", "exit 3"])) { error in
            XCTAssertEqual(error as? CommandError, .failed("sh -c exit 3", status: 3))
        }
    }

    func testACommandBeyondItsLimitIsKilledWithItsGroupAndNamedWithWhatItPrinted() throws {
        let path = "/tmp/command-run-\(getpid())"
        XCTAssertEqual(mkfifo(path, 0o600), 0)
        defer { unlink(path) }
        let reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        defer { close(reader) }
        let script = "exec 9> \(path); sleep 600 & echo started; sleep 600"
        XCTAssertThrowsError(try CommandRun.output(of: "sh", ["-c", script], timeLimit: 1)) { error in
            guard case .timedOut(let command, seconds: 1, let output)? = error as? CommandError else {
                return XCTFail("\(error)")
            }
            XCTAssertEqual(command, "sh -c \(script)")
            XCTAssertEqual(output, "started")
            // It hangs up when the last process has gone that holds its other end.
            var entry = pollfd(fd: reader, events: 0, revents: 0)
            XCTAssertEqual(poll(&entry, 1, 10_000), 1)
            XCTAssertNotEqual(entry.revents & Int16(POLLHUP), 0)
        }
    }

    func testACommandThatClosesItsOutputAndStaysIsKilledToo() {
        XCTAssertThrowsError(try CommandRun.output(of: "sh", ["-c", "exec >&-; sleep 600"], timeLimit: 1)) { error in
            guard case .timedOut? = error as? CommandError else { return XCTFail("\(error)") }
        }
    }
}
