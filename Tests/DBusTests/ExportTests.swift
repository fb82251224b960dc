import BlueCapDBus
import FoundationXML
import BlueCapFutures
import BlueCapReactor
import TestSupport
import XCTest

/// Exported objects as other connections see them, with BlueZ's interfaces.
final class ExportTests: XCTestCase {
    private final class Device: Sendable {
        let name = Locked("Thermo")
        let rssi = Locked<Int16?>(-60)
    }

    private static let device = InterfaceTable<Device>(
        "org.example.Device1",
        methods: [
            .init("Connect") { _, invocation in invocation.reply() },
            .init("ReadValue", in: ["options": "a{sv}"], out: ["value": "ay"]) { _, invocation in
                invocation.reply { $0.bytes([1, 2, 3]) }
            },
        ],
        properties: [
            .init(
                "Name", "s",
                set: { device, value, invocation in
                    guard let name = value.string(), !name.isEmpty else {
                        return invocation.fail(.invalidArguments("A name is not empty."))
                    }
                    device.name.withLock { $0 = name }
                    invocation.reply()
                },
                get: { device, value in value.string(device.name.withLock { $0 }) }),
            .init("RSSI", "n", exists: { $0.rssi.withLock { $0 != nil } }) { device, value in
                value.int16(device.rssi.withLock { $0 } ?? 0)
            },
            .init("UUIDs", "as") { _, value in value.strings(["180d"]) },
        ],
        signals: ["Disconnected": ["reason": "s", "message": "s"]])

    private static let plain = InterfaceTable<Device>(
        "org.example.Plain1", methods: [.init("Do") { _, invocation in invocation.reply() }])

    private struct Stage {
        let bus: BusFixture
        let server: Connection
        let client: Connection
    }

    private let thermo = Device()
    private let path: ObjectPath = "/org/example/hci0/dev_1"
    private var stage: Stage?

    private var bus: BusFixture { get throws { try XCTUnwrap(stage).bus } }
    private var server: Connection { get throws { try XCTUnwrap(stage).server } }
    private var client: Connection { get throws { try XCTUnwrap(stage).client } }

    override func setUpWithError() throws {
        let bus = try BusFixture.loopback()
        let stage = Stage(bus: bus, server: try bus.connect(), client: try bus.connect())
        stage.server.export(ExportedObject("/", isObjectManager: true))
        stage.server.export(ExportedObject(path, [Self.device.bound(to: thermo), Self.plain.bound(to: thermo)]))
        bus.loop.run()
        self.stage = stage
    }

    override func tearDown() {
        stage = nil
    }

    private func call(
        _ interface: String, _ member: String, at path: ObjectPath? = nil,
        body: (inout MessageWriter) -> Void = { _ in }
    ) throws -> Message {
        try bus.call(
            client,
            .call(
                destination: server.uniqueName, path: path ?? self.path, interface: interface, member: member,
                body: body))
    }

    private func assertRefused(
        _ name: String, _ text: String, line: UInt = #line, _ body: @autoclosure () throws -> Message
    ) {
        XCTAssertThrowsError(try body(), line: line) { error in
            XCTAssertEqual(error as? DBusError, DBusError(name: name, message: text), line: line)
        }
    }

    // MARK: Methods

    func testAMethodIsFoundByInterfaceNameAndSignature() throws {
        XCTAssertEqual(try call("org.example.Device1", "Connect").signature, "")
        let reply = try call("org.example.Device1", "ReadValue") { $0.dictionary(key: "s", value: "v") { _ in } }
        var reader = reply.reader
        XCTAssertEqual(reader.bytes(), [1, 2, 3])
    }

    func testWhatIsNotThereIsRefusedInLibdbusesWords() {
        let unknown = DBusError.Name.unknownMethod
        assertRefused(
            unknown, "Method \"Fly\" with signature \"\" on interface \"org.example.Device1\" doesn't exist\n",
            try call("org.example.Device1", "Fly"))
        assertRefused(
            unknown, "Method \"Connect\" with signature \"s\" on interface \"org.example.Device1\" doesn't exist\n",
            try call("org.example.Device1", "Connect") { $0.string("x") })
        assertRefused(
            unknown, "Method \"Connect\" with signature \"\" on interface \"org.example.Other\" doesn't exist\n",
            try call("org.example.Other", "Connect"))
        assertRefused(
            unknown, "Method \"Connect\" with signature \"\" on interface \"org.example.Device1\" doesn't exist\n",
            try call("org.example.Device1", "Connect", at: "/org/example"))
        assertRefused(
            DBusError.Name.unknownObject,
            "Method \"Connect\" with signature \"\" on interface \"org.example.Device1\" doesn't exist\n",
            try call("org.example.Device1", "Connect", at: "/org/example/hci1"))
    }

    func testAnObjectThatIsNoLongerExportedIsUnknown() throws {
        try server.unexport(path)
        try bus.loop.run()
        XCTAssertThrowsError(try call("org.example.Device1", "Connect", at: "/org/example")) { error in
            XCTAssertEqual((error as? DBusError)?.name, DBusError.Name.unknownObject)
        }
    }

    func testEveryPathAnswersAsAPeer() throws {
        XCTAssertEqual(try call("org.freedesktop.DBus.Peer", "Ping", at: "/nowhere").signature, "")
        var reader = try call("org.freedesktop.DBus.Peer", "GetMachineId", at: "/").reader
        XCTAssertEqual(reader.string()?.count, 32)
        XCTAssertThrowsError(try call("org.freedesktop.DBus.Peer", "Pong"))
    }

    func testACallThatWantsNoAnswerGetsNone() throws {
        let answers = Locked(0)
        let subscription = try client.subscribe(MatchRule()) { _ in answers.withLock { $0 += 1 } }
        for member in ["Connect", "Fly"] {
            try client.send(
                .call(destination: server.uniqueName, path: path, interface: "org.example.Device1", member: member))
        }
        try bus.loop.run()
        XCTAssertEqual(answers.withLock { $0 }, 0)
        subscription.cancel()
    }

    // MARK: Properties

    private let properties = "org.freedesktop.DBus.Properties"

    private func get(_ interface: String, _ name: String) throws -> Message {
        try call(properties, "Get") {
            $0.string(interface)
            $0.string(name)
        }
    }

    private func set(_ name: String, _ signature: String, _ value: (inout MessageWriter) -> Void) throws -> Message {
        try call(properties, "Set") {
            $0.string("org.example.Device1")
            $0.string(name)
            $0.variant(signature, value)
        }
    }

    func testPropertiesAreRead() throws {
        var reader = try get("org.example.Device1", "Name").reader
        XCTAssertEqual(reader.variant { $0.string() }, "Thermo")

        reader = try call(properties, "GetAll") { $0.string("org.example.Device1") }.reader
        XCTAssertEqual(reader.describeAll(), #"{"Name": <"Thermo">, "RSSI": <-60>, "UUIDs": <["180d"]>}"#)
        thermo.rssi.withLock { $0 = nil }
        reader = try call(properties, "GetAll") { $0.string("org.example.Device1") }.reader
        XCTAssertEqual(reader.describeAll(), #"{"Name": <"Thermo">, "UUIDs": <["180d"]>}"#)
    }

    func testReadingWhatIsNotThereIsRefusedInBlueZsWords() {
        let invalid = DBusError.Name.invalidArguments
        assertRefused(invalid, "No such interface 'org.example.Other'", try get("org.example.Other", "Name"))
        assertRefused(invalid, "No such property 'Colour'", try get("org.example.Device1", "Colour"))
        thermo.rssi.withLock { $0 = nil }
        assertRefused(invalid, "No such property 'RSSI'", try get("org.example.Device1", "RSSI"))
        assertRefused(
            invalid, "No such interface 'org.example.Other'",
            try call(properties, "GetAll") { $0.string("org.example.Other") })
        assertRefused(
            DBusError.Name.unknownMethod,
            "Method \"Get\" with signature \"s\" on interface \"org.freedesktop.DBus.Properties\" doesn't exist\n",
            try call(properties, "Get") { $0.string("org.example.Device1") })
    }

    func testPropertiesAreWritten() throws {
        _ = try set("Name", "s") { $0.string("Kitchen") }
        XCTAssertEqual(thermo.name.withLock { $0 }, "Kitchen")
        assertRefused(DBusError.Name.invalidArguments, "A name is not empty.", try set("Name", "s") { $0.string("") })
    }

    func testWritingWhatCannotBeWrittenIsRefusedInBlueZsWords() {
        assertRefused(
            DBusError.Name.unknownProperty, "No such property 'Colour'", try set("Colour", "s") { $0.string("red") })
        assertRefused(
            DBusError.Name.propertyReadOnly, "Property 'RSSI' is not writable", try set("RSSI", "n") { $0.int16(0) })
        assertRefused(
            DBusError.Name.invalidSignature, "Invalid signature for 'Name'", try set("Name", "u") { $0.uint32(1) })
    }

    func testChangesAreAnnouncedWithWhatHasGoneAsInvalidated() throws {
        let seen = Locked<[String]>([])
        let subscription = try client.subscribe(MatchRule(path: path, interface: properties)) { message in
            var reader = message.reader
            let text = reader.describeAll()
            seen.withLock { $0.append(text) }
        }
        try bus.loop.run()
        thermo.rssi.withLock { $0 = nil }
        try server.send(.propertiesChanged(path, Self.device.bound(to: thermo), ["RSSI", "Name"]))
        try bus.loop.run()
        XCTAssertEqual(seen.withLock { $0 }, [#""org.example.Device1", {"Name": <"Thermo">}, ["RSSI"]"#])
        subscription.cancel()
    }

    // MARK: Object manager

    func testTheObjectManagerReturnsAllObjectsBelowItInBlueZsOrder() throws {
        var reader = try call("org.freedesktop.DBus.ObjectManager", "GetManagedObjects", at: "/").reader
        XCTAssertEqual(
            reader.describeAll(),
            """
            {/org/example/hci0/dev_1: {"org.freedesktop.DBus.Introspectable": {}, "org.example.Device1": \
            {"Name": <"Thermo">, "RSSI": <-60>, "UUIDs": <["180d"]>}, "org.freedesktop.DBus.Properties": {}, \
            "org.example.Plain1": {}}}
            """)
        XCTAssertThrowsError(try call("org.freedesktop.DBus.ObjectManager", "GetManagedObjects"))
    }

    func testTenThousandObjectsAreServed() throws {
        let root: ObjectPath = "/org/example/hci0"
        for number in 0..<10_000 {
            try server.export(ExportedObject(root.appending("dev_n\(number)"), [Self.device.bound(to: thermo)]))
        }
        _ = try call("org.example.Device1", "Connect", at: "/org/example/hci0/dev_n9999")
        var reader = try call("org.freedesktop.DBus.ObjectManager", "GetManagedObjects", at: "/").reader
        var paths: [ObjectPath] = []
        reader.dictionary { entry in if let path = entry.objectPath() { paths.append(path) } }
        XCTAssertEqual(paths.count, 10_001)
        XCTAssertEqual(paths.last, "/org/example/hci0/dev_n9999")
    }

    // MARK: Introspection

    func testIntrospectionIsXMLWithEverythingInIt() throws {
        var reader = try call("org.freedesktop.DBus.Introspectable", "Introspect").reader
        let outline = try XCTUnwrap(Outline(xml: try XCTUnwrap(reader.string())))
        XCTAssertEqual(
            outline.interfaces,
            [
                "org.freedesktop.DBus.Introspectable", "org.example.Device1", "org.freedesktop.DBus.Properties",
                "org.example.Plain1",
            ])
        XCTAssertTrue(outline.lines.contains("method ReadValue"))
        XCTAssertTrue(outline.lines.contains("arg options a{sv} in"))
        XCTAssertTrue(outline.lines.contains("arg value ay out"))
        XCTAssertTrue(outline.lines.contains("property Name s readwrite"))
        XCTAssertTrue(outline.lines.contains("property RSSI n read"))
        XCTAssertTrue(outline.lines.contains("signal Disconnected"))
        XCTAssertEqual(outline.children, [])
    }

    func testIntrospectionLeadsFromTheRootToEveryObject() throws {
        var path = ObjectPath.root
        for child in ["org", "example", "hci0", "dev_1"] {
            var reader = try call("org.freedesktop.DBus.Introspectable", "Introspect", at: path).reader
            let outline = try XCTUnwrap(Outline(xml: try XCTUnwrap(reader.string())))
            XCTAssertEqual(outline.children, [child])
            path = path.appending(child)
        }
        var reader = try call("org.freedesktop.DBus.Introspectable", "Introspect", at: "/nowhere").reader
        XCTAssertEqual(try XCTUnwrap(Outline(xml: try XCTUnwrap(reader.string()))).lines, [])
    }
}

/// Returns the lines of an introspection document.
private final class Outline: NSObject, XMLParserDelegate {
    private(set) var lines: [String] = []
    private(set) var interfaces: [String] = []
    private(set) var children: [String] = []

    init?(xml: String) {
        super.init()
        let parser = XMLParser(data: Data(xml.utf8))
        parser.delegate = self
        guard parser.parse() else { return nil }
    }

    func parser(
        _ parser: XMLParser, didStartElement element: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) {
        guard let name = attributes["name"] else { return }
        switch element {
        case "interface": interfaces.append(name)
        case "node": children.append(name)
        default:
            let rest = ["type", "direction", "access"].compactMap { attributes[$0] }
            lines.append(([element, name] + rest).joined(separator: " "))
        }
    }
}
