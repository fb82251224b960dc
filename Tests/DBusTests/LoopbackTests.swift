import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import XCTest

/// First steps on the in-process bus, in virtual time.
final class LoopbackTests: XCTestCase {
    func testAConnectionIsGivenAUniqueName() {
        let loop = ManualLoop()
        let bus = LoopbackBus(loop: loop)
        let states = Locked<[ConnectionState]>([])
        let connection = Connection.open(.custom(bus.address)) { state in states.withLock { $0.append(state) } }

        loop.run()

        XCTAssertEqual(states.withLock { $0 }, [.opened(uniqueName: ":1.1")])
        XCTAssertEqual(connection.uniqueName, ":1.1")
    }
}
