import BlueZSimulator
import TestBasics
import XCTest

/// The example that continues after it was killed, as processes.
final class FollowExampleTests: XCTestCase, StartsPrograms {
    func testAKilledProgramGoesOnWhereItWas() throws {
        let folder = NSTemporaryDirectory() + "bluecap-tests-" + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let bench = try RemoteBench()
        let script = """
            export XDG_STATE_HOME='\(folder)'
            exec stdbuf -oL "$(dirname "$BLUECAP")/FollowExample"
            """
        let first = try bench.start(script: script)
        _ = try first.line { $0.hasPrefix("new") }
        let file = folder + "/bluecap/central/us.gnos.BlueCap.follow.json"
        XCTAssertTrue(
            bench.simulator.wait(
                until: { (try? String(contentsOfFile: file, encoding: .utf8))?.contains("2A37") == true }, limit: 20),
            "nothing was kept")
        first.signal(SIGKILL)
        XCTAssertTrue(try first.finish().wasKilled)

        let second = try bench.start(script: script)
        _ = try second.line { $0.hasPrefix("restored 2 bytes") }
        XCTAssertEqual(bench.simulator.links.count, 1)
        second.signal(SIGKILL)
        _ = try second.finish()
    }
}
