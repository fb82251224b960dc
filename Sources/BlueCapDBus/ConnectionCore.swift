import Foundation
import BlueCapFutures
import BlueCapReactor

/// The state of a connection, all of it on the loop.
///
/// Unchecked, because it is confined to the loop's thread: `Connection` uses it in `loop.perform` only. `uniqueName` is for
/// any thread. For the same reason the runtime need not check the accesses.
final class ConnectionCore: @unchecked Sendable {
    private enum Phase {
        case connecting
        case open
        case closed(DBusError)
    }

    /// A closure in a structure: stored bare in a generic table, each would be wrapped in another one.
    private struct Completion {
        let run: Connection.Completion
    }

    let loop: any EventLoop
    let uniqueName = Locked<String?>(nil)
    @exclusivity(unchecked) var batchHandlers: [@Sendable () -> Void] = []
    let objects = ObjectRegistry()
    /// Handles received calls instead of `objects`.
    @exclusivity(unchecked) var callHandler: (@Sendable (Message) -> Void)?
    let signals = SignalRouter()
    private let stateChanged: @Sendable (ConnectionState) -> Void
    @exclusivity(unchecked) private var transport: (any Transport)?
    @exclusivity(unchecked) private var phase = Phase.connecting
    @exclusivity(unchecked) private var calls = CallTable<Message, Completion>(limit: 100)
    private var deadlineTimer: (id: TimerID, deadline: Instant)?
    /// The messages sent before the bus has accepted the connection.
    private var held: [Message] = []
    private var drainWaiters: [@Sendable () -> Void] = []
    @exclusivity(unchecked) private var flood = FloodDetector()

    init(
        loop: any EventLoop, transport: any Transport, stateChanged: @escaping @Sendable (ConnectionState) -> Void
    ) {
        self.loop = loop
        self.transport = transport
        self.stateChanged = stateChanged
    }

    // MARK: Opening and ending

    func start() {
        guard case .connecting = phase, let transport else { return }
        // The first call in the table: a bus disconnects a client that sends anything else before.
        call(.toBus("Hello")) { [weak self] in self?.helloReturned($0) }
        do {
            try transport.start(self)
        } catch {
            return close(error)
        }
        sendNextCall()
    }

    private func helloReturned(_ result: Result<Message, DBusError>) {
        guard case .connecting = phase else { return }
        do {
            let reply = try result.get()
            var reader = reply.reader
            guard let name = reader.string() else { throw DBusError.unexpected(reply, to: "Hello", instead: "s") }
            guard isValid(name, Syntax.isBusName) else {
                throw DBusError.failed("The bus has answered Hello with \"\(name)\", which is not a bus name.")
            }
            phase = .open
            uniqueName.withLock { $0 = name }
            stateChanged(.opened(uniqueName: name))
        } catch {
            return close(error as? DBusError ?? .failed("\(error)"))
        }
        let held = held
        self.held = []
        for message in held { send(message) }
        sendWaitingCalls()
        if transport?.hasOutput == false { outputDrained() }
    }

    /// Ends the connection for this reason; a second call does nothing.
    func close(_ error: DBusError) {
        if case .closed = phase { return }
        phase = .closed(error)
        uniqueName.withLock { $0 = nil }
        transport?.close()
        transport = nil
        held = []
        drainWaiters = []
        signals.removeAll()
        objects.removeAll()
        callHandler = nil
        if let deadlineTimer { loop.cancel(deadlineTimer.id) }
        let pending = calls.removeAll()
        // Never inside the call that closes.
        loop.post { [self] in
            for completion in pending { completion.run(.failure(.disconnected(because: error))) }
            stateChanged(.closed(error))
            batchEnded()
            batchHandlers = []
        }
    }

    // MARK: Calls

    func call(
        _ message: Message, timeout: TimeInterval = Connection.defaultTimeout,
        completion: @escaping Connection.Completion
    ) {
        precondition(message.kind == .call, "Only a method call can be called; send takes signals and replies.")
        if case .closed(let error) = phase {
            return loop.post { completion(.failure(.disconnected(because: error))) }
        }
        calls.add(message, completion: Completion(run: completion), deadline: loop.now.advanced(by: timeout))
        armDeadlineTimer()
        sendWaitingCalls()
    }

    private func sendWaitingCalls() {
        guard case .open = phase else { return }
        while sendNextCall() {}
    }

    @discardableResult
    private func sendNextCall() -> Bool {
        guard let transport, let (number, message) = calls.next() else { return false }
        if message.isComplete, let serial = transport.send(message) {
            calls.sent(number, serial: serial)
        } else if let completion = calls.refused(number) {
            loop.post { completion.run(.failure(.cannotBeSent)) }
        }
        return true
    }

    /// Sets the one timer of all calls to the next time-out. It remains set if that call receives its reply.
    private func armDeadlineTimer() {
        guard let deadline = calls.nextDeadline, deadline != .distantFuture else { return }
        if let armed = deadlineTimer {
            guard deadline < armed.deadline else { return }
            loop.cancel(armed.id)
        }
        let id = loop.schedule(after: deadline.seconds(since: loop.now)) { [weak self] in self?.deadlineReached() }
        deadlineTimer = (id, deadline)
    }

    private func deadlineReached() {
        deadlineTimer = nil
        let expired = calls.expire(at: loop.now)
        for completion in expired { completion.run(.failure(.timedOut)) }
        armDeadlineTimer()
        guard !expired.isEmpty else { return }
        sendWaitingCalls()
        batchEnded()
    }

    func export(_ object: ExportedObject) {
        if case .closed = phase { return }
        objects.add(object)
    }

    // MARK: Sending

    func send(_ message: Message) {
        switch phase {
        case .connecting:
            held.append(message)
        case .open:
            let message = message.kind == .call ? message.withoutReply() : message
            if message.isComplete, transport?.send(message) != nil { return }
            // A reply without its descriptor becomes an error, so that the caller does not wait.
            guard message.kind == .reply else { return }
            _ = transport?.send(.error(insteadOf: message, .cannotBeSent))
        case .closed:
            break
        }
    }

    func whenDrained(_ work: @escaping @Sendable () -> Void) {
        guard let transport else { return }
        if case .open = phase, !transport.hasOutput { return loop.post(work) }
        drainWaiters.append(work)
    }
}

extension ConnectionCore: TransportReceiver {
    func received(_ message: Message) {
        let kind = message.kind
        flood.received(1, isCall: kind == .call)
        switch kind {
        case .signal:
            signals.route(message)
        case .reply, .error:
            guard let completion = calls.answered(serial: message.replySerial) else { return }
            flood.answeredCall()
            completion.run(message.error.map(Result.failure) ?? .success(message))
            sendWaitingCalls()
        case .call:
            if let callHandler {
                callHandler(message)
            } else {
                objects.handle(message, on: self)
            }
        case .unknown:
            break
        }
    }

    func batchEnded() {
        for handler in batchHandlers { handler() }
        if flood.batchEnded(at: loop.now, waiting: calls.inFlight) { loop.restBeforeWait() }
    }

    func outputDrained() {
        guard case .open = phase else { return }
        // Posted, since this method may be called in the middle of a send.
        drainWaiters.forEach(loop.post)
        drainWaiters = []
    }

    func lost(_ error: DBusError) {
        // A bus that refuses a client does not send the reason: it disconnects during the authentication.
        if case .connecting = phase, error == .lost { close(.notAdmitted) } else { close(error) }
    }
}
