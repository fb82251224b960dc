import BlueCapReactor
import TestSupport
import XCTest

@testable import BlueCapKit

extension SubscriptionMachine {
    /// Executes an event of a table. A number is that of an operation or of a call.
    fileprivate mutating func send(_ words: [String]) throws -> String {
        let number = UInt32(words.dropFirst().first ?? "") ?? 0
        let (id, call) = (OperationID(rawValue: UInt64(number)), Call(rawValue: number))
        let transport = words.contains("socket") ? NotificationTransport.socket : .signals
        let failure = words.last.flatMap { PeripheralFailure.named[$0] }
        let event: Event
        switch words[0] {
        case "state": return "\(state)"
        case "wanted": return wanted.map { "\($0)" } ?? "nothing"
        case "isNotifying": return "\(isNotifying)"
        case "isStarting": return "\(isStarting)"
        case "isSecuring": return "\(isSecuring)"
        case "isAwaitingLink": return "\(isAwaitingLink)"
        case "isAwaited": return "\(isAwaited(by: id))"
        case "unready":
            self = SubscriptionMachine(isReady: false)
            return ""
        case "on":
            _ = self.event(.startAsked(OperationID(rawValue: 100), transport))
            event = .began(Call(rawValue: 1))
        case "start":
            event = .startAsked(
                id, transport, outlivesLinks: words.contains("lasting"), isForStream: words.contains("stream"))
        case "stop": event = .stopAsked(id)
        case "readersEnded": event = .readersEnded
        case "restored": event = .restored(transport)
        case "began": event = .began(call)
        case "interrupted": event = .interrupted(call)
        case "asked": event = .asked(call)
        case "failed": event = .failed(call, failure!)
        case "securityNeeded": event = .securityNeeded(call)
        case "pairingRejected": event = .pairingRejected(.timedOut)
        case "secured": event = .secured(failure == nil ? nil : .timedOut)
        case "stopped": event = .stopped(call, failure)
        case "values": event = .valuesCame(call)
        case "lost":
            event = .linkWentDown(
                words.contains("forced") ? .forcedDisconnect : .disconnected, keepsSecuring: words.contains("pairing"))
        case "linkUp": event = .linkWentUp
        case "ready": event = .attributesReady
        case "removed": event = .attributeRemoved
        case "invalid": event = .invalidated
        case "timedOut": event = .timedOut(id)
        case "withdrawn": event = .withdrawn(id)
        case "closed": event = .closed
        default: throw UnknownEvent(words)
        }
        return self.event(event).words
    }
}

/// Plays begin with a link on which the characteristic is present, unless they say `unready`.
class SubscriptionTable: XCTestCase {
    fileprivate func play(_ table: String, line: UInt = #line) {
        TestSupport.play(table, line: line) {
            var machine = SubscriptionMachine(isReady: true)
            return { try machine.send($0) }
        }
    }
}

/// Starting and stopping a subscription, and the calls that wait for it.
final class SubscriptionMachineTests: SubscriptionTable {
    func testStarting() {
        play(
            """
            It has started when BlueZ notifies:
            start 1 → subscribe 1 signals; isNotifying → false; began 1 → subscribed, done 1; isNotifying → true
            A refusal is reported:
            start 1 socket; failed 1 busy → fail 1 busy; state → off
            Starting twice is one call:
            start 1; start 2 → none; began 1 → subscribed, done 1, done 2; start 3 socket → done 3
            What waits behind a refusal of another transport is tried in its turn:
            start 1 socket; start 2; failed 1 busy → fail 1 busy, subscribe 2 signals
            Without a link it fails at once:
            unready; start 1 → fail 1 disconnected; stop 2 → fail 2 disconnected
            """)
    }

    func testStreams() {
        play(
            """
            The last stream ends a subscription for streams:
            start 1 stream; began 1; readersEnded → unsubscribe 1; stopped 1 → none; state → off
            The last stream ends a request:
            start 1 lasting stream; readersEnded → fail 1 cancelled, unsubscribe 1
            The last stream does not end a subscription for more:
            start 2; began 1; readersEnded → none; isNotifying → true
            Nor one that a stream has asked for first:
            start 1 stream; start 2; began 1; readersEnded → none; isNotifying → true
            Nor one that a stream has asked for later:
            start 2; start 1 stream; began 1; readersEnded → none; isNotifying → true
            A subscription for streams follows one for more that has ended:
            on; stop 1; stopped 1; start 2 stream; began 2; readersEnded → unsubscribe 2
            A request for more continues without the streams:
            start 1 stream; start 2; readersEnded → fail 1 cancelled; began 1 → subscribed, done 2
            readersEnded → none; isNotifying → true
            A stream behind a stop has a subscription of its own:
            start 1; stop 2; start 3 stream; began 1; stopped 1; began 2; readersEnded → unsubscribe 2
            A stream that ends behind a stop needs no subscription:
            start 1; stop 2; start 3 stream; readersEnded → fail 3 cancelled
            began 1 → subscribed, done 1, unsubscribe 1; state → off
            A restored subscription stays:
            restored; began 1; readersEnded → none
            """)
    }

    func testARequestThatHasFailedDoesNotKeepASubscriptionForStreams() {
        for ends in [
            "withdrawn 2; readersEnded", "readersEnded; withdrawn 2", "timedOut 2; readersEnded",
            "readersEnded; timedOut 2", "lost; readersEnded", "readersEnded; lost",
            "readersEnded; failed 2 disconnected",
        ] {
            play(
                """
                start 1 stream; began 1; lost; start 3 → fail 3 disconnected; ready; start 2
                \(ends); state → off; isAwaited 2 → false
                """)
        }
    }

    func testStopping() {
        play(
            """
            Stopping waits for BlueZ:
            on; stop 1 → unsubscribe 1; isNotifying → false; stop 2 → none; stopped 1 → done 1, done 2; state → off
            Stopping what has not started succeeds:
            stop 1 → done 1
            A stop while starting comes after the start:
            start 1; stop 2 → none; start 3 → none
            began 1 → subscribed, done 1, unsubscribe 1, subscribe 2 signals
            stopped 1 → done 2; began 2 → subscribed, done 3
            A stop is executed without a caller that is withdrawn:
            start 1; stop 2; withdrawn 2 → fail 2 cancelled; began 1 → subscribed, done 1, unsubscribe 1
            stopped 1 → none; state → off
            A stop is executed without a caller whose time is over:
            start 1; stop 2; timedOut 2 → fail 2 timeout; began 1 → subscribed, done 1, unsubscribe 1
            stopped 1 → none; state → off
            A stop while the table is read comes after the start:
            unready; linkUp; start 1; stop 2 → none; ready → subscribe 1 signals
            began 1 → subscribed, done 1, unsubscribe 1
            A start while stopping is a subscription of its own:
            on; stop 1; start 2 → subscribe 2 signals; stopped 1 → done 1; began 2 → subscribed, done 2
            A refused stop is reported:
            on; stop 1; stopped 1 busy → fail 1 busy; state → off
            A report of an earlier call is not taken for this one:
            on; stop 1; began 1 → none; start 2; failed 1 busy → none; began 1 → none; interrupted 1 → none
            state → starting
            """)
    }

    func testAFailedPairingFailsTheSubscription() {
        play(
            """
            After a pairing it starts again:
            start 1; securityNeeded 1 → none; isSecuring → true; start 2 → none; secured → subscribe 2 signals
            began 2 → subscribed, done 1, done 2
            A failed pairing fails it:
            start 1; securityNeeded 1; secured unpaired → fail 1 unpaired; state → off; secured → none
            A rejected pairing fails it and stops it:
            start 1; pairingRejected → unsubscribe 1, fail 1 unpaired; state → off; pairingRejected → none
            The wait outlives a link that the pairing ends:
            start 1; securityNeeded 1; lost pairing → none; isSecuring → true
            secured → none; isSecuring → false; isAwaitingLink → true; linkUp → none; isAwaitingLink → false
            ready → subscribe 2 signals; began 2 → subscribed, done 1
            The new link may be up before the pairing ends:
            start 1; securityNeeded 1; lost pairing; linkUp; ready → none; secured → subscribe 2 signals
            A pairing that makes no link fails it:
            start 1; securityNeeded 1; lost pairing; secured; lost → fail 1 disconnected; state → off
            A failed pairing fails each that waits for the link that it ended:
            start 1; start 2 socket; securityNeeded 1; lost pairing
            secured unpaired → fail 1 unpaired, fail 2 disconnected; state → off
            A lost link ends the wait for a pairing:
            start 1; securityNeeded 1; lost → fail 1 disconnected; state → off
            A time limit ends the wait for a pairing:
            start 1; securityNeeded 1; timedOut 1 → fail 1 timeout; state → off
            A withdrawn start ends the subscription unless another waits for it:
            start 1; start 2; withdrawn 1 → fail 1 cancelled; state → starting
            withdrawn 2 → fail 2 cancelled, unsubscribe 1; state → off; isAwaited 2 → false
            """)
    }
}

/// Links that are lost and return, daemons that end, attributes that change.
final class SubscriptionLinkTests: SubscriptionTable {
    func testALinkIsLostAndReturns() {
        play(
            """
            At the link's end it unsubscribes:
            on; lost → unsubscribe 1; isNotifying → false; stopped 1 acquired → none; state → suspended
            wanted → signals
            At the link's end it gives the socket back:
            on socket; lost → unsubscribe 1; isNotifying → false; stopped 1 acquired → none
            state → suspended; wanted → socket
            When the link is back there is one start and a gap mark:
            on; lost; ready → subscribe 2 signals gap; began 2 → subscribed gap; isNotifying → true
            A second loss while it is resumed keeps the request:
            on; lost; ready; lost → unsubscribe 2; state → suspended; began 2 → none; state → suspended
            A loss while stopping leaves nothing to resume:
            on; stop 1; lost → fail 1 disconnected; ready → none; stopped 1 → none; state → off
            A loss while starting fails what waits and withdraws the call:
            start 1; start 2; lost forced → unsubscribe 1, fail 1 forced, fail 2 forced; ready → none; state → off
            A loss fails what waits behind a stop:
            start 1; stop 2; start 3; start 4 socket lasting
            lost forced → unsubscribe 1, fail 1 forced, fail 2 forced, fail 3 forced; ready → subscribe 2 socket
            The request can be cancelled without a link:
            on; lost; stop 1 → done 1; ready → none; state → off
            A start without a link fails at once and keeps the request:
            on; lost; start 1 → fail 1 disconnected; state → suspended
            A stop while it is resumed cancels the request:
            on; lost; ready; stop 1 → unsubscribe 2; lost → fail 1 disconnected; state → off
            A subscription that cannot be resumed is reported to the streams:
            on; lost; ready; failed 2 acquired → deliver acquired; state → off
            """)
    }

    func testAnEarlierProcess() {
        play(
            """
            Its subscription is resumed once:
            restored → subscribe 1 signals; wanted → signals; restored → none; began 1 → subscribed; isNotifying → true
            The streams receive the failure of its subscription:
            restored; failed 1 acquired → deliver acquired; state → off
            Its subscription waits for the link:
            unready; restored socket → none; ready → subscribe 1 socket
            """)
    }

    func testInterruptionsUnderALinkThatSeemsToBeUp() {
        play(
            """
            An interruption mostly means that the link is about to be lost:
            on socket; interrupted 1 → none; isNotifying → false; lost → unsubscribe 1; state → suspended
            An interruption under a link ends with a gap mark:
            on; interrupted 1; start 1 → none; began 1 → subscribed gap, done 1; isNotifying → true
            A daemon that replies that there is no link is asked again later:
            on; interrupted 1; failed 1 disconnected → subscribe 2 signals gap again
            A daemon that still executes the last request is asked again later:
            on; lost; ready; failed 2 busy → subscribe 3 signals gap again
            An interrupted subscription can be stopped:
            on; interrupted 1; stop 1 → unsubscribe 1
            """)
    }

    func testEnds() {
        play(
            """
            An invalid characteristic ends its streams and makes no more requests:
            on; invalid → unsubscribe 1, finish invalidated; start 1 → fail 1 invalidated; ready → none; state → off
            An attribute that is removed and returns is subscribed to again:
            on socket; removed → unsubscribe 1; start 1 → none; ready → subscribe 2 socket gap
            began 2 → subscribed gap, done 1
            What is asked before the table is read waits for it:
            unready; linkUp → none; start 1 → none; ready → subscribe 1 signals
            What waits for a table without the attribute is invalid:
            unready; linkUp; start 1; invalid → fail 1 invalidated, finish invalidated
            What waits for the table fails with the link:
            unready; linkUp; start 1; lost → fail 1 disconnected
            If an attribute is removed while starting, the daemon replies:
            start 1; removed → none; failed 1 invalidated → fail 1 invalidated; state → off
            A manager that ends leaves nothing:
            on socket; closed → unsubscribe 1, finish; state → off
            A manager that ends fails what waits:
            start 1; stop 2; closed → unsubscribe 1, fail 1 disconnected, fail 2 disconnected, finish
            """)
    }
}

/// Subscriptions that outlive links, and those that wait for a limited time.
final class SubscriptionSetUpTests: SubscriptionTable {
    func testLinks() {
        play(
            """
            A loss while starting is followed by another start without a gap mark:
            start 1 lasting → subscribe 1 signals; lost → unsubscribe 1; ready → subscribe 2 signals
            began 2 → subscribed, done 1
            Values that came before the loss are followed by a gap:
            start 1 lasting; values 1 → none; lost; ready → subscribe 2 signals gap
            Values that are reported after the loss are followed by a gap too:
            start 1 lasting; lost; values 1 → none; ready → subscribe 2 signals gap
            A loss while a socket is acquired is followed by another acquisition:
            start 1 socket lasting → subscribe 1 socket; lost → unsubscribe 1; began 1 → none
            ready → subscribe 2 socket
            A loss while the table is read is followed by a start:
            unready; linkUp; start 1 lasting → none; lost → none; state → suspended; linkUp; ready → subscribe 1 signals
            It may be asked for without a link:
            unready; start 1 lasting → none; wanted → signals; ready → subscribe 1 signals
            A reply that there is no link is no refusal:
            start 1 lasting; failed 1 disconnected → subscribe 2 signals again
            A refusal that may be the link's end is tried once more:
            start 1 lasting; failed 1 unlikely → subscribe 2 signals again
            failed 2 unlikely → fail 1 unlikely, deliver unlikely
            So is an attribute that may be invalid because of the link's end:
            start 1 lasting; failed 1 invalidated → subscribe 2 signals again
            failed 2 invalidated → fail 1 invalidated, deliver invalidated
            A refusal is final on a later link too:
            start 1 lasting; lost; ready; failed 2 refused → fail 1 refused, deliver refused; state → off
            A first refusal is not delivered to other streams:
            start 1 lasting; failed 1 refused → fail 1 refused
            One that fails with the link leaves the other:
            start 1 lasting; start 2; lost → unsubscribe 1, fail 2 disconnected; state → suspended
            One beside a subscription that fails with the link begins on the next link:
            start 1; start 2 socket lasting → none; lost → unsubscribe 1, fail 1 disconnected
            ready → subscribe 2 socket; began 2 → subscribed, done 2
            Ended attempts are reported from the third on, unless BlueZ has not been asked:
            start 1 lasting; lost → unsubscribe 1; stopped 1; ready; lost → unsubscribe 2; stopped 2; ready
            lost → unsubscribe 3, deliver disconnected; ready; isStarting → false; lost → unsubscribe 4
            An interruption is no attempt:
            start 1 lasting; began 1; interrupted 1; isStarting → false; lost → unsubscribe 1
            stopped 1; ready; lost → unsubscribe 2; stopped 2; ready; lost → unsubscribe 3
            An attempt after an interruption counts:
            start 1 lasting; failed 1 disconnected; isStarting → false; asked 2; isStarting → true
            An established subscription is not lost with another request:
            start 1; began 1; interrupted 1; start 2; lost → unsubscribe 1, fail 2 disconnected
            ready → subscribe 2 signals gap
            """)
    }

    func testEnds() {
        play(
            """
            A stop without a link ends the wait:
            start 1 lasting; lost; stop 2 → fail 1 cancelled, done 2; ready → none; state → off
            A stop ends the wait for a lasting one:
            start 1 lasting; stop 2 → fail 1 cancelled, unsubscribe 1; lost → fail 2 disconnected; state → off
            The manager's end is no failure:
            start 1 lasting; closed → unsubscribe 1, fail 1 cancelled, finish
            A characteristic that is gone on the next link is a failure:
            start 1 lasting; lost; invalid → fail 1 invalidated, finish invalidated
            """)
    }

    func testTimeLimits() {
        play(
            """
            What takes too long is cancelled:
            start 1; timedOut 1 → fail 1 timeout, unsubscribe 1; began 1 → none; state → off
            A socket that takes too long is cancelled:
            start 1 socket; timedOut 1 → fail 1 timeout, unsubscribe 1; began 1 → none; state → off
            The next uses the call that took too long for the first:
            start 1; start 2; timedOut 1 → fail 1 timeout; began 1 → subscribed, done 2
            A lasting one uses the call that took too long for the first:
            start 1; start 2 lasting; timedOut 1 → fail 1 timeout; lost; wanted → signals
            One that waits beside another has its own limit:
            start 1; start 2; timedOut 2 → fail 2 timeout; began 1 → subscribed, done 1
            A lasting one has its limit without a link:
            start 1 lasting; lost; timedOut 1 → fail 1 timeout; state → off
            An established subscription survives the time limit of another request:
            start 1; began 1; interrupted 1; start 2; timedOut 2 → fail 2 timeout; began 1 → subscribed gap
            A stop that takes too long continues:
            start 1; began 1; stop 2; timedOut 2 → fail 2 timeout; stopped 1 → none; state → off
            The time limit of what is settled does nothing:
            start 1; began 1; timedOut 1 → none
            """)
    }
}
