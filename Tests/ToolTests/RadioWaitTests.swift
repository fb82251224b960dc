import BlueCapKit
import XCTest

@testable import bluecap

final class RadioWaitTests: XCTestCase {
    private let radio = Radio(busAddress: "unix:path=/a/simulated/bus")

    private func states(_ states: ManagerState...) -> FutureStream<ManagerState> {
        let promise = StreamPromise<ManagerState>(capacity: 8)
        for state in states { promise.success(state) }
        return promise.stream
    }

    func testAStateThatHasPassedIsNoFailure() async throws {
        try await radio.waitUntilUsable(states(.unsupported, .resetting)) {
            (.poweredOn, "The adapter hci0 (00:00:00:00:00:01) is on.")
        }
    }

    func testAnUnusableRadioIsAFailureWithItsExplanation() async {
        do {
            try await radio.waitUntilUsable(states(.unsupported)) {
                (.unsupported, "bluetoothd is not running.")
            }
            XCTFail("usable")
        } catch {
            XCTAssertTrue("\(error)".contains("bluetoothd is not running."), "\(error)")
        }
    }

    func testADaemonThatSaysNothingIsAFailureAfterTheTime() async {
        do {
            try await radio.waitUntilUsable(states(.unknown), for: 0.05) { (.unknown, "No answer.") }
            XCTFail("usable")
        } catch {
            XCTAssertEqual((error as? ToolFailure)?.description, "No answer.")
            XCTAssertEqual((error as? ToolFailure)?.status, ToolFailure.noAdapter)
        }
    }

    func testACancelledWaitIsNoFailureOfTheRadio() async {
        let task = Task { [radio, states = states(.unknown)] in
            try await radio.waitUntilUsable(states) { (.unknown, "No answer.") }
        }
        task.cancel()
        let result = await task.result
        XCTAssertThrowsError(try result.get()) { error in XCTAssertTrue(error is CancellationError, "\(error)") }
    }
}

final class RadioWatchTests: XCTestCase {
    func testARadioThatGoesAwayIsWaitedFor() {
        var watch = RadioWatch()
        XCTAssertNil(watch.remark(.poweredOn, "The adapter hci0 is on."))
        XCTAssertEqual(
            watch.remark(.resetting, "bluetoothd is gone."),
            "bluetoothd is gone. The command continues when Bluetooth is back.")
        XCTAssertNil(watch.remark(.resetting, "bluetoothd is gone."))
        XCTAssertNil(watch.remark(.unknown, "It is not known."))
        XCTAssertEqual(watch.remark(.poweredOn, "The adapter hci0 is on."), "Bluetooth is back.")
        XCTAssertNil(watch.remark(.poweredOn, "The adapter hci0 is on."))
    }
}

final class CleanUpTests: XCTestCase {
    func testACleanUpThatIsNotConfirmedEndsAfterItsTime() async {
        await cleanUp(within: 0.05) { for await _ in AsyncStream<Never>.makeStream().stream {} }
    }

    func testACleanUpIsDoneAlsoIfTheTaskWasCancelled() async {
        let (steps, feed) = AsyncStream.makeStream(of: Bool.self)
        Task {
            withUnsafeCurrentTask { $0?.cancel() }
            await cleanUp(within: 30) { feed.yield(Task.isCancelled) }
            feed.finish()
        }
        var wasCancelled: [Bool] = []
        for await step in steps { wasCancelled.append(step) }
        XCTAssertEqual(wasCancelled, [false])
    }
}
