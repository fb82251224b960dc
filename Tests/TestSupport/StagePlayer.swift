public import BlueCapKit
public import Foundation
import XCTest

/// The common part of shared bodies: they wait on a stage for entries of a journal.
public protocol StagePlayer {
    var ground: any ScanStage { get }
    var journal: Journal { get }
    /// Seconds of the stage's time.
    var limit: TimeInterval { get }
}

extension StagePlayer {
    public func expect(
        _ what: String, file: StaticString = #filePath, line: UInt = #line, until isReached: (Journal.Entries) -> Bool
    ) {
        XCTAssertTrue(
            ground.wait(journal, limit: limit, until: isReached),
            "\(what) did not come; seen: \(journal.read { $0 })", file: file, line: line)
    }

    /// The future's value, once it is there.
    @discardableResult
    public func outcome<T: Sendable>(
        of future: Future<T>, file: StaticString = #filePath, line: UInt = #line
    ) throws -> T {
        journal.watch(future)
        expect("an outcome", file: file, line: line) { _ in future.completed }
        return try XCTUnwrap(future.result, file: file, line: line).get()
    }
}
