import BlueCapFutures
import BlueCapReactor
import XCTest

@testable import BlueCapDBus

/// The owner of a name, on a bus with replies that the D-Bus specification does not allow.
final class NameOwnerTests: XCTestCase {
    private let loop = ManualLoop()
    private let owners = Locked<[String?]>([])
    private let states = Locked<[ConnectionState]>([])

    private var kept: (ConnectionCore, NameWatch)?

    /// Opens a connection to a bus with the given replies, and watches a name.
    private func watch(_ replies: [String: @Sendable (Message) -> Message]) {
        let bus = ScriptedBus(replies)
        let core = ConnectionCore(loop: loop, transport: bus) { [states] state in states.withLock { $0.append(state) } }
        let watch = NameWatch(name: "org.bluez") { [owners] owner in owners.withLock { $0.append(owner) } }
        bus.loop = loop
        loop.post {
            core.start()
            core.signals.add(watch, on: core)
        }
        loop.run()
        kept = (core, watch)
    }

    func testAnEmptyNameIsNoOwner() {
        watch(["GetNameOwner": { .reply(to: $0) { $0.string("") } }])
        XCTAssertEqual(owners.withLock { $0 }, [nil])
    }

    func testANameWithoutAnOwnerHasNone() {
        watch(["GetNameOwner": { .error(to: $0, DBusError(name: DBusError.Name.nameHasNoOwner, message: "")) }])
        XCTAssertEqual(owners.withLock { $0 }, [nil])
    }

    /// The name counted as one without an owner.
    func testARefusalToNameTheOwnerEndsTheConnectionWithIt() {
        let denied = DBusError(name: DBusError.Name.accessDenied, message: "Rejected")
        watch(["GetNameOwner": { .error(to: $0, denied) }])
        XCTAssertEqual(owners.withLock { $0 }, [])
        XCTAssertEqual(states.withLock { $0.last }, .closed(denied))
    }

    func testAnOwnerOfAnotherTypeEndsTheConnectionWithBothSignatures() {
        watch(["GetNameOwner": { .reply(to: $0) { $0.uint32(7) } }])
        XCTAssertEqual(owners.withLock { $0 }, [])
        guard case .closed(let error)? = states.withLock({ $0.last }) else { return XCTFail("open") }
        XCTAssertEqual(error.message, "The reply to GetNameOwner has the signature \"u\" instead of \"s\".")
    }

    func testAnEmptyNameOfThisConnectionIsNone() {
        watch(["Hello": { .reply(to: $0) { $0.string("") } }])
        guard case .closed(let error)? = states.withLock({ $0.last }) else { return XCTFail("open") }
        XCTAssertEqual(error.message, "The bus has answered Hello with \"\", which is not a bus name.")
    }
}

/// A bus that takes its replies from a table. Unchecked because it is used on the loop only.
private final class ScriptedBus: Transport, @unchecked Sendable {
    private var answers: [String: @Sendable (Message) -> Message] = [
        "Hello": { .reply(to: $0) { $0.string(":1.1") } },
        "AddMatch": { .reply(to: $0) },
    ]
    var loop: ManualLoop?
    private weak var receiver: (any TransportReceiver)?
    private var lastSerial: UInt32 = 0

    init(_ answers: [String: @Sendable (Message) -> Message]) { self.answers.merge(answers) { $1 } }

    func start(_ receiver: any TransportReceiver) throws(DBusError) { self.receiver = receiver }

    func send(_ message: Message) -> UInt32? {
        lastSerial += 1
        let call = message.carried(serial: lastSerial, sender: ":1.1")
        if let answer = answers[call.member ?? ""]?(call) {
            let reply = answer.carried(serial: lastSerial, sender: "org.freedesktop.DBus")
            loop?.post { self.receiver?.received(reply) }
        }
        return lastSerial
    }

    let hasOutput = false
    func close() { receiver = nil }
}
