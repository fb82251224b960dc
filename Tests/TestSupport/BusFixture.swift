package import BlueCapDBus
package import Foundation
import BlueCapFutures
package import BlueCapReactor

/// A bus for a test and the loop that everything on it runs on, driven by the test: in-process, or a real daemon.
///
/// On both kinds time is virtual, so that time-outs take no time; the daemon itself works in real time.
package final class BusFixture {
    package let loop = ManualLoop()
    package let address: String
    private var loopback: LoopbackBus?
    private var daemon: PrivateBus?

    private init(makeLoopback: Bool) throws {
        if makeLoopback {
            let bus = LoopbackBus(loop: loop)
            loopback = bus
            address = bus.address
        } else {
            let bus = try PrivateBus()
            daemon = bus
            address = bus.address
        }
    }

    package static func loopback() throws -> BusFixture { try BusFixture(makeLoopback: true) }
    package static func daemon() throws -> BusFixture { try BusFixture(makeLoopback: false) }

    /// Ends the bus without closing the connections first, as if the bus daemon had been killed.
    package func end() {
        loopback?.close()
        daemon?.stop()
    }

    /// Runs the loop until the condition holds. Returns false if it does not hold after some seconds.
    package func wait(limit: TimeInterval = 10, until condition: () -> Bool) -> Bool {
        loop.wait(until: condition, limit: limit)
    }

    /// The same, for conditions that need virtual time: repeats `step` until the condition holds.
    package func wait(limit: TimeInterval = 10, until condition: () -> Bool, step: () -> Void) -> Bool {
        let end = Date(timeIntervalSinceNow: limit)
        while !condition() {
            guard Date() < end else { return false }
            step()
            _ = loop.wait(until: condition, limit: 0.001)
        }
        return true
    }

    /// A connection that the bus has let in.
    package func connect(
        stateChanged: @escaping @Sendable (ConnectionState) -> Void = { _ in }
    ) throws -> Connection {
        let connection = Connection.open(.custom(address), loop: loop, stateChanged: stateChanged)
        guard wait(until: { connection.uniqueName != nil }) else { throw NotInTime() }
        return connection
    }

    /// A loop for a connection that is driven apart from the others. An in-process bus has only one.
    package func separateLoop() -> ManualLoop { loopback == nil ? ManualLoop() : loop }

    /// Calls and waits for the answer.
    package func call(
        _ connection: Connection, _ message: Message, timeout: TimeInterval = Connection.defaultTimeout
    ) throws -> Message {
        let result = Locked<Result<Message, DBusError>?>(nil)
        connection.call(message, timeout: timeout) { answer in result.withLock { $0 = answer } }
        guard wait(until: { result.withLock { $0 != nil } }), let answer = result.withLock({ $0 }) else {
            throw NotInTime()
        }
        return try answer.get()
    }

    /// Waits until the bus has handled all messages that were sent before, and its replies and signals have been received.
    package func settle(_ connections: Connection...) throws {
        for connection in connections {
            _ = try call(
                connection,
                .call(
                    destination: "org.freedesktop.DBus", path: "/org/freedesktop/DBus",
                    interface: "org.freedesktop.DBus", member: "GetId"))
        }
    }
}

/// A condition that a test waited for did not hold in time.
package struct NotInTime: Error {
    package init() {}
}
