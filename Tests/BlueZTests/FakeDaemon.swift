import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import XCTest

@testable import BlueCapBlueZ

/// A minimal `bluetoothd` on a loopback bus. It gives the replies that a test sets, and keeps a list of calls.
///
/// On the manual loop's thread only, like the test.
final class FakeDaemon: @unchecked Sendable {
    let loop = ManualLoop()
    let bus: LoopbackBus
    private(set) var connection: Connection?
    /// Methods in the order of their calls, with the caller's unique name.
    private(set) var calls: [String] = []
    /// The arguments of the last `SetDiscoveryFilter`, by key, with the signatures of their values.
    private(set) var filter: [String: String] = [:]
    var objects: [(ObjectPath, TestInterfaces)] = [(BlueZMessages.adapterPath, BlueZMessages.adapter())]
    /// Errors for the next calls of a method; when used up, calls succeed.
    var errors: [String: [DBusError]] = [:]
    /// Methods without a reply.
    var silent: Set<String> = []
    /// The arguments of the replies, by method; other replies have none.
    var bodies: [String: (inout MessageWriter) -> Void] = [:]
    /// Paths and arguments of the calls, as text.
    private(set) var details: [String] = []
    /// The options that came with `WriteValue`.
    private(set) var options: [[String: String]] = []
    /// The last call of each method.
    private(set) var lastCalls: [String: Message] = [:]
    /// The calls that got no answer, until they are answered by hand.
    private(set) var unanswered: [Message] = []

    init() { bus = LoopbackBus(loop: loop) }

    func appear() {
        let connection = Connection.open(.custom(bus.address), loop: loop)
        connection.answerCalls { [weak self] in self?.answer($0) }
        connection.requestName("org.bluez")
        self.connection = connection
        loop.run()
    }

    func vanish() {
        connection?.close()
        connection = nil
        loop.run()
    }

    func send(_ signal: Message) {
        connection?.send(signal)
        loop.run()
    }

    func count(_ member: String) -> Int { calls.filter { $0 == member }.count }

    func forgetCalls() {
        calls = []
        details = []
    }

    /// Replies to the oldest call of the method that has no reply yet.
    func answerLate(_ member: String, error: DBusError? = nil) {
        guard let index = unanswered.firstIndex(where: { $0.member == member }) else { return }
        let call = unanswered.remove(at: index)
        connection?.send(
            error.map { .error(to: call, $0) } ?? .reply(to: call) { self.bodies[member]?(&$0) })
        loop.run()
    }

    func set(_ properties: TestProperties, invalidated: [String] = []) {
        send(
            BlueZMessages.propertiesChanged(
                BlueZMessages.adapterPath, "org.bluez.Adapter1", properties, invalidated: invalidated))
    }

    private func answer(_ call: Message) {
        guard let member = call.member else { return }
        calls.append(member)
        lastCalls[member] = call
        details.append("\(call.path?.lastElement ?? "") \(call.interface ?? "") \(member) \(call.signature)")
        guard !silent.contains(member) else { return unanswered.append(call) }
        if let error = errors[member]?.first {
            errors[member]?.removeFirst()
            connection?.send(.error(to: call, error))
            return
        }
        if member == "SetDiscoveryFilter" { readFilter(call) }
        if member == "WriteValue" { readOptions(call) }
        connection?.send(
            .reply(to: call) { writer in
                if member == "GetManagedObjects" { BlueZMessages.write(self.objects, &writer) }
                self.bodies[member]?(&writer)
            })
    }

    private func readOptions(_ call: Message) {
        var reader = call.reader
        reader.skip()
        var options: [String: String] = [:]
        reader.dictionary { entry in
            guard let key = entry.string() else { return }
            options[key] = entry.variant { value in value.string() ?? value.uint16().map { "\($0)" } }
        }
        self.options.append(options)
    }

    private func readFilter(_ call: Message) {
        var reader = call.reader
        var filter: [String: String] = [:]
        reader.dictionary { entry in
            guard let key = entry.string() else { return }
            filter[key] = entry.variant { $0.signature }
        }
        self.filter = filter
    }
}

/// Records the reports that it receives.
final class RecordingObserver: BlueZObserver, @unchecked Sendable {
    private(set) var log: [String] = []
    private(set) var availabilities: [Availability] = []
    private(set) var batches = 0
    var whenReported: () -> Void = {}

    func availabilityChanged(_ availability: Availability, in client: BlueZClient) {
        availabilities.append(availability)
        switch availability {
        case .connecting: log.append("connecting")
        case .noBus: log.append("noBus")
        case .refused: log.append("refused")
        case .noDaemon: log.append("noDaemon")
        case .loading: log.append("loading")
        case .notLoaded(let error): log.append("notLoaded \(error)")
        case .ready: log.append("ready")
        }
        whenReported()
    }

    func treeChanged(_ change: Change, in tree: borrowing ObjectTree) {
        switch change {
        case .adapterAdded(let key): log.append("+\(key.path)")
        case .adapterChanged(let key, _): log.append("~\(key.path)")
        case .adapterRemoved(let key): log.append("-\(key.path)")
        case .deviceAdded(let key, let isAdvertised):
            log.append("+\(address(of: key, in: tree))\(isAdvertised ? " received" : "")")
        case .deviceChanged(let key, _, let isAdvertised):
            log.append("~\(address(of: key, in: tree))\(isAdvertised ? " received" : "")")
        case .deviceRemoved(let key): log.append("-\(address(of: key, in: tree))")
        case .attributeAdded(let key, let kind): log.append("+\(kind) \(key.handle)")
        case .attributeChanged(let key, _):
            log.append("~\(key.handle) \(tree.value(of: key).map { [UInt8]($0) } ?? [])")
        case .attributeRemoved(let key, let kind): log.append("-\(kind) \(key.handle)")
        }
        whenReported()
    }

    private func address(of key: ObjectKey, in tree: borrowing ObjectTree) -> String {
        tree.read(key) { "\($0.address)" } ?? "?"
    }

    func batchEnded() { batches += 1 }

    func forget() {
        log = []
        batches = 0
    }
}
