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

    func run() { simulator.run() }

    /// Returns what was received since the last call, one word or line for each signal.
    func takeLog() -> [String] { log.take() }

    /// Lets happen what is due, and compares the signals since the last call.
    func expectLog(_ lines: String..., note: String = "", file: StaticString = #filePath, line: UInt = #line) {
        simulator.run()
        XCTAssertEqual(takeLog(), lines, note, file: file, line: line)
    }

    // MARK: Calls

    /// The interface of an object that has most of its methods and properties.
    private static func interface(at path: ObjectPath) -> String {
        switch path.lastElement.prefix(4) {
        case "": InterfaceName.objectManager
        case "blue": InterfaceName.agentManager
        case "dev_": InterfaceName.device
        case "serv": InterfaceName.service
        case "char": InterfaceName.characteristic
        case "desc": InterfaceName.descriptor
        default: InterfaceName.adapter
        }
    }

    /// Without a body, the methods that take options alone are given none.
    private func message(
        _ member: String, _ interface: String?, _ path: ObjectPath, _ body: ((inout MessageWriter) -> Void)?
    ) -> Message {
        let takesOptions = ["ReadValue", "AcquireNotify", "AcquireWrite"].contains(member)
        return .call(
            destination: "org.bluez", path: path, interface: interface ?? Self.interface(at: path), member: member,
            body: body ?? { if takesOptions { $0.options() } })
    }

    /// Calls a method and drives the loop until its reply arrives.
    func call(
        _ member: String, on interface: String? = nil, at path: ObjectPath = "/org/bluez/hci0",
        within seconds: Double = 60, body: ((inout MessageWriter) -> Void)? = nil
    ) -> Result<Message, DBusError>? {
        let answer = Locked<Result<Message, DBusError>?>(nil)
        let call = message(member, interface, path, body)
        connection.call(call, timeout: seconds) { result in answer.withLock { $0 = result } }
        simulator.advance(until: { answer.withLock { $0 != nil } }, limit: seconds + 1)
        return answer.withLock { $0 }
    }

    /// Calls a method and returns when the daemon has received the call.
    func begin(
        _ member: String, at path: ObjectPath = "/org/bluez/hci0", body: ((inout MessageWriter) -> Void)? = nil
    ) -> PendingCall {
        let pending = PendingCall()
        connection.call(message(member, nil, path, body), timeout: 120) { pending.settle($0) }
        simulator.run()
        return pending
    }

    /// The error's name; nil for success.
    func error(
        of member: String, on interface: String? = nil, at path: ObjectPath = "/org/bluez/hci0",
        body: ((inout MessageWriter) -> Void)? = nil
    ) -> DBusError? {
        switch call(member, on: interface, at: path, body: body) {
        case .success: nil
        case .failure(let error): error
        case nil: DBusError(name: "no answer", message: "")
        }
    }

    /// Sets a property of the adapter.
    func set(_ name: String, _ value: BusValue) -> DBusError? {
        error(of: "Set", on: InterfaceName.properties) { writer in
            writer.string(InterfaceName.adapter)
            writer.string(name)
            writer.value(.variant(value))
        }
    }

    func setFilter(_ entries: KeyValuePairs<String, BusValue>, on adapter: ObjectPath = "/org/bluez/hci0") -> DBusError?
    {
        error(of: "SetDiscoveryFilter", at: adapter) { writer in
            writer.value(.options(entries.map { NamedValue(name: $0.key, value: $0.value) }))
        }
    }

    /// Sets a filter of the low-energy transport and starts.
    func startScanning(
        on adapter: ObjectPath = "/org/bluez/hci0", file: StaticString = #filePath, line: UInt = #line
    ) {
        XCTAssertNil(setFilter(["Transport": .string("le")], on: adapter), file: file, line: line)
        XCTAssertNil(error(of: "StartDiscovery", at: adapter), file: file, line: line)
    }

    /// One property, as text.
    func property(
        _ name: String, of interface: String? = nil, at path: ObjectPath = "/org/bluez/hci0"
    ) -> String? {
        let result = call("Get", on: InterfaceName.properties, at: path) { writer in
            writer.string(interface ?? Self.interface(at: path))
            writer.string(name)
        }
        guard case .success(let reply)? = result else { return nil }
        var reader = reply.reader
        return reader.variant { Self.text(of: &$0) }
    }

    /// The paths that `GetManagedObjects` lists.
    func objects() -> [String] {
        guard case .success(let reply)? = call("GetManagedObjects", at: "/") else { return [] }
        var paths: [String] = []
        var reader = reply.reader
        reader.dictionary { entry in
            if let path = entry.objectPath() { paths.append(path.rawValue) }
        }
        return paths
    }

    /// All properties of an object's interface, `Name=value`, in their order.
    func properties(at path: ObjectPath) -> [String] {
        let result = call("GetAll", on: InterfaceName.properties, at: path) { $0.string(Self.interface(at: path)) }
        guard case .success(let reply)? = result else { return [] }
        var reader = reply.reader
        var lines: [String] = []
        reader.dictionary { entry in
            let name = entry.string() ?? ""
            lines.append(name + "=" + (entry.variant { Self.text(of: &$0) } ?? ""))
        }
        return lines
    }

    func read(_ path: ObjectPath, offset: UInt16? = nil) -> [UInt8]? {
        guard case .success(let reply)? = call("ReadValue", at: path, body: { $0.options(offset: offset) }) else {
            return nil
        }
        var reader = reply.reader
        return reader.bytes()
    }

    func write(_ bytes: [UInt8], to path: ObjectPath, type: String? = nil) -> DBusError? {
        error(of: "WriteValue", at: path) { writer in
            writer.bytes(bytes)
            writer.options(type: type)
        }
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

extension MessageWriter {
    /// The dictionary of `ReadValue` and `WriteValue`.
    mutating func options(offset: UInt16? = nil, type: String? = nil) {
        dictionary(key: "s", value: "v") { dictionary in
            if let offset { dictionary.entry("offset", variant: "q") { $0.uint16(offset) } }
            if let type { dictionary.entry("type", variant: "s") { $0.string(type) } }
        }
    }
}

extension DBusError {
    static func bluez(_ name: String, _ message: String) -> DBusError {
        DBusError(name: "org.bluez.Error." + name, message: message)
    }
}

extension Locked<[String]> {
    /// Empties the list, and returns what it had.
    fileprivate func take() -> [String] {
        withLock { list in
            defer { list = [] }
            return list
        }
    }
}

/// A program whose methods BlueZ calls. It records the calls.
protocol CalledProgram {
    var client: BusClient { get }
    var log: Locked<[String]> { get }
}

extension CalledProgram {
    /// Returns the calls of BlueZ since the last call of this function.
    func takeCalls() -> [String] { log.take() }

    /// Lets happen what is due, and compares the calls since the last call.
    func expectCalls(_ lines: String..., note: String = "", file: StaticString = #filePath, line: UInt = #line) {
        client.run()
        XCTAssertEqual(takeCalls(), lines, note, file: file, line: line)
    }
}
