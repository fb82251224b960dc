import BlueCapKit
import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import XCTest

/// A `bluetoothd` that is a list of objects: for exports that no version of the simulator has.
///
/// It has one adapter, and by default one device, found, connected, and with resolved services. It accepts every call,
/// and values are read as empty. On the manual loop's thread only, like the test.
final class ScriptedDaemon: @unchecked Sendable {
    /// A property's value: its signature and what writes it.
    struct Value {
        let signature: String
        let write: (inout MessageWriter) -> Void
    }

    typealias Interfaces = [String: [String: Value]]

    static let adapter: ObjectPath = "/org/bluez/hci0"
    static let device = adapter.appending("dev_C0_26_DF_12_34_56")

    let loop = ManualLoop()
    let bus: LoopbackBus
    /// The members of the calls to attributes.
    private(set) var attributeCalls: [String] = []
    /// The members of the calls about pairings.
    private(set) var pairingCalls: [String] = []
    /// What replaces the reply to a call, by its member: the name of a D-Bus error.
    var refusals: [String: String] = [:]
    /// The members of calls without a reply.
    var silences: Set<String> = []
    private var agent: String?
    private let objects: [(path: ObjectPath, interfaces: Interfaces)]
    private let connection: Connection
    private(set) var manager: CentralManager?

    /// - Parameters:
    ///   - device: Properties beside those that each connected device has.
    ///   - battery: The percentage that the device's `Battery1` has; without one there is no such interface.
    ///   - attributes: What is below the device, by the last elements of the paths.
    ///   - others: How many further devices there are, found and not connected.
    init(
        device: [String: Value] = [:], battery: UInt8? = nil, attributes: [(String, Interfaces)] = [], others: Int = 0
    ) {
        bus = LoopbackBus(loop: loop)
        var objects: [(path: ObjectPath, interfaces: Interfaces)] = [
            (
                Self.adapter,
                [
                    "org.bluez.Adapter1": [
                        "Address": .string("00:1A:7D:DA:71:13"), "AddressType": .string("public"),
                        "Powered": .bool(true), "Discovering": .bool(false),
                    ]
                ]
            )
        ]
        var interfaces = Self.device("C0:26:DF:12:34:56", isConnected: true, device)
        if let battery { interfaces["org.bluez.Battery1"] = ["Percentage": .byte(battery)] }
        objects.append((Self.device, interfaces))
        for (path, interfaces) in attributes { objects.append((Self.device.appending(path), interfaces)) }
        for number in 0..<others {
            let bytes = [0xC0, 0, 0, 0, number >> 8, number & 0xFF].map { String(format: "%02X", $0) }
            objects.append(
                (
                    Self.adapter.appending("dev_" + bytes.joined(separator: "_")),
                    Self.device(bytes.joined(separator: ":"), isConnected: false, [:])
                ))
        }
        self.objects = objects
        connection = Connection.open(.custom(bus.address), loop: loop)
        connection.answerCalls { [weak self] in self?.answer($0) }
        connection.requestName("org.bluez")
        loop.run()
    }

    private static func device(_ address: String, isConnected: Bool, _ more: [String: Value]) -> Interfaces {
        let properties: [String: Value] = [
            "Address": .string(address), "AddressType": .string("random"), "Alias": .string(address),
            "Adapter": .path(adapter), "RSSI": .int16(-60), "Connected": .bool(isConnected),
            "ServicesResolved": .bool(isConnected),
        ]
        return ["org.bluez.Device1": properties.merging(more) { $1 }]
    }

    /// What a new manager finds in a scan, the connected device first.
    func found(_ count: Int = 1) throws -> [Peripheral] {
        let manager = try CentralManager(configuration: .init(busAddress: bus.address))
        self.manager = manager
        XCTAssertTrue(loop.advance(until: { manager.poweredOn }, limit: 5))
        let scan = manager.startScanning()
        XCTAssertTrue(loop.advance(until: { manager.peripherals.count >= count }, limit: 5))
        withExtendedLifetime(scan) {}
        let address = "C0:26:DF:12:34:56"
        return manager.peripherals.filter { $0.address == address }
            + manager.peripherals.filter { $0.address != address }
    }

    /// The connected device, with its services discovered.
    func connected() throws -> Peripheral {
        let peripheral = try XCTUnwrap(found().first)
        peripheral.connect()
        XCTAssertTrue(loop.advance(until: { peripheral.state == .connected }, limit: 5))
        let services: Future<Peripheral> = peripheral.discoverAllServices()
        XCTAssertNil(error(of: services))
        for service in peripheral.services {
            let characteristics: Future<Service> = service.discoverAllCharacteristics()
            XCTAssertNil(error(of: characteristics))
        }
        return peripheral
    }

    /// Lets virtual time pass until the future is complete, and gives the error that it failed with.
    func error<T>(of future: Future<T>, file: StaticString = #filePath, line: UInt = #line) -> (any Error)? {
        XCTAssertTrue(loop.advance(until: { future.completed }, limit: 60), "never", file: file, line: line)
        guard case .failure(let error)? = future.result else { return nil }
        return error
    }

    /// Signals changed properties of the connected device, in one message.
    func change(_ properties: [String: Value]) {
        connection.send(
            .signal(path: Self.device, interface: "org.freedesktop.DBus.Properties", member: "PropertiesChanged") {
                $0.string("org.bluez.Device1")
                $0.dictionary(key: "s", value: "v") { Self.write(properties, &$0) }
                $0.strings([])
            })
        loop.run()
    }

    /// Calls the agent that was registered last, about the connected device. The replies are added to `replies`: the
    /// member or the name of an error, and a passkey.
    func askAgent(
        _ member: String, to replies: Locked<[String]>, _ body: @escaping (inout MessageWriter) -> Void = { _ in }
    ) {
        let call = Message.call(
            destination: agent, path: "/org/bluecap/agent", interface: "org.bluez.Agent1", member: member
        ) {
            if member != "Cancel" { $0.objectPath(Self.device) }
            body(&$0)
        }
        connection.call(call, timeout: 60) { result in
            var text = member
            switch result {
            case .success(let reply):
                var reader = reply.reader
                if member == "RequestPasskey" { text += " \(reader.uint32() ?? 0)" }
            case .failure(let error):
                text += " \(error.name)"
            }
            replies.withLock { [text] in $0.append(text) }
        }
        loop.run()
    }

    private func answer(_ call: Message) {
        if call.interface == "org.bluez.GattCharacteristic1" { attributeCalls.append(call.member ?? "") }
        if let member = call.member {
            let ofPairings = ["RegisterAgent", "UnregisterAgent", "RequestDefaultAgent", "Pair", "CancelPairing"]
            if ofPairings.contains(member) || member == "RemoveDevice" { pairingCalls.append(member) }
            if member == "RegisterAgent" { agent = call.sender }
            if let refusal = refusals[member] {
                return connection.send(Message.error(to: call, DBusError(name: refusal, message: "Not paired")))
            }
        }
        if silences.contains(call.member ?? "") { return }
        connection.send(
            .reply(to: call) { writer in
                switch call.member {
                case "GetManagedObjects": self.writeObjects(&writer)
                case "ReadValue": writer.bytes([UInt8]())
                default: break
                }
            })
    }

    private func writeObjects(_ writer: inout MessageWriter) {
        writer.dictionary(key: "o", value: "a{sa{sv}}") { list in
            for (path, interfaces) in objects {
                list.entry { object in
                    object.objectPath(path)
                    object.dictionary(key: "s", value: "a{sv}") { list in
                        for (name, properties) in interfaces {
                            list.entry { interface in
                                interface.string(name)
                                interface.dictionary(key: "s", value: "v") { Self.write(properties, &$0) }
                            }
                        }
                    }
                }
            }
        }
    }

    private static func write(_ properties: [String: Value], _ writer: inout MessageWriter) {
        for (name, value) in properties {
            writer.entry { entry in
                entry.string(name)
                entry.variant(value.signature) { value.write(&$0) }
            }
        }
    }
}

extension ScriptedDaemon.Value {
    static func string(_ value: String) -> Self { Self(signature: "s") { $0.string(value) } }
    static func strings(_ values: [String]) -> Self { Self(signature: "as") { $0.strings(values) } }
    static func path(_ value: ObjectPath) -> Self { Self(signature: "o") { $0.objectPath(value) } }
    static func bool(_ value: Bool) -> Self { Self(signature: "b") { $0.bool(value) } }
    static func byte(_ value: UInt8) -> Self { Self(signature: "y") { $0.byte(value) } }
    static func int16(_ value: Int16) -> Self { Self(signature: "n") { $0.int16(value) } }
    static func bytes(_ value: [UInt8]) -> Self { Self(signature: "ay") { $0.bytes(value) } }

    /// `AdvertisingData`.
    static func dataByType(_ entries: [UInt8: [UInt8]]) -> Self {
        Self(signature: "a{yv}") { writer in
            writer.dictionary(key: "y", value: "v") { list in
                for (type, bytes) in entries {
                    list.entry { entry in
                        entry.byte(type)
                        entry.variant("ay") { $0.bytes(bytes) }
                    }
                }
            }
        }
    }
}

extension ScriptedDaemon {
    /// A service that the device exports.
    static func service(_ uuid: String) -> Interfaces {
        ["org.bluez.GattService1": ["UUID": .string(uuid), "Device": .path(device), "Primary": .bool(true)]]
    }

    /// A characteristic of a service that the device exports, without the property `MTU`.
    static func characteristic(_ uuid: String, of service: String, _ flags: [String]) -> Interfaces {
        [
            "org.bluez.GattCharacteristic1": [
                "UUID": .string(uuid), "Service": .path(device.appending(service)), "Flags": .strings(flags),
            ]
        ]
    }
}
