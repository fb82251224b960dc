import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import TestSupport
import XCTest

typealias BusBodiesTests = ConnectionTests

/// Connections on the in-process bus; WireTests has the same tests on a real daemon.
final class ConnectionTests: XCTestCase {
    func bodies() throws -> BusBodies { BusBodies(on: try .loopback()) }
}

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
