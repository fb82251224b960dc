import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import XCTest

/// The tests of connections, once: each test target plays them on its own kind of bus.
package struct BusBodies {
    let bus: BusFixture

    package init(on bus: BusFixture) { self.bus = bus }

    // MARK: Connecting

    package func connectionsAreGivenNames() throws {
        let states = Locked<[ConnectionState]>([])
        let first = try bus.connect { state in states.withLock { $0.append(state) } }
        let second = try bus.connect()
        let name = try XCTUnwrap(first.uniqueName)

        XCTAssertTrue(name.hasPrefix(":"))
        XCTAssertNotEqual(name, second.uniqueName)
        XCTAssertEqual(states.withLock { $0 }, [.opened(uniqueName: name)])
    }

    package func callsMadeBeforeTheBusHasLetUsInAreAnsweredInTheirOrder() throws {
        let answers = Locked<[Int]>([])
        let connection = Connection.open(.custom(bus.address), loop: bus.loop)
        for number in 0..<10 {
            connection.call(.toTheBus("GetId")) { result in
                if case .success = result { answers.withLock { $0.append(number) } }
            }
        }
        XCTAssertTrue(bus.wait { answers.withLock { $0.count } == 10 })
        XCTAssertEqual(answers.withLock { $0 }, Array(0..<10))
    }

    package func closingFailsEveryCallOnceAndIsReported() throws {
        let states = Locked<[ConnectionState]>([])
        let server = try bus.connect()
        server.export(ExportedObject("/echo", [silence.bound(to: Keeper())]))
        let client = try bus.connect { state in states.withLock { $0.append(state) } }
        let answers = Locked<[Result<String, DBusError>]>([])
        for _ in 0..<3 {
            client.call(.echo("Wait", to: server)) { result in answers.withLock { $0.append(result.map { "\($0)" }) } }
        }
        try bus.settle(client)
        client.close()
        client.call(.echo("Wait", to: server)) { result in answers.withLock { $0.append(result.map { "\($0)" }) } }

        XCTAssertTrue(bus.wait { answers.withLock { $0.count } == 4 })
        XCTAssertEqual(answers.withLock { $0 }, Array(repeating: .failure(.closed), count: 4))
        XCTAssertEqual(states.withLock { $0.last }, .closed(.closed))
        XCTAssertEqual(states.withLock { $0.count }, 2)
        XCTAssertNil(client.uniqueName)
    }

    package func theLossOfTheBusFailsEveryCallOnceAndIsReported() throws {
        let states = Locked<[ConnectionState]>([])
        let server = try bus.connect()
        server.export(ExportedObject("/echo", [silence.bound(to: Keeper())]))
        let client = try bus.connect { state in states.withLock { $0.append(state) } }
        let errors = Locked<[String]>([])
        for _ in 0..<150 {
            client.call(.echo("Wait", to: server)) { result in
                if case .failure(let error) = result { errors.withLock { $0.append(error.name) } }
            }
        }
        try bus.settle(server)
        bus.end()

        XCTAssertTrue(bus.wait { states.withLock { $0.count } == 2 })
        XCTAssertEqual(errors.withLock { $0 }, Array(repeating: DBusError.Name.disconnected, count: 150))
        guard case .closed(let error)? = states.withLock({ $0.last }) else {
            return XCTFail("The connection did not report its end.")
        }
        XCTAssertEqual(error.name, DBusError.Name.disconnected)
    }

    package func releasingAConnectionClosesIt() throws {
        let watcher = try bus.connect()
        let owners = Locked<[String?]>([])
        var connection: Connection? = try bus.connect()
        let name = try XCTUnwrap(connection?.uniqueName)
        let watch = watcher.watchName(name) { owner in owners.withLock { $0.append(owner) } }
        XCTAssertTrue(bus.wait { owners.withLock { $0 } == [name] })

        connection = nil
        XCTAssertTrue(bus.wait { owners.withLock { $0 } == [name, nil] })
        watch.cancel()
        withExtendedLifetime(connection) {}
    }

    // MARK: Stages

    func echoPair() throws -> (client: Connection, server: Connection) {
        let server = try bus.connect()
        let table = InterfaceTable<BusFixture.Unit>(
            "org.example.Echo",
            methods: [
                .init("Echo", in: ["text": "s"], out: ["text": "s"]) { _, invocation in
                    var reader = invocation.reader
                    let text = reader.string() ?? ""
                    invocation.reply { $0.string(text) }
                },
                .init("Refuse") { _, invocation in
                    invocation.fail(DBusError(name: "org.bluez.Error.NotReady", message: "Resource Not Ready"))
                },
            ])
        server.export(ExportedObject("/echo", [table.bound(to: .init())]))
        return (try bus.connect(), server)
    }

    /// Takes calls and keeps them.
    var silence: InterfaceTable<Keeper> {
        InterfaceTable("org.example.Echo", methods: [.init("Wait") { keeper, invocation in keeper.keep(invocation) }])
    }
}

/// Keeps received calls until a test replies to them or forgets them.
final class Keeper: Sendable {
    private let kept = Locked<[Invocation]>([])

    var count: Int { kept.withLock { $0.count } }

    func keep(_ invocation: Invocation) { kept.withLock { $0.append(invocation) } }

    func answer(_ index: Int) { kept.withLock { $0[index] }.reply() }

    func forget() {
        let all = kept.withLock { kept in
            defer { kept = [] }
            return kept
        }
        withExtendedLifetime(all) {}
    }
}

extension BusFixture {
    /// A target for tables that need none.
    package struct Unit: Sendable {
        package init() {}
    }
}

extension Message {
    static func toTheBus(_ member: String) -> Message {
        .call(
            destination: "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus",
            member: member)
    }

    static func echo(
        _ member: String, to server: Connection, body: (inout MessageWriter) -> Void = { _ in }
    ) -> Message {
        .call(destination: server.uniqueName, path: "/echo", interface: "org.example.Echo", member: member, body: body)
    }

    static func test(
        _ path: ObjectPath, _ member: String, body: (inout MessageWriter) -> Void = { _ in }
    ) -> Message {
        .signal(path: path, interface: "org.example.Test", member: member, body: body)
    }
}

extension Result where Failure == DBusError {
    var failureName: String? {
        if case .failure(let error) = self { error.name } else { nil }
    }
}
