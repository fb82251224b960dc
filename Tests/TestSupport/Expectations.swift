public import BlueCapKit
public import BlueZSimulator
public import Foundation
import XCTest

/// A test on a simulator in virtual time, whose callbacks write notes on a queue of their own.
///
/// The test class defines ``settle()``. It has the other functions from here.
public protocol VirtualTimeCase {
    var simulator: Simulator { get }
    /// The notes so far, which the message of a failure contains.
    var notedTexts: [String] { get }
    /// Runs all work that is due now: of the simulator and of the callbacks.
    func settle()
}

extension VirtualTimeCase {
    /// Lets time pass in steps, and callbacks run, until the condition holds. Fails after `limit` virtual seconds.
    public func eventually(
        _ what: String, limit: TimeInterval = 60, step: TimeInterval = 0.02, file: StaticString = #filePath,
        line: UInt = #line, _ condition: () -> Bool
    ) {
        let end = simulator.seconds + limit
        settle()
        while !condition() {
            guard simulator.seconds < end else {
                return XCTFail("\(what) did not occur; noted: \(notedTexts)", file: file, line: line)
            }
            simulator.advance(by: step)
            settle()
        }
    }

    /// Lets so many seconds pass, and callbacks run.
    public func pass(_ seconds: TimeInterval, step: TimeInterval = 0.05) {
        let end = simulator.seconds + seconds
        eventually("time", limit: seconds + step + 1, step: step) { simulator.seconds >= end }
    }

    /// Waits for a note.
    public func expect(_ text: String, limit: TimeInterval = 60, file: StaticString = #filePath, line: UInt = #line) {
        eventually("\"\(text)\"", limit: limit, file: file, line: line) { notedTexts.contains(text) }
    }

    /// Returns the value of a future, or throws its error. The test fails if the future is not completed.
    @discardableResult
    public func outcome<T>(_ future: Future<T>, file: StaticString = #filePath, line: UInt = #line) throws -> T {
        eventually("an outcome", file: file, line: line) { future.completed }
        return try XCTUnwrap(future.result, file: file, line: line).get()
    }

    /// Returns the error that a future fails with.
    public func failure<T>(of future: Future<T>, file: StaticString = #filePath, line: UInt = #line) -> (any Error)? {
        eventually("an outcome", file: file, line: line) { future.completed }
        return future.result?.error
    }
}

extension Simulator {
    /// Lets virtual time pass until the condition holds. Fails after `limit` seconds.
    public func expect(
        _ what: String = "the condition", within limit: TimeInterval = 60, file: StaticString = #filePath,
        line: UInt = #line, until isReached: () -> Bool
    ) {
        XCTAssertTrue(advance(until: isReached, limit: limit), "\(what) did not occur", file: file, line: line)
    }

    /// Lets virtual time pass until the future is completed. Returns its value or throws its error.
    @discardableResult
    public func outcome<T>(
        of future: Future<T>, within limit: TimeInterval = 60, file: StaticString = #filePath, line: UInt = #line
    ) throws -> T {
        expect("an outcome", within: limit, file: file, line: line) { future.completed }
        return try XCTUnwrap(future.result, file: file, line: line).get()
    }

    /// Lets virtual time pass until the future is completed. Returns its error.
    public func failure<T>(
        of future: Future<T>, within limit: TimeInterval = 60, file: StaticString = #filePath, line: UInt = #line
    ) -> (any Error)? {
        do {
            try outcome(of: future, within: limit, file: file, line: line)
            return nil
        } catch {
            return error
        }
    }
}
