import BlueCapDBus
import BlueCapFutures
import BlueCapGATT
import BlueCapReactor
import XCTest

@testable import BlueCapBlueZ

/// Gives the answers that a test sets, and records the requests.
final class RecordingDelegate: ServerDelegate {
    struct State {
        var log: [String] = []
        var value = Data([1, 2, 3])
        var refusal: CBATTError.Code?
        var isSilent = false
        var held: [ServerAnswer] = []
        var writes: [ServerRequest] = []
        var reads: [ServerRequest] = []
        var subscribers: [ServerAttributeID: [ServerSubscriber]] = [:]
    }

    let state = Locked(State())
    var log: [String] { state.withLock { $0.log } }

    func requested(_ request: ServerRequest, _ answer: ServerAnswer) {
        let (value, refusal, isSilent) = state.withLock { state -> (Data, CBATTError.Code?, Bool) in
            guard request.value != nil else {
                state.reads.append(request)
                state.log.append("read \(request.attribute.rawValue)")
                return (state.value, state.refusal, false)
            }
            state.writes.append(request)
            state.log.append("write \(request.attribute.rawValue)")
            if state.isSilent { state.held.append(answer) }
            return (Data(), state.refusal, state.isSilent)
        }
        guard !isSilent else { return }
        if let refusal { answer.refuse(refusal) } else { answer.succeed(value) }
    }

    func writeAuthorizationRequested(_ request: ServerRequest, _ answer: ServerAnswer) {
        state.withLock { $0.log.append("authorize \(request.attribute.rawValue)") }
        answer.refuse(.insufficientAuthorization)
    }

    func subscribersChanged(of characteristic: ServerAttributeID, to subscribers: [ServerSubscriber]) {
        state.withLock { state in
            let before = state.subscribers.updateValue(subscribers, forKey: characteristic) ?? []
            if subscribers.isEmpty {
                state.log.append("-\(characteristic.rawValue)")
            } else if subscribers.count > before.count {
                state.log.append("+\(characteristic.rawValue)")
            } else if subscribers.count < before.count {
                state.log.append("left \(characteristic.rawValue)")
            }
        }
    }

    func subscribers(of characteristic: UInt64) -> [ServerSubscriber] {
        state.withLock { $0.subscribers[ServerAttributeID(characteristic)] ?? [] }
    }
}

/// The updates of a characteristic, and the outcomes of those that were sent.
final class RecordingSource: UpdateSource {
    private struct State {
        var waiting: [ServerUpdate] = []
        var underWay: [ServerUpdate] = []
        var outcomes: [String] = []
    }

    private let state = Locked(State())
    private let ended: @Sendable () -> Void
    var outcomes: [String] { state.withLock { $0.outcomes } }

    /// - Parameter ended: Called after each outcome.
    init(ended: @escaping @Sendable () -> Void = {}) { self.ended = ended }

    func add(_ update: ServerUpdate) { state.withLock { $0.waiting.append(update) } }

    func nextUpdate() -> ServerUpdate? {
        state.withLock { state in
            guard !state.waiting.isEmpty else { return nil }
            state.underWay.append(state.waiting.removeFirst())
            return state.underWay.last
        }
    }

    func updateEnded(_ outcome: UpdateOutcome) {
        state.withLock { state in
            let update = state.underWay.isEmpty ? nil : state.underWay.removeFirst()
            state.outcomes.append("\(outcome) \(update.map { [UInt8]($0.value) } ?? [])")
        }
        ended()
    }
}

/// An application, and a hand-made daemon that registers it as `bluetoothd` does.
final class ServerScene {

    let daemon = FakeDaemon()
    let client: BlueZClient
    let delegate = RecordingDelegate()
    let states = Locked<[RegistrationState]>([])
    let source = RecordingSource()
    private(set) var application: ServerApplication?
    /// What the application exports, by path: interfaces, and their properties with the signatures of the values.
    private(set) var objects: [String: [String: [String: String]]] = [:]
    private(set) var root: ObjectPath?
    private var owner = ""
    private let signals = Locked<[[UInt8]]>([])
    private var subscription: CancelHandle?

    /// - Parameter minor: The version of BlueZ is 5 and this; `nil` for one that does not say.
    init(powered: Bool = true, minor: UInt8? = nil) {
        client = BlueZClient.shared(at: daemon.bus.address)
        var adapter = BlueZMessages.adapter(powered: powered)
        if let minor { adapter[1].1.append(("Modalias", .string("usb:v1D6Bp0246d05" + String(format: "%02X", minor)))) }
        daemon.objects = [(BlueZMessages.adapterPath, adapter)]
        daemon.silent = ["RegisterApplication"]
        daemon.appear()
    }

    func serve(_ service: ServerService) {
        let states = states
        application = ServerApplication(service, on: .hci0, client: client, delegate: delegate) { state in
            states.withLock { $0.append(state) }
        }
        daemon.loop.run()
    }

    func end() {
        application?.end()
        daemon.loop.run()
    }

    /// Reads the objects of the application that waits to be registered, gives each a handle, and accepts the registration.
    func accept(file: StaticString = #filePath, line: UInt = #line) {
        guard let call = daemon.unanswered.first(where: { $0.member == "RegisterApplication" }) else {
            return XCTFail("Nothing waits to be registered.", file: file, line: line)
        }
        var reader = call.reader
        root = reader.objectPath()
        owner = call.sender ?? ""
        read()
        daemon.answerLate("RegisterApplication")
    }

    private func read() {
        guard let root else { return }
        var objects: [String: [String: [String: String]]] = [:]
        guard
            case .success(let reply) = call(
                root, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", body: { _ in })
        else { return }
        var reader = reply.reader
        reader.dictionary { entry in
            guard let path = entry.objectPath() else { return }
            var interfaces: [String: [String: String]] = [:]
            entry.dictionary { entry in
                guard let name = entry.string() else { return }
                var properties: [String: String] = [:]
                entry.dictionary { entry in
                    guard let name = entry.string() else { return }
                    properties[name] = entry.variant(Self.text(of:))
                }
                interfaces[name] = properties
            }
            objects[String(path.rawValue.dropFirst(root.rawValue.count))] = interfaces
        }
        self.objects = objects
    }

    private static func text(of value: inout MessageReader) -> String {
        if let string = value.string() { return string }
        if let number = value.uint16() { return "\(number)" }
        if let strings = value.strings() { return strings.joined(separator: ",") }
        if let path = value.objectPath() { return path.rawValue }
        if let bool = value.bool() { return "\(bool)" }
        return value.signature
    }

    /// Calls a method of ours as the daemon.
    @discardableResult
    func call(
        _ path: ObjectPath, _ interface: String, _ member: String, from connection: Connection? = nil,
        body: (inout MessageWriter) -> Void
    ) -> Result<Message, DBusError>? {
        let result = start(path, interface, member, from: connection, body: body)
        return result.withLock { $0 }
    }

    func start(
        _ path: ObjectPath, _ interface: String, _ member: String, from connection: Connection? = nil,
        body: (inout MessageWriter) -> Void
    ) -> Locked<Result<Message, DBusError>?> {
        let answer = Locked<Result<Message, DBusError>?>(nil)
        let message = Message.call(destination: owner, path: path, interface: interface, member: member, body: body)
        (connection ?? daemon.connection)?.call(message, timeout: 60) { result in answer.withLock { $0 = result } }
        daemon.loop.run()
        return answer
    }

    func path(_ rest: String) -> ObjectPath {
        guard let root, let path = ObjectPath(validating: root.rawValue + rest) else { return .root }
        return path
    }

    static let peer: TestProperties = [
        ("device", .path(BlueZMessages.device)), ("link", .string("LE")), ("mtu", .uint16(23)),
    ]

    // MARK: Centrals

    /// The path of the object of a central, by its number.
    static func device(_ number: UInt8) -> ObjectPath {
        BlueZMessages.adapterPath.appending(String(format: "dev_C0_26_DF_00_00_%02X", number))
    }

    static func key(_ number: UInt8) -> ObjectKey { ObjectKey(device(number)) }

    /// A central is there, and its link is up unless said otherwise.
    func meet(_ number: UInt8, isBonded: Bool = false, isUp: Bool = true) {
        daemon.send(
            BlueZMessages.interfacesAdded(
                Self.device(number),
                [
                    (
                        "org.bluez.Device1",
                        [
                            ("Address", .string(String(format: "C0:26:DF:00:00:%02X", number))),
                            ("Adapter", .path(BlueZMessages.adapterPath)), ("Connected", .bool(isUp)),
                            ("Paired", .bool(isBonded)), ("Bonded", .bool(isBonded)),
                        ]
                    )
                ]))
    }

    func setLink(of number: UInt8, isUp: Bool) {
        daemon.send(
            BlueZMessages.propertiesChanged(Self.device(number), "org.bluez.Device1", [("Connected", .bool(isUp))]))
    }

    /// Subscribes as a central does for which BlueZ fetches a socket.
    func acquire(
        _ number: UInt8, _ rest: String = "/service0/char0", _ member: String = "AcquireNotify"
    ) throws -> OwnedDescriptor {
        let result = call(path(rest), "org.bluez.GattCharacteristic1", member) { writer in
            BlueZMessages.write(
                properties: [
                    ("device", .path(Self.device(number))), ("link", .string("LE")), ("mtu", .uint16(23)),
                ], &writer)
        }
        guard case .success(let reply)? = result else { throw DBusError.failed(Self.text(result)) }
        var reader = reply.reader
        return try XCTUnwrap(reader.descriptor())
    }

    /// The values that a socket has now.
    static func packets(_ socket: OwnedDescriptor) throws -> [[UInt8]] {
        var packets: [[UInt8]] = []
        _ = PacketBuffer(packetSize: 512).receive(try XCTUnwrap(socket.rawValue)) { packets.append([UInt8]($0)) }
        return packets
    }

    /// The value, or the name and text of the error.
    func read(_ rest: String, offset: UInt16 = 0, from connection: Connection? = nil) -> String {
        let interface = rest.contains("desc") ? "org.bluez.GattDescriptor1" : "org.bluez.GattCharacteristic1"
        let result = call(path(rest), interface, "ReadValue", from: connection) { writer in
            BlueZMessages.write(properties: Self.peer + (offset > 0 ? [("offset", .uint16(offset))] : []), &writer)
        }
        return Self.text(result)
    }

    func write(_ rest: String, _ value: [UInt8], options: TestProperties = []) -> String {
        Self.text(startWrite(rest, value, options: options).withLock { $0 })
    }

    func startWrite(
        _ rest: String, _ value: [UInt8], options: TestProperties = []
    ) -> Locked<Result<Message, DBusError>?> {
        start(path(rest), "org.bluez.GattCharacteristic1", "WriteValue") { writer in
            writer.bytes(Data(value))
            BlueZMessages.write(properties: Self.peer + options, &writer)
        }
    }

    @discardableResult
    func send(_ rest: String, _ member: String) -> String {
        Self.text(call(path(rest), "org.bluez.GattCharacteristic1", member) { _ in })
    }

    static func text(_ result: Result<Message, DBusError>?) -> String {
        switch result {
        case nil: return "nothing"
        case .failure(let error)?: return "\(error.name.split(separator: ".").last ?? "") \(error.message)"
        case .success(let reply)?:
            var reader = reply.reader
            return reader.bytes().map { "\($0)" } ?? "ok"
        }
    }

    // MARK: Notifications

    /// Begins to collect the values that a characteristic signals.
    func listen() {
        let signals = signals
        subscription = daemon.connection?.subscribe(
            MatchRule(interface: "org.freedesktop.DBus.Properties", member: "PropertiesChanged")
        ) { signal in
            var reader = signal.reader
            guard reader.string() == "org.bluez.GattCharacteristic1" else { return }
            reader.dictionary { entry in
                guard entry.string() == "Value" else { return }
                if let bytes = entry.variant({ $0.bytes() }) { signals.withLock { $0.append(bytes) } }
            }
        }
        daemon.loop.run()
    }

    var values: [[UInt8]] { signals.withLock { $0 } }

    func notify(_ id: UInt64, _ value: [UInt8], for centrals: [ObjectKey]? = nil) {
        source.add(ServerUpdate(Data(value), for: centrals))
        application?.sendUpdates(of: ServerAttributeID(id), from: source)
        daemon.loop.run()
    }
}
