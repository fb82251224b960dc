import BlueCapFutures
import BlueCapGATT
import BlueCapReactor
import XCTest

@testable import BlueCapBlueZ

final class ServerAnswerTests: XCTestCase {
    private let loop = FakeDaemon().loop
    private let replies = Locked<[Result<Data, CBATTError>]>([])

    private func answer() -> ServerAnswer {
        let replies = replies
        return ServerAnswer(loop: loop) { reply in replies.withLock { $0.append(reply) } }
    }

    private var replied: [Result<Data, CBATTError>] {
        loop.run()
        return replies.withLock { $0 }
    }

    func testEachRequestIsAnsweredOnce() {
        let (first, second) = (answer(), answer())
        XCTAssertTrue(second.succeed(Data([2])))
        XCTAssertFalse(second.succeed(Data([3])))
        XCTAssertFalse(second.refuse(.invalidOffset))
        XCTAssertTrue(first.succeed())
        XCTAssertEqual(replied, [.success(Data([2])), .success(Data())])
    }

    func testWhatIsNotAnsweredIsRefusedWhenItsTimeIsUp() {
        let first = answer()
        loop.advance(by: 1)
        let second = answer()
        loop.advance(by: ServerAnswer.limit - 1)
        XCTAssertEqual(replied, [.failure(CBATTError(.unlikelyError))])
        XCTAssertEqual([first.isOpen, second.isOpen], [false, true])
        XCTAssertFalse(first.succeed(), "Too late.")
        loop.advance(by: 1)
        XCTAssertEqual(replied.count, 2)
        XCTAssertFalse(second.refuse(.invalidOffset), "Too late.")
        let third = answer()
        loop.advance(by: ServerAnswer.limit - 0.1)
        XCTAssertTrue(third.succeed(), "Its time begins with it.")
    }

    func testTheTimerOfAnAnsweredRequestDoesNothing() {
        XCTAssertTrue(answer().succeed())
        loop.advance(by: ServerAnswer.limit + 1)
        XCTAssertEqual(replied, [.success(Data())])
    }

    func testAnAnswerThatIsReleasedRefuses() {
        _ = answer()
        XCTAssertEqual(replied, [.failure(CBATTError(.unlikelyError))])
    }
}
