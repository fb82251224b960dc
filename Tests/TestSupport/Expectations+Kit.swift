public import BlueZSimulator
import XCTest

extension Task where Failure == any Error {
    /// Waits for the task, and expects that it throws an error of that type.
    public func expectThrown<E: Error>(_ type: E.Type, file: StaticString = #filePath, line: UInt = #line) async {
        let result = await result
        XCTAssertThrowsError(try result.get(), file: file, line: line) {
            XCTAssertTrue($0 is E, "\($0)", file: file, line: line)
        }
    }

    /// Waits for the task, and expects that it throws that error.
    public func expectThrown<E: Error & Equatable>(
        _ error: E, file: StaticString = #filePath, line: UInt = #line
    ) async {
        let result = await result
        XCTAssertThrowsError(try result.get(), file: file, line: line) {
            XCTAssertEqual($0 as? E, error, file: file, line: line)
        }
    }
}

extension Simulator {
    /// Cancels a task that waits, and expects that it throws `CancellationError` without any time passing.
    public func expectCancellation(
        of task: Task<some Sendable, any Error>, file: StaticString = #filePath, line: UInt = #line
    ) async {
        let begin = seconds
        task.cancel()
        await run()
        await task.expectThrown(CancellationError.self, file: file, line: line)
        XCTAssertEqual(seconds, begin, file: file, line: line)
    }
}
