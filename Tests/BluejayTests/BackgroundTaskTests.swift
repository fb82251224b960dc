import Bluejay
import BlueZSimulator
import XCTest

final class BackgroundTaskTests: BluejayCase, @unchecked Swift.Sendable {
    func testATaskReadsLikeAScript() {
        connect()
        bluejay.run(backgroundTask: { peripheral -> UInt8 in
            try peripheral.endListen(to: Self.measurement)
            try peripheral.write(to: Self.location, value: UInt8(0))
            return try peripheral.read(from: Self.location) as UInt8
        }) { [seen] (result: RunResult<UInt8>) in seen.note("run", result) }
        XCTAssertTrue(bluejay.isRunningBackgroundTask)
        expect("run 0")
        XCTAssertFalse(bluejay.isRunningBackgroundTask)
    }

    func testTheOuterObjectIsRefusedInsideTheTask() {
        connect()
        let bluejay = bluejay!
        bluejay.run(backgroundTask: { [seen] peripheral in
            bluejay.read(from: Self.location) { (result: ReadResult<UInt8>) in seen.note("inside", result) }
            _ = try peripheral.read(from: Self.location) as UInt8
        }) { [seen] in seen.note("run", $0) }
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("outside", result) }
        bluejay.run(backgroundTask: { _ in }) { [seen] in seen.note("second", $0) }
        expect("run ()")
        XCTAssertEqual(
            seen.texts.sorted(),
            [
                "inside calledInsideBackgroundTask", "outside backgroundTaskRunning", "run ()",
                "second multipleBackgroundTaskNotSupported",
            ])
    }

    func testALossEndsWhatTheTaskWaitsFor() {
        let observer = Observer(seen)
        connect()
        bluejay.register(observer: observer)
        bluejay.run(backgroundTask: { [seen] peripheral in
            do {
                try peripheral.listen(to: Self.measurement) { (value: Data) in
                    seen.note("heard \([UInt8](value))")
                    return .keepListening
                }
            } catch {
                seen.note("listen", error)
            }
            _ = try peripheral.read(from: Self.location) as UInt8
        }) { [seen] in seen.note("run", $0) }
        eventually("the listen") { !simulator.subscriptions(to: .uuid("2A37"), at: Self.address).isEmpty }
        pass(0.2)
        notify([0, 61])
        loseLink()
        expect("disconnected Strap 1")
        XCTAssertEqual(
            seen.texts,
            [
                "available true", "connected Strap 1", "heard [0, 61]", "listen notConnected", "run notConnected",
                "disconnected Strap 1",
            ])
        eventually("the connection") { bluejay.isConnected }
    }
}
