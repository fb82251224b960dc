import BlueCapGATT
import BlueCapReactor
import TestSupport
import XCTest

@testable import BlueCapBlueZ

/// The end of a socket means four things, and what else happens says which. Each event is followed by the numbers of those that
/// values reach; negative without a socket, 0 for those that BlueZ does not name.
final class SubscriberTableTests: XCTestCase {
    private struct Play: TableMachine {
        enum Event {
            case acquire(UInt8), end(UInt8, isBonded: Bool = false), lose(UInt8, isBonded: Bool = false)
            case linkBegan(UInt8), pass(Double), startNotify, stopNotify, sharedSocketEnded
            /// Another socket of a central closes.
            case endOther(UInt8), replace(UInt8)
            case deadline(after: Double?)
        }

        var table = SubscriberTable()
        var now = Instant.origin

        init(_ subscribed: UInt8...) { for number in subscribed { _ = handle(.acquire(number)) } }

        private func peer(_ number: UInt8) -> ServerPeer { ServerPeer(device: ServerScene.key(number)) }

        private var reached: [Int] {
            table.subscribers.map { subscriber in
                let number = (1...9).first { peer($0) == subscriber.peer }.map(Int.init) ?? 0
                return subscriber.directWay == .open ? number : -number
            }
        }

        mutating func handle(_ event: Event) -> [Int]? {
            switch event {
            case .acquire(let number): table.acquired(UInt64(number), by: peer(number))
            case .end(let number, let isBonded): table.socketEnded(UInt64(number), isBonded: isBonded, at: now)
            case .lose(let number, let isBonded): table.linkEnded(ServerScene.key(number), isBonded: isBonded, at: now)
            case .linkBegan(let number): table.linkBegan(ServerScene.key(number), at: now)
            case .pass(let seconds):
                now = now.advanced(by: seconds)
                table.timePassed(now)
            case .startNotify: table.startNotify()
            case .stopNotify: table.stopNotify()
            case .sharedSocketEnded: table.sharedSocketEnded()
            case .replace(let number): table.acquired(UInt64(number) + 10, by: peer(number))
            case .endOther(let number): table.socketEnded(UInt64(number) + 10, isBonded: false, at: now)
            case .deadline(let seconds):
                guard table.deadline == seconds.map({ now.advanced(by: $0) }) else { return nil }
            }
            return reached
        }
    }

    private let settling = SubscriberTable.settlingTime

    func testWhoUnsubscribesOrLosesItsLinkIsGone() {
        check("the only one is gone at once", Play(1), (.end(1), []), (.deadline(after: nil), []))
        check(
            "one of several is gone after a moment", Play(1, 2), (.end(1), [-1, 2]), (.deadline(after: settling), nil),
            (.pass(settling), [2]), (.deadline(after: nil), [2]))
        check("the link of one of several ends, after its socket", Play(1, 2), (.end(2), nil), (.lose(2), [1]))
        check("the link of one of several ends, before its socket", Play(1, 2), (.lose(2), nil), (.end(2), [1]))
        check(
            "stopNotify means that none without a socket is left", Play(1, 2, 3), (.startNotify, nil), (.end(1), nil),
            (.lose(3), nil), (.end(3), [-1, 2, 0]), (.stopNotify, [2]))
        check(
            "a socket that was replaced ends unnoticed", Play(1), (.replace(1), nil), (.end(1), [1]), (.endOther(1), [])
        )
        // Up to 5.68: the socket outlives the central that it is named after, as long as another is subscribed.
        check("the end of a shared socket is the end of all", Play(1, 2), (.lose(1), [1, 2]), (.sharedSocketEnded, []))
    }

    /// bluez#1452: BlueZ closes the socket of the first as well.
    func testTheSocketThatClosesWithAnothersLinkLeavesItsCentralSubscribed() {
        let ends: [Play.Event] = [.end(1), .end(3)]
        for place in 0...2 {
            var play = Play(1, 2, 3)
            for event in ends[..<place] + [.lose(3)] + ends[place...] { _ = play.handle(event) }
            check("link at \(place)", play, (.pass(settling * 2), [-1, 2]), (.acquire(1), [1, 2]))
        }
        check(
            "a lost link closes one socket of another at most, if it comes first", Play(1, 2, 3, 4), (.lose(4), nil),
            (.end(1), nil), (.end(2), nil), (.pass(settling), [-1, 3, 4]))
        check(
            "a lost link closes one socket of another at most, if it comes last", Play(1, 2, 3, 4), (.end(1), nil),
            (.end(2), nil), (.end(4), nil), (.lose(4), nil), (.pass(settling), [-1, 3]))
        check(
            "the last one may have lost its socket by the link that ended before", Play(1, 2), (.lose(2), nil),
            (.end(2), nil), (.end(1), [-1]), (.deadline(after: nil), [-1]))
        check(
            "a socket may end with the link of a central that BlueZ does not name", Play(1), (.startNotify, nil),
            (.end(1), [-1, 0]))
    }

    func testALinkClosesNoSocketOfAnotherIfItIsTheOldestTheYoungerOrBonded() {
        check(
            "the oldest, link first", Play(1, 2, 3), (.lose(1), nil), (.end(1), nil), (.end(2), nil),
            (.pass(settling), [3]))
        check(
            "the oldest, link last", Play(1, 2, 3), (.end(1), nil), (.end(2), nil), (.lose(1), nil),
            (.pass(settling), [3]))
        check(
            "a socket that ends before that of an older one", Play(1, 2, 3), (.end(2), nil), (.lose(3), nil),
            (.end(3), nil), (.pass(settling), [1]))
        check(
            "a bonded central", Play(1, 2), (.end(2, isBonded: true), nil), (.end(1), nil),
            (.lose(2, isBonded: true), nil), (.pass(settling), []))
    }

    func testABondedCentralThatReturnsIsSubscribedAgainUnlessItUnsubscribed() {
        let returning: [Play.Event] = [.end(1, isBonded: true), .lose(1, isBonded: true)]
        for order in [returning, returning.reversed()] {
            check(
                "it returns after \(order)", Play(1), (order[0], nil), (order[1], []), (.pass(3_600), []),
                (.linkBegan(1), []), (.pass(SubscriberTable.returningTime), [-1]), (.lose(1, isBonded: true), []))
        }
        check(
            "it unsubscribes", Play(1), (.end(1, isBonded: true), nil), (.pass(settling), nil),
            (.lose(1, isBonded: true), nil), (.linkBegan(1), nil), (.pass(SubscriberTable.returningTime), []))
    }
}
