import BlueCapDBus
import BlueCapFutures
import XCTest

@testable import BlueZSimulator

/// A program with a pairing agent, which records the calls of BlueZ.
final class PairingProgram: CalledProgram, Sendable {
    /// The reply of the agent.
    enum Reply: Sendable {
        case accept
        case passkey(UInt32)
        case reject
        /// No reply until ``PairingProgram/answerNow(_:)``.
        case later
    }

    let client: BusClient
    private let simulator: Simulator
    let log = Locked<[String]>([])
    private let reply: Locked<Reply>
    private let open = Locked<Message?>(nil)
    /// The number that was displayed or was to be compared.
    private let seen = Locked<UInt32?>(nil)

    init(_ simulator: Simulator, _ capability: String? = nil, reply: Reply = .accept) {
        self.simulator = simulator
        self.reply = Locked(reply)
        client = BusClient(simulator)
        client.connection.answerCalls { [weak self] in self?.received($0) }
        simulator.run()
        if let capability { XCTAssertNil(register(capability)) }
        simulator.run()
        _ = client.takeLog()
    }

    var number: UInt32? { seen.withLock { $0 } }

    func setReply(_ reply: Reply) { self.reply.withLock { $0 = reply } }

    /// Replies to the pending question.
    func answerNow(_ reply: Reply) {
        if let message = open.withLock({ $0 }) { send(reply, to: message) }
        simulator.run()
    }

    // MARK: Calls

    func register(_ capability: String) -> DBusError? {
        client.error(of: "RegisterAgent", at: "/org/bluez") { writer in
            writer.objectPath("/agent")
            writer.string(capability)
        }
    }

    func unregister() -> DBusError? {
        client.error(of: "UnregisterAgent", at: "/org/bluez") { $0.objectPath("/agent") }
    }

    func requestDefault() -> DBusError? {
        client.error(of: "RequestDefaultAgent", at: "/org/bluez") { $0.objectPath("/agent") }
    }

    /// Scans until BlueZ has found everything.
    func scan() {
        client.startScanning()
        simulator.advance(by: 2)
        XCTAssertNil(client.error(of: "StopDiscovery"))
        simulator.run()
        _ = client.takeLog()
    }

    func device(_ member: String, _ path: ObjectPath) -> DBusError? {
        client.error(of: member, at: path)
    }

    func begin(_ member: String, _ path: ObjectPath) -> PendingCall {
        client.begin(member, at: path)
    }

    /// `Paired` and `Bonded`.
    func state(_ path: ObjectPath) -> [String?] {
        ["Paired", "Bonded"].map { client.property($0, of: "org.bluez.Device1", at: path) }
    }

    // MARK: Answering

    private func received(_ message: Message) {
        let member = message.member ?? ""
        var words = [member]
        var reader = message.reader
        if let device = reader.objectPath() { words.append(String(device.lastElement.suffix(2))) }
        if let number = reader.uint32() { seen.withLock { $0 = number } }
        log.withLock { $0.append(words.joined(separator: " ")) }
        switch member {
        case "Cancel", "Release", "DisplayPasskey": client.connection.send(.reply(to: message))
        default:
            let reply = reply.withLock { $0 }
            if case .later = reply { open.withLock { $0 = message } } else { send(reply, to: message) }
        }
    }

    private func send(_ reply: Reply, to message: Message) {
        switch reply {
        case .accept: client.connection.send(.reply(to: message))
        case .passkey(let passkey): client.connection.send(.reply(to: message) { $0.uint32(passkey) })
        case .reject: client.connection.send(.error(to: message, .bluez("Rejected", "no")))
        case .later: break
        }
    }
}
