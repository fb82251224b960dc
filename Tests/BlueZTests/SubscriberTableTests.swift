import BlueCapGATT
import BlueCapReactor
import XCTest

@testable import BlueCapBlueZ

/// The end of a socket means four things, and what else happens says which.
final class SubscriberTableTests: XCTestCase {
    private var table = SubscriberTable()
    private var now = Instant.origin

    private func peer(_ number: UInt8) -> ServerPeer { ServerPeer(device: ServerScene.key(number)) }
    private func acquire(_ number: UInt8) { table.acquired(UInt64(number), by: peer(number)) }
    private func end(_ number: UInt8, isBonded: Bool = false) {
        table.socketEnded(UInt64(number), isBonded: isBonded, at: now)
    }
    private func lose(_ number: UInt8, isBonded: Bool = false) {
        table.linkEnded(ServerScene.key(number), isBonded: isBonded, at: now)
    }
    private func pass(_ seconds: Double) {
        now = now.advanced(by: seconds)
        table.timePassed(now)
    }

    /// The numbers of those that values reach; negative without a socket.
    private var reached: [Int] {
        table.subscribers.map { subscriber in
            let number = (1...9).first { peer($0) == subscriber.peer }.map(Int.init) ?? 0
            return subscriber.directWay == .open ? number : -number
        }
    }

    func testTheOnlyOneThatUnsubscribesIsGoneAtOnce() {
        acquire(1)
        XCTAssertEqual(reached, [1])
        end(1)
        XCTAssertEqual(reached, [])
        XCTAssertNil(table.deadline)
    }

    func testOneOfSeveralThatUnsubscribesIsGoneAfterAMoment() {
        acquire(1)
        acquire(2)
        end(1)
        XCTAssertEqual(reached, [-1, 2])
        XCTAssertEqual(table.deadline, now.advanced(by: SubscriberTable.settlingTime))
        pass(SubscriberTable.settlingTime)
        XCTAssertEqual(reached, [2])
        XCTAssertNil(table.deadline)
    }

    func testOneOfSeveralWhoseLinkEndsIsGoneInEitherOrder() {
        for socketIsFirst in [true, false] {
            table = SubscriberTable()
            acquire(1)
            acquire(2)
            if socketIsFirst { end(2) }
            lose(2)
            if !socketIsFirst { end(2) }
            XCTAssertEqual(reached, [1])
        }
    }

    /// bluez#1452: BlueZ closes the socket of the first as well.
    func testTheSocketThatClosesWithAnothersLinkLeavesItsCentralSubscribed() {
        for order in 0..<3 {
            table = SubscriberTable()
            now = now.advanced(by: 10)
            acquire(1)
            acquire(2)
            acquire(3)
            if order == 0 { lose(3) }
            end(1)
            if order == 1 { lose(3) }
            end(3)
            if order == 2 { lose(3) }
            pass(SubscriberTable.settlingTime * 2)
            XCTAssertEqual(reached, [-1, 2], "order \(order)")
            acquire(1)
            XCTAssertEqual(reached, [1, 2], "It has subscribed again.")
        }
    }

    func testALostLinkClosesOneSocketOfAnotherAtMost() {
        for linkIsFirst in [true, false] {
            table = SubscriberTable()
            for number: UInt8 in 1...4 { acquire(number) }
            if linkIsFirst { lose(4) }
            end(1)
            end(2)
            if !linkIsFirst {
                end(4)
                lose(4)
            }
            pass(SubscriberTable.settlingTime)
            XCTAssertEqual(reached.count, linkIsFirst ? 3 : 2)
            XCTAssertEqual(reached.filter { $0 < 0 }.count, 1)
        }
    }

    func testTheLastOneMayHaveLostItsSocketByTheLinkThatEndedBefore() {
        acquire(1)
        acquire(2)
        lose(2)
        end(2)
        end(1)
        XCTAssertEqual(reached, [-1])
        XCTAssertNil(table.deadline)
    }

    func testALostLinkOfTheOldestClosesNoSocketOfAnother() {
        for linkIsFirst in [true, false] {
            table = SubscriberTable()
            for number: UInt8 in 1...3 { acquire(number) }
            if linkIsFirst { lose(1) }
            end(1)
            end(2)
            if !linkIsFirst { lose(1) }
            pass(SubscriberTable.settlingTime)
            XCTAssertEqual(reached, [3])
        }
    }

    func testTheEndOfASocketBeforeThatOfAnOlderOneIsNoOthersDoing() {
        for number: UInt8 in 1...3 { acquire(number) }
        end(2)
        lose(3)
        end(3)
        pass(SubscriberTable.settlingTime)
        XCTAssertEqual(reached, [1])
    }

    func testASocketMayEndWithTheLinkOfACentralThatBlueZDoesNotName() {
        acquire(1)
        table.startNotify()
        end(1)
        XCTAssertEqual(reached, [-1, 0])
    }

    func testTheEndOfABondedCentralsLinkClosesNoOtherSocket() {
        acquire(1)
        acquire(2)
        end(2, isBonded: true)
        end(1)
        lose(2, isBonded: true)
        pass(SubscriberTable.settlingTime)
        XCTAssertEqual(reached, [])
    }

    func testABondedCentralThatReturnsIsSubscribedAgain() {
        for socketIsFirst in [true, false] {
            table = SubscriberTable()
            acquire(1)
            if socketIsFirst { end(1, isBonded: true) }
            lose(1, isBonded: true)
            if !socketIsFirst { end(1, isBonded: true) }
            XCTAssertEqual(reached, [])
            pass(3_600)
            XCTAssertEqual(reached, [])
            table.linkBegan(ServerScene.key(1), at: now)
            XCTAssertEqual(reached, [])
            pass(SubscriberTable.returningTime)
            XCTAssertEqual(reached, [-1])
            lose(1, isBonded: true)
            XCTAssertEqual(reached, [])
        }
    }

    func testABondedCentralThatUnsubscribesIsGone() {
        acquire(1)
        end(1, isBonded: true)
        pass(SubscriberTable.settlingTime)
        lose(1, isBonded: true)
        table.linkBegan(ServerScene.key(1), at: now)
        pass(SubscriberTable.returningTime)
        XCTAssertEqual(reached, [])
    }

    func testStopNotifyMeansThatNoneWithoutASocketIsLeft() {
        acquire(1)
        acquire(2)
        acquire(3)
        table.startNotify()
        end(1)
        lose(3)
        end(3)
        XCTAssertEqual(reached, [-1, 2, 0])
        table.stopNotify()
        XCTAssertEqual(reached, [2])
    }

    func testASocketThatWasReplacedEndsUnnoticed() {
        table.acquired(1, by: peer(1))
        table.acquired(2, by: peer(1))
        table.socketEnded(1, isBonded: false, at: now)
        XCTAssertEqual(reached, [1])
        table.socketEnded(2, isBonded: false, at: now)
        XCTAssertEqual(reached, [])
    }

    /// Up to 5.68: the socket outlives the central that it is named after, as long as another is subscribed.
    func testTheEndOfASharedSocketIsTheEndOfAll() {
        acquire(1)
        acquire(2)
        lose(1)
        XCTAssertEqual(reached, [1, 2])
        table.sharedSocketEnded()
        XCTAssertEqual(reached, [])
    }
}
