internal import Foundation
internal import XCTest

/// Something that a test has started and that ends with the test.
protocol EndsWithTest: AnyObject, Sendable {
    func end()
}

/// Keeps what tests have started until the test that runs has finished, and ends it then. Without it, what a test does not
/// use any more would end before the test does.
final class Lifetime: NSObject, XCTestObservation, @unchecked Sendable {
    private static let shared: Lifetime = {
        let lifetime = Lifetime()
        XCTestObservationCenter.shared.addTestObserver(lifetime)
        return lifetime
    }()

    // `@unchecked`: accessed only while the lock is held.
    private let lock = NSLock()
    private var started: [any EndsWithTest] = []

    static func keep(_ value: some EndsWithTest) {
        shared.lock.lock()
        defer { shared.lock.unlock() }
        shared.started.append(value)
    }

    func testCaseDidFinish(_ testCase: XCTestCase) {
        lock.lock()
        let ended = started
        started = []
        lock.unlock()
        // The last that was started is the first that ends, as with clients of a broker.
        for value in ended.reversed() { value.end() }
    }
}
