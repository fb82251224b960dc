import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import TestSupport
import XCTest

/// Tests that need a real bus daemon and a real thread.
final class DBusDaemonTests: XCTestCase {
    private let limit = 20.0

    func testAPrivateBusLeavesNothingBehind() throws {
        let bus = try PrivateBus()
        let socket = try XCTUnwrap(path(in: bus.address))
        XCTAssertTrue(FileManager.default.fileExists(atPath: socket))

        bus.stop()
        bus.stop()
        XCTAssertFalse(FileManager.default.fileExists(atPath: (socket as NSString).deletingLastPathComponent))
    }

    func testTwoPrivateBusesLiveApart() throws {
        let first = try PrivateBus()
        let second = try PrivateBus()
        XCTAssertNotEqual(first.address, second.address)

        // The second was started while the pipe that ends the first was open. It must not have inherited that pipe.
        first.stop()
        let loop = ManualLoop()
        let connection = Connection.open(.custom(second.address), loop: loop)
        XCTAssertTrue(loop.wait(until: { connection.uniqueName != nil }, limit: limit))
    }

    func testABusThatIsNotThereIsAnErrorAndNothingElse() {
        let addresses = ["unix:path=/nonexistent/bus", "nonsense", "", "tcp:port=1", "loopback:name=absent"]
        for address in addresses {
            let states = Locked<[ConnectionState]>([])
            let answer = Locked<DBusError?>(nil)
            let loop = ManualLoop()
            let connection = Connection.open(.custom(address), loop: loop) { state in
                states.withLock { $0.append(state) }
            }
            connection.call(.call(destination: "a.b", path: "/", interface: "a.b", member: "C")) { result in
                if case .failure(let error) = result { answer.withLock { $0 = error } }
            }
            loop.run()
            XCTAssertEqual(states.withLock { $0.count }, 1, address)
            guard case .closed(let error)? = states.withLock({ $0.first }) else { return XCTFail(address) }
            XCTAssertNotEqual(error.name, DBusError.Name.disconnected, address)
            XCTAssertEqual(answer.withLock { $0?.name }, DBusError.Name.disconnected, address)
        }
    }

    func testTheLossOfTheBusOnAThreadLeavesTheProcessAlive() throws {
        let bus = try PrivateBus()
        let (lost, opened) = (expectation(description: "lost"), expectation(description: "opened"))
        let events = Locked<[String]>([])
        let connection = Connection.open(.custom(bus.address)) { state in
            switch state {
            case .opened: opened.fulfill()
            case .closed(let error):
                events.withLock { $0.append("closed: \(error.name)") }
                lost.fulfill()
            }
        }
        wait(for: [opened], timeout: limit)
        let held = Locked<[Message]>([])
        connection.answerCalls { message in held.withLock { $0.append(message) } }
        for _ in 0..<150 {
            let call = Message.call(destination: connection.uniqueName, path: "/", interface: "a.b", member: "Wait")
            connection.call(call) { result in
                if case .failure(let error) = result { events.withLock { $0.append(error.name) } }
            }
        }
        // A call that is made after the end fails after the state is reported, so all calls must be sent before.
        connection.loop.wait {}
        bus.stop()
        wait(for: [lost], timeout: limit)
        let name = DBusError.Name.disconnected
        XCTAssertEqual(events.withLock { $0 }, Array(repeating: name, count: 150) + ["closed: \(name)"])
    }

    func testAFloodOfSignalsComesWholeAndInOrder() throws {
        let bus = try PrivateBus()
        let count = UInt32(50_000)
        let (sender, receiver) = (Connection.open(.custom(bus.address)), Connection.open(.custom(bus.address)))
        let state = Locked((next: UInt32(0), disorder: 0))
        let (ready, done) = (expectation(description: "ready"), expectation(description: "done"))
        let subscription = receiver.subscribe(
            MatchRule(interface: "org.example.Test"), accepted: { _ in ready.fulfill() }
        ) { message in
            var reader = message.reader
            let number = reader.uint32()
            let isLast = state.withLock { state in
                if number != state.next { state.disorder += 1 }
                state.next += 1
                return state.next == count
            }
            if isLast { done.fulfill() }
        }
        wait(for: [ready], timeout: limit)
        for number in 0..<count {
            sender.send(.signal(path: "/", interface: "org.example.Test", member: "Flood") { $0.uint32(number) })
        }
        wait(for: [done], timeout: 60)
        XCTAssertEqual(state.withLock { $0.disorder }, 0)
        subscription.cancel()
    }

    func testOutputIsReportedDrainedWhenTheBusHasItAll() throws {
        let bus = try PrivateBus()
        let connection = Connection.open(.custom(bus.address))
        let drained = expectation(description: "drained")
        let payload = Data(count: 50_000)
        for _ in 0..<200 {
            connection.send(.signal(path: "/", interface: "org.example.Test", member: "Big") { $0.bytes(payload) })
        }
        connection.whenDrained { drained.fulfill() }
        wait(for: [drained], timeout: limit)
    }

    func testCallsReturnTheirReplyOrTheirError() throws {
        let bus = try PrivateBus()
        let connection = Connection.open(.custom(bus.address))
        let (listed, refused) = (expectation(description: "listed"), expectation(description: "refused"))
        func toTheBus(_ member: String) -> Message {
            .call(
                destination: "org.freedesktop.DBus", path: "/org/freedesktop/DBus",
                interface: "org.freedesktop.DBus", member: member)
        }
        connection.call(toTheBus("ListNames")) { result in
            guard case .success(let reply) = result else { return }
            var reader = reply.reader
            if reader.strings()?.contains("org.freedesktop.DBus") == true { listed.fulfill() }
        }
        connection.call(toTheBus("NoSuchMethod")) { result in
            guard case .failure(let error) = result else { return }
            if error.name == DBusError.Name.unknownMethod { refused.fulfill() }
        }
        wait(for: [listed, refused], timeout: limit)
    }

    private func path(in address: String) -> String? {
        address.split(separator: ",").first?.split(separator: "=").last.map(String.init)
    }
}
