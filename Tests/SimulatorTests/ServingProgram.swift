import BlueCapDBus
import BlueCapFutures
import XCTest

@testable import BlueZSimulator

/// A program that serves attributes and advertises. It records each call: the calls of BlueZ with their options, and the
/// replies.
final class ServingProgram: CalledProgram, Sendable {
    typealias Handler = @Sendable (Message) -> Message?

    let client: BusClient
    private let simulator: Simulator
    let log = Locked<[String]>([])
    private let objects = Locked<[ObjectState]>([])
    private let handlers = Locked<[String: Handler]>([:])

    init(_ simulator: Simulator, _ objects: [ObjectState] = []) {
        self.simulator = simulator
        client = BusClient(simulator)
        self.objects.withLock { $0 = objects }
        client.connection.answerCalls { [weak self] in self?.received($0) }
        simulator.run()
    }

    /// Sets the reply to a member; nil for none.
    func answer(_ member: String, _ handler: @escaping Handler) {
        handlers.withLock { $0[member] = handler }
    }

    func set(_ objects: [ObjectState]) { self.objects.withLock { $0 = objects } }

    /// A program that serves and advertises, and a central that is connected.
    static func scene(
        _ objects: [ObjectState] = heart, bluez: BlueZVersion = .v5_66,
        central: VirtualCentral = VirtualCentral("C0:FF:EE:00:CE:01", name: "Phone", mtu: 100)
    ) -> (Simulator, ServingProgram, CentralLink) {
        let simulator = Simulator.inProcess(room: .empty, bluez: bluez)
        let program = ServingProgram(simulator, objects + [connectable])
        program.serve()
        let link = simulator.connect(central)
        simulator.advance(by: 1)
        XCTAssertEqual(link.state, .connected)
        _ = program.takeCalls()
        _ = program.client.takeLog()
        return (simulator, program, link)
    }

    // MARK: Registering

    /// Registers the application and the advertisement.
    func serve(on adapter: ObjectPath = "/org/bluez/hci0") {
        XCTAssertNil(register(on: adapter))
        XCTAssertNil(advertise(on: adapter))
    }

    func register(
        _ path: ObjectPath = "/app", on adapter: ObjectPath = "/org/bluez/hci0", file: StaticString = #filePath,
        line: UInt = #line
    ) -> DBusError? {
        client.error(of: "RegisterApplication", on: "org.bluez.GattManager1", at: adapter) { writer in
            writer.objectPath(path)
            writer.options()
        }
    }

    func unregister(_ path: ObjectPath = "/app", on adapter: ObjectPath = "/org/bluez/hci0") -> DBusError? {
        client.error(of: "UnregisterApplication", on: "org.bluez.GattManager1", at: adapter) { writer in
            writer.objectPath(path)
        }
    }

    func advertise(_ path: ObjectPath = "/advert", on adapter: ObjectPath = "/org/bluez/hci0") -> DBusError? {
        client.error(of: "RegisterAdvertisement", on: "org.bluez.LEAdvertisingManager1", at: adapter) { writer in
            writer.objectPath(path)
            writer.options()
        }
    }

    func stopAdvertising(_ path: ObjectPath = "/advert", on adapter: ObjectPath = "/org/bluez/hci0") -> DBusError? {
        client.error(of: "UnregisterAdvertisement", on: "org.bluez.LEAdvertisingManager1", at: adapter) { writer in
            writer.objectPath(path)
        }
    }

    /// Signals that properties of one of its objects have changed.
    func say(_ path: String, _ interface: String, _ changed: [NamedValue], invalidated: [String] = []) {
        client.connection.send(
            .signal(
                .propertiesChanged(path: path, interface: interface, changed: changed, invalidated: invalidated)))
        simulator.run()
    }

    func notify(_ path: String, _ bytes: [UInt8]) {
        say(path, InterfaceName.characteristic, [NamedValue(name: "Value", value: .bytes(bytes))])
    }

    // MARK: Answering

    private func received(_ message: Message) {
        let outline = Self.outline(of: message)
        log.withLock { $0.append(outline) }
        let member = message.member ?? ""
        if let handler = handlers.withLock({ $0[member] }) {
            if let answer = handler(message) { client.connection.send(answer) }
            return
        }
        client.connection.send(answer(to: message))
    }

    private func answer(to message: Message) -> Message {
        let path = message.path?.rawValue ?? ""
        let objects = objects.withLock { $0 }
        switch message.member {
        case "GetManagedObjects" where objects.contains { $0.path.hasPrefix(path + "/") }:
            return .reply(to: message) { $0.value(.objects(objects.filter { $0.path.hasPrefix(path + "/") })) }
        case "GetAll":
            var reader = message.reader
            let interface = reader.string()
            let found = objects.first { $0.path == path }?.interfaces.first { $0.name == interface }
            guard let found else { break }
            return .reply(to: message) { $0.value(.options(found.properties)) }
        case "ReadValue": return .reply(to: message) { $0.bytes([UInt8]()) }
        case "Set", "WriteValue", "StartNotify", "StopNotify", "Confirm", "Release": return .reply(to: message)
        default: break
        }
        return .error(to: message, DBusError(name: DBusError.Name.unknownMethod, message: "No such method"))
    }

    /// `char0 WriteValue 0102 {offset=2 link=LE mtu=247}`; the device and the interface are left out.
    private static func outline(of message: Message) -> String {
        var reader = message.reader
        var words = [String(message.path?.lastElement ?? ""), message.member ?? ""]
        while !reader.isAtEnd {
            var options: [String] = []
            let isDictionary = reader.dictionary { entry in
                let name = entry.string() ?? ""
                let value = entry.variant { BusClient.text(of: &$0) } ?? ""
                if name != "device" { options.append("\(name)=\(value)") }
            }
            if isDictionary {
                words.append("{\(options.joined(separator: " "))}")
            } else if let value = reader.variant({ BusClient.text(of: &$0) }) {
                words.append(value)
            } else {
                let text = BusClient.text(of: &reader)
                if !text.hasPrefix("org.bluez.") { words.append(text) }
            }
        }
        return words.joined(separator: " ")
    }

    // MARK: Objects

    static func service(
        _ name: String, _ uuid: String, isPrimary: Bool = true, handle: UInt16? = nil, includes: [String] = []
    ) -> ObjectState {
        var properties = [
            NamedValue(name: "UUID", value: .string(uuid)), NamedValue(name: "Primary", value: .bool(isPrimary)),
        ]
        if let handle { properties.append(NamedValue(name: "Handle", value: .uint16(handle))) }
        if !includes.isEmpty { properties.append(NamedValue(name: "Includes", value: .objectPaths(includes))) }
        return object("/app/" + name, InterfaceName.service, properties)
    }

    static func characteristic(
        _ name: String, _ uuid: String, _ flags: [String], handle: UInt16? = nil, sockets: [String] = []
    ) -> ObjectState {
        let service = name.split(separator: "/")[0]
        var properties = [
            NamedValue(name: "UUID", value: .string(uuid)),
            NamedValue(name: "Service", value: .objectPath("/app/" + service)),
            NamedValue(name: "Flags", value: .strings(flags)),
        ]
        if let handle { properties.append(NamedValue(name: "Handle", value: .uint16(handle))) }
        for socket in sockets { properties.append(NamedValue(name: socket, value: .bool(false))) }
        return object("/app/" + name, InterfaceName.characteristic, properties)
    }

    static func descriptor(_ name: String, _ uuid: String, _ flags: [String]) -> ObjectState {
        let parts = name.split(separator: "/")
        return object(
            "/app/" + name, InterfaceName.descriptor,
            [
                NamedValue(name: "UUID", value: .string(uuid)),
                NamedValue(name: "Characteristic", value: .objectPath("/app/\(parts[0])/\(parts[1])")),
                NamedValue(name: "Flags", value: .strings(flags)),
            ])
    }

    static func advertisement(_ properties: [(String, BusValue)], at path: String = "/advert")
        -> ObjectState
    {
        object(path, InterfaceName.advertisement, properties.map { NamedValue(name: $0.0, value: $0.1) })
    }

    private static func object(_ path: String, _ interface: String, _ properties: [NamedValue]) -> ObjectState {
        ObjectState(path: path, interfaces: [InterfaceState(name: interface, properties: properties)])
    }

    /// A heart rate service with attributes of all kinds.
    static let heart = [
        service("s0", "180d", handle: 0),
        characteristic("s0/c0", "2a37", ["notify", "indicate"], handle: 0),
        characteristic("s0/c1", "2a38", ["read"], handle: 0),
        characteristic("s0/c2", "2a39", ["write", "read", "reliable-write"], handle: 0),
        descriptor("s0/c2/d0", "2901", ["read", "write"]),
        characteristic("s0/c3", "2a3a", ["write", "write-without-response"]),
    ]

    /// A connectable advertisement.
    static let connectable = advertisement([
        ("Type", .string("peripheral")), ("ServiceUUIDs", .strings(["180d"])), ("LocalName", .string("Strap")),
        ("Discoverable", .bool(true)),
    ])
}

/// The bytes of the advertisement and the scan response, or the error's text.
func sentBytes(
    _ properties: [(String, BusValue)], type: String = "peripheral", isLowEnergyOnly: Bool = false,
    _ bluez: BlueZVersion = .v5_66
) -> String {
    let simulator = Simulator.inProcess(
        room: .empty, adapters: [VirtualAdapter(isLowEnergyOnly: isLowEnergyOnly)], bluez: bluez)
    let program = ServingProgram(simulator, [ServingProgram.advertisement([("Type", .string(type))] + properties)])
    if let error = program.advertise() { return error.message }
    let sent = simulator.advertisements[0]
    return Hexadecimal.text(sent.data) + " " + Hexadecimal.text(sent.scanResponse)
}

// MARK: Registering

extension BusValue {
    /// The `ManufacturerData` of an advertisement.
    static func manufacturerData(_ company: UInt16, _ bytes: [UInt8]) -> BusValue {
        .dictionary(key: "q", [Entry(key: .uint16(company), value: .bytes(bytes))])
    }

    /// The `ServiceData` of an advertisement.
    static func serviceData(_ uuid: String, _ bytes: [UInt8]) -> BusValue {
        .dictionary(key: "s", [Entry(key: .string(uuid), value: .bytes(bytes))])
    }
}
