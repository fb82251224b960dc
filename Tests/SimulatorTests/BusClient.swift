import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import XCTest

@testable import BlueZSimulator

/// A client of the simulated daemon that uses only D-Bus: it makes calls, and records each signal.
final class BusClient: Sendable {
    let connection: Connection
    private let simulator: Simulator
    private let log = Locked<[String]>([])
    private let subscriptions: [CancelHandle]

    init(_ simulator: Simulator) {
        self.simulator = simulator
        let connection = Connection.open(.custom(simulator.address), loop: simulator.loop)
        self.connection = connection
        let log = log
        subscriptions = [
            connection.subscribe(MatchRule(sender: "org.bluez")) { message in
                // The bus's signal about our own name comes before the owner of org.bluez is known.
                guard !message.hasSender("org.freedesktop.DBus") else { return }
                log.withLock { $0.append(Self.outline(of: message)) }
            },
            connection.subscribe(
                MatchRule(sender: "org.freedesktop.DBus", member: "NameOwnerChanged", arg0: "org.bluez")
            ) { message in
                var reader = message.reader
                _ = reader.string()
                let old = reader.string() ?? ""
                let new = reader.string() ?? ""
                log.withLock { $0.append(new.isEmpty ? "gone" : old.isEmpty ? "back" : "replaced") }
            },
        ]
        simulator.run()
    }

    var name: String { connection.uniqueName ?? "" }

    /// Returns what was received since the last call, one word or line for each signal.
    func takeLog() -> [String] {
        log.withLock { log in
            defer { log = [] }
            return log
        }
    }

    /// Lets happen what is due, and compares the signals since the last call.
    func expectLog(_ lines: String..., note: String = "", file: StaticString = #filePath, line: UInt = #line) {
        simulator.run()
        XCTAssertEqual(takeLog(), lines, note, file: file, line: line)
    }

    // MARK: Calls

    /// Calls a method and drives the loop until its reply arrives.
    func call(
        _ member: String, on interface: String = "org.bluez.Adapter1", at path: ObjectPath = "/org/bluez/hci0",
        within seconds: Double = 60, body: (inout MessageWriter) -> Void = { _ in }
    ) -> Result<Message, DBusError>? {
        let answer = Locked<Result<Message, DBusError>?>(nil)
        let call = Message.call(destination: "org.bluez", path: path, interface: interface, member: member, body: body)
        connection.call(call, timeout: seconds) { result in answer.withLock { $0 = result } }
        simulator.advance(until: { answer.withLock { $0 != nil } }, limit: seconds + 1)
        return answer.withLock { $0 }
    }

    /// Calls a method and returns when the daemon has received the call.
    func begin(
        _ member: String, on interface: String, at path: ObjectPath, body: (inout MessageWriter) -> Void = { _ in }
    ) -> PendingCall {
        let pending = PendingCall()
        let call = Message.call(destination: "org.bluez", path: path, interface: interface, member: member, body: body)
        connection.call(call, timeout: 120) { pending.settle($0) }
        simulator.run()
        return pending
    }

    /// The error's name; nil for success.
    func error(
        of member: String, on interface: String = "org.bluez.Adapter1", at path: ObjectPath = "/org/bluez/hci0",
        body: (inout MessageWriter) -> Void = { _ in }
    ) -> DBusError? {
        switch call(member, on: interface, at: path, body: body) {
        case .success: nil
        case .failure(let error): error
        case nil: DBusError(name: "no answer", message: "")
        }
    }

    /// Sets a filter of the low-energy transport and starts.
    func startScanning(file: StaticString = #filePath, line: UInt = #line) {
        XCTAssertNil(
            error(of: "SetDiscoveryFilter") { writer in
                writer.dictionary(key: "s", value: "v") { $0.entry("Transport", variant: "s") { $0.string("le") } }
            }, file: file, line: line)
        XCTAssertNil(error(of: "StartDiscovery"), file: file, line: line)
    }

    /// One property, as text.
    func property(
        _ name: String, of interface: String = "org.bluez.Adapter1", at path: ObjectPath = "/org/bluez/hci0"
    ) -> String? {
        let result = call("Get", on: "org.freedesktop.DBus.Properties", at: path) { writer in
            writer.string(interface)
            writer.string(name)
        }
        guard case .success(let reply)? = result else { return nil }
        var reader = reply.reader
        return reader.variant { Self.text(of: &$0) }
    }

    /// The paths that `GetManagedObjects` lists.
    func objects() -> [String] {
        guard case .success(let reply)? = call("GetManagedObjects", on: "org.freedesktop.DBus.ObjectManager", at: "/")
        else { return [] }
        var paths: [String] = []
        var reader = reply.reader
        reader.dictionary { entry in
            if let path = entry.objectPath() { paths.append(path.rawValue) }
        }
        return paths
    }

    // MARK: Outlines

    /// `+ dev_…`, `- dev_…`, or `dev_… RSSI=-60 -TxPower`.
    private static func outline(of message: Message) -> String {
        var reader = message.reader
        switch message.member ?? "" {
        case "InterfacesAdded":
            return "+ " + (reader.objectPath()?.lastElement ?? "")
        case "InterfacesRemoved":
            return "- " + (reader.objectPath()?.lastElement ?? "")
        case "PropertiesChanged":
            reader.skip()
            var words = [String(message.path?.lastElement ?? "")]
            reader.dictionary { entry in
                let name = entry.string() ?? ""
                words.append(name + "=" + (entry.variant { text(of: &$0) } ?? ""))
            }
            words += (reader.strings() ?? []).map { "-" + $0 }
            return words.joined(separator: " ")
        default:
            return message.member ?? ""
        }
    }

    static func text(of reader: inout MessageReader) -> String {
        if let text = reader.string() { return text }
        if let flag = reader.bool() { return "\(flag)" }
        if let number = reader.int16() { return "\(number)" }
        if let number = reader.uint16() { return "\(number)" }
        if let number = reader.byte() { return "\(number)" }
        if let number = reader.uint32() { return "\(number)" }
        if let path = reader.objectPath() { return path.rawValue }
        if let list = reader.strings() { return list.joined(separator: ",") }
        if let bytes = reader.bytes() { return Hexadecimal.text(bytes) }
        return reader.signature
    }
}
