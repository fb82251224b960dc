import BlueCapFutures
import XCTest

/// A completion block of an optional value and an optional error was a failure with `invalidValue` if it was called with two
/// nils, also where the future or the stream was declared to be of an optional type.
final class OptionalElementTests: XCTestCase {
    private typealias Block = (Int?, (any Error)?) -> Void
    private struct Failure: Error {}

    func testTwoNilsAreAValueOfAFutureOfAnOptional() {
        let made: Future<Int?> = future { (done: @escaping Block) in done(nil, nil) }
        XCTAssertEqual(made.result?.value, .some(nil))
        let plain: Future<Int> = future { (done: @escaping Block) in done(nil, nil) }
        XCTAssertEqual(plain.result?.error as? FuturesError, .invalidValue)
    }

    func testTwoNilsAreAnElementOfAStreamOfOptionals() {
        let stream: FutureStream<Int?> = futureStream { (done: @escaping Block) in
            done(nil, nil)
            done(2, nil)
            done(nil, Failure())
        }
        let outcomes = stream.futures.compactMap(\.result)
        XCTAssertEqual(outcomes.map(\.value), [.some(nil), 2, nil])
        XCTAssertEqual(outcomes.map { $0.isSuccess() }, [true, true, false])
        let plain: FutureStream<Int> = futureStream { (done: @escaping Block) in done(nil, nil) }
        XCTAssertEqual(plain.futures.first?.result?.error as? FuturesError, .invalidValue)
    }
}
