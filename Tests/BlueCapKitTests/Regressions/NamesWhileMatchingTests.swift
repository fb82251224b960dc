import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import XCTest

/// A match rule can name a sender, so that the receivers of a change of names depend on the names. The loopback bus read its
/// table of names while it was changing it, which is an exclusivity violation and ended the process. Optimized code read the
/// table for each connection, so that no program in the release configuration could have a simulator in process.
final class NamesWhileMatchingTests: XCTestCase {
    func testAChangeOfNamesIsSentToARuleWithAWellKnownSender() {
        let loop = ManualLoop()
        let bus = LoopbackBus(loop: loop)
        let received = Locked(0)
        let listener = Connection.open(.custom(bus.address), loop: loop)
        let owner = Connection.open(.custom(bus.address), loop: loop)
        let subscription = listener.subscribe(MatchRule(sender: "org.example", member: "NameOwnerChanged")) { _ in
            received.withLock { $0 += 1 }
        }
        loop.run()

        owner.requestName("org.example")
        loop.run()

        // The bus has sent it, and not the owner of that name.
        XCTAssertEqual(received.withLock { $0 }, 0)
        withExtendedLifetime(subscription) {}
    }
}
