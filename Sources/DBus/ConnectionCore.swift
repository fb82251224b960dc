import CDBus
import Foundation
import Futures
import Reactor

/// A connection's inside, all of it on the loop.
///
/// Unchecked, because it is confined to the loop's thread: `Connection` hands everything over with `loop.perform`. Only
/// `uniqueName` is for any thread.
final class ConnectionCore: @unchecked Sendable {
    private enum Phase {
        case connecting
        case open
        case closed(DBusError)
    }

    let loop: any EventLoop
    let uniqueName = Locked<String?>(nil)
    var batchHandlers: [@Sendable () -> Void] = []
    let objects = ObjectRegistry()
    /// Who answers calls in the place of `objects`.
    var callHandler: (@Sendable (Message) -> Void)?
    let signals = SignalRouter()
    private let stateChanged: @Sendable (ConnectionState) -> Void
    private var transport: (any Transport)?
    private var phase = Phase.connecting
    private var calls = CallTable<Message, Connection.Completion>(limit: 100)
    private var deadlineTimer: (id: TimerID, deadline: Instant)?
    /// What was sent before the bus has let us in.
    private var held: [Message] = []
    private var drainWaiters: [@Sendable () -> Void] = []

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
        // First in the table, so that it goes first: a bus throws out who says anything else before.
        call(.toBus("Hello"), timeout: Connection.defaultTimeout) { [weak self] in self?.helloAnswered($0) }
        do {
            try transport.start(self)
        } catch {
            return close(error)
        }
        sendNextCall()
    }

    private func helloAnswered(_ result: Result<Message, DBusError>) {
        guard case .connecting = phase else { return }
        do {
            let reply = try result.get()
            var reader = reply.reader
            guard let name = reader.string() else { throw DBusError.unexpected(reply, to: "Hello", instead: "s") }
            guard isValid(name, cdbus_is_bus_name) else {
                throw DBusError.failed("The bus has answered Hello with \"\(name)\", which is not a bus name.")
            }
            phase = .open
            uniqueName.withLock { $0 = name }
            transport?.named(name)
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

    /// Ends the connection for this reason; the first one counts.
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
        let unanswered = calls.removeAll()
        // Never inside the call that closes.
        loop.post { [self] in
            for completion in unanswered { completion(.failure(.disconnected(because: error))) }
            stateChanged(.closed(error))
            endBatch()
            batchHandlers = []
        }
    }

    // MARK: Calls

    func call(_ message: Message, timeout: TimeInterval, completion: @escaping Connection.Completion) {
        precondition(message.kind == .call, "Only a method call can be called; send takes signals and replies.")
        if case .closed(let error) = phase {
            return loop.post { completion(.failure(.disconnected(because: error))) }
        }
        calls.add(message, completion: completion, deadline: loop.now.advanced(by: timeout))
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
            loop.post { completion(.failure(.cannotBeSent)) }
        }
        return true
    }

    /// One timer for all calls, set for the one that times out first. A call that is answered leaves it as it is.
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
        for completion in expired { completion(.failure(.timedOut)) }
        armDeadlineTimer()
        guard !expired.isEmpty else { return }
        sendWaitingCalls()
        endBatch()
    }

    // MARK: Signals

    func subscribe(_ entry: SubscriptionEntry, accepted: (@Sendable (Result<Void, DBusError>) -> Void)?) {
        signals.add(entry, on: self) { accepted?($0) }
    }

    func unsubscribe(_ entry: SubscriptionEntry) {
        signals.remove(entry, on: self)
    }

    func watch(_ watch: NameWatch) {
        signals.add(watch, on: self)
    }

    func unwatch(_ watch: NameWatch) {
        signals.remove(watch, on: self)
    }

    // MARK: Objects

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
            guard message.kind != .call else { return sendWithoutReply(message) }
            if !message.isComplete || transport?.send(message) == nil { refuse(message) }
        case .closed:
            break
        }
    }

    private func sendWithoutReply(_ message: Message) {
        guard message.isComplete else { return }
        _ = transport?.send(message.withoutReply())
    }

    /// A reply that lacks a descriptor goes as an error, so that the caller does not wait.
    private func refuse(_ message: Message) {
        guard message.kind == .reply else { return }
        _ = transport?.send(.error(insteadOf: message, .cannotBeSent))
    }

    func whenDrained(_ work: @escaping @Sendable () -> Void) {
        guard let transport else { return }
        if case .open = phase, !transport.hasOutput { return loop.post(work) }
        drainWaiters.append(work)
    }

    private func endBatch() {
        for handler in batchHandlers { handler() }
    }
}

extension ConnectionCore: TransportReceiver {
    func received(_ message: Message) {
        switch message.kind {
        case .signal:
            signals.route(message)
        case .reply, .error:
            guard let completion = calls.answered(serial: message.replySerial) else { return }
            completion(message.error.map(Result.failure) ?? .success(message))
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
        endBatch()
    }

    func outputDrained() {
        guard case .open = phase else { return }
        // Posted, since this may come in the middle of a send.
        drainWaiters.forEach(loop.post)
        drainWaiters = []
    }

    func lost(_ error: DBusError) {
        // Who is not admitted is not told so: the bus hangs up in the middle of the greetings.
        if case .connecting = phase { close(.notAdmitted) } else { close(error) }
    }
}
