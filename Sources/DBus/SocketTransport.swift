import CDBus
import Foundation
import Reactor

/// The way to a real bus: libdbus on a socket, driven by our loop.
///
/// libdbus's own dispatching and pending calls are not used: messages are taken from its queue as they are. Unchecked,
/// because it is confined to the loop, on which every closure here runs.
final class SocketTransport: Transport, @unchecked Sendable {
    private let address: String
    private let loop: any EventLoop
    private weak var receiver: (any TransportReceiver)?
    private var connection: OpaquePointer?
    /// libdbus's watches and ours: it has one for reading and one for writing, on the same socket.
    private var watches: [Handle: Watch] = [:]
    private var timeouts: [Handle: TimerID] = [:]
    private var isDraining = false

    init(address: String, loop: any EventLoop) {
        self.address = address
        self.loop = loop
    }

    deinit {
        if let connection { cdbus_connection_close(connection) }
    }

    // MARK: Transport

    func start(_ receiver: any TransportReceiver) throws(DBusError) {
        self.receiver = receiver
        // Without this a connection would be made that is lost at once, for no reason that could be told.
        if let shortage = loop.prepareToWatch() { throw DBusError(shortage) }
        var name: UnsafeMutablePointer<CChar>?
        var text: UnsafeMutablePointer<CChar>?
        guard let connection = cdbus_connection_open(address, &name, &text) else {
            defer {
                cdbus_free(name)
                cdbus_free(text)
            }
            throw DBusError(
                openingFailed: name.map { String(cString: $0) } ?? DBusError.Name.failed,
                text.map { String(cString: $0) } ?? "The bus at \(address) could not be opened.")
        }
        self.connection = connection
        var handlers = cdbus_handlers()
        // Not retained: the handlers are taken away before this object goes.
        handlers.data = Unmanaged.passUnretained(self).toOpaque()
        handlers.watch_added = { watch, data in transport(data)?.add(Handle(watch)) }
        handlers.watch_removed = { watch, data in transport(data)?.remove(Handle(watch)) }
        handlers.watch_toggled = { watch, data in transport(data)?.toggled(Handle(watch)) }
        handlers.timeout_added = { timeout, data in transport(data)?.addTimeout(Handle(timeout)) }
        handlers.timeout_removed = { timeout, data in transport(data)?.removeTimeout(Handle(timeout)) }
        handlers.timeout_toggled = { timeout, data in transport(data)?.timeoutToggled(Handle(timeout)) }
        precondition(
            cdbus_connection_set_handlers(connection, &handlers),
            "The system has no memory left for a D-Bus connection.")
    }

    func send(_ message: Message) -> UInt32? {
        guard let connection else { return nil }
        // What has a serial was sent before; a second sending must have one of its own.
        let message = message.serial == 0 ? message : message.copied()
        var serial: UInt32 = 0
        // libdbus writes at once where it can, and with this message all that waited before it.
        let hadOutput = hasOutput
        guard cdbus_connection_send(connection, message.pointer, &serial) else { return nil }
        if hadOutput, !hasOutput { receiver?.outputDrained() }
        return serial
    }

    func named(_ uniqueName: String) {
        if let connection { cdbus_connection_set_unique_name(connection, uniqueName) }
    }

    var hasOutput: Bool { connection.map(cdbus_connection_has_output) ?? false }

    func close() {
        receiver = nil
        guard let connection else { return }
        self.connection = nil
        // Takes the watches and timers away one by one.
        cdbus_connection_close(connection)
    }

    // MARK: Messages

    private func handle(_ watch: Handle, _ events: IOEvents) {
        let hadOutput = hasOutput
        cdbus_watch_handle(watch.pointer, events.watchFlags)
        if hadOutput, !hasOutput { receiver?.outputDrained() }
        drain(rereading: events.contains(.readable) ? watch : nil)
    }

    /// Hands on what libdbus has read, up to the limit of a batch; the rest after whatever else the loop has to do.
    ///
    /// libdbus reads some two kilobytes at a time. Where that was full of messages there is more, and reading on at once,
    /// through `watch`, makes larger batches: fewer rounds of the loop, and fewer wake-ups of whoever is told of batches.
    private func drain(rereading watch: Handle? = nil) {
        // A handler may end in here again.
        guard !isDraining, connection != nil else { return }
        isDraining = true
        defer { isDraining = false }
        // Held once for the batch. Closing takes the connection away, and nothing more is popped.
        let receiver = receiver
        var count = 0
        while count < batchLimit {
            let before = count
            while count < batchLimit, let connection, let pointer = cdbus_connection_pop(connection) {
                count += 1
                receive(Message(received: pointer), receiver)
            }
            guard count - before >= 4, let watch, watches[watch] != nil else { break }
            cdbus_watch_handle(watch.pointer, IOEvents.readable.watchFlags)
        }
        guard count > 0 else { return }
        self.receiver?.batchEnded()
        if count >= batchLimit { loop.post { [weak self] in self?.drain() } }
    }

    private func receive(_ message: Message, _ receiver: (any TransportReceiver)?) {
        // Made by libdbus itself, behind the last message that has come. No peer can send it: the bus signs messages.
        if message.heading.sender == nil,
            message.isSignal(interface: "org.freedesktop.DBus.Local", member: "Disconnected")
        {
            receiver?.lost(.lost)
        } else {
            receiver?.received(message)
        }
    }

    // MARK: Watches

    fileprivate func add(_ watch: Handle) {
        watches[watch] = loop.watch(cdbus_watch_descriptor(watch.pointer), for: wanted(watch)) { [weak self] events in
            self?.handle(watch, events)
        }
    }

    fileprivate func toggled(_ watch: Handle) {
        watches[watch]?.update(wanted(watch))
    }

    fileprivate func remove(_ watch: Handle) {
        watches.removeValue(forKey: watch)?.cancel()
    }

    private func wanted(_ watch: Handle) -> IOEvents {
        guard cdbus_watch_enabled(watch.pointer) else { return [] }
        return IOEvents(watchFlags: cdbus_watch_flags(watch.pointer))
    }

    // MARK: Time-outs

    fileprivate func addTimeout(_ timeout: Handle) {
        guard cdbus_timeout_enabled(timeout.pointer) else { return }
        let seconds = TimeInterval(cdbus_timeout_milliseconds(timeout.pointer)) / 1000
        timeouts[timeout] = loop.schedule(after: seconds) { [weak self] in
            guard let self, timeouts[timeout] != nil else { return }
            // It repeats until it is removed or disabled.
            addTimeout(timeout)
            cdbus_timeout_handle(timeout.pointer)
            drain()
        }
    }

    fileprivate func timeoutToggled(_ timeout: Handle) {
        removeTimeout(timeout)
        addTimeout(timeout)
    }

    fileprivate func removeTimeout(_ timeout: Handle) {
        if let timer = timeouts.removeValue(forKey: timeout) { loop.cancel(timer) }
    }
}

extension IOEvents {
    /// libdbus's words for what it wants to wait for.
    fileprivate init(watchFlags: UInt32) {
        self = []
        if watchFlags & UInt32(CDBUS_READABLE) != 0 { insert(.readable) }
        if watchFlags & UInt32(CDBUS_WRITABLE) != 0 { insert(.writable) }
    }

    /// libdbus's words for what has happened. After a hang-up it reads what is left, after an error it does not.
    fileprivate var watchFlags: UInt32 {
        var flags: UInt32 = 0
        if contains(.readable) { flags |= UInt32(CDBUS_READABLE) }
        if contains(.writable) { flags |= UInt32(CDBUS_WRITABLE) }
        if contains(.hangup) { flags |= UInt32(CDBUS_HANGUP) }
        if contains(.error) { flags |= UInt32(CDBUS_ERROR) }
        return flags
    }
}

/// A watch or a time-out of libdbus. Unchecked: it is only handed back to libdbus, on the loop.
private struct Handle: Hashable, @unchecked Sendable {
    let pointer: OpaquePointer?

    init(_ pointer: OpaquePointer?) {
        self.pointer = pointer
    }
}

private func transport(_ data: UnsafeMutableRawPointer?) -> SocketTransport? {
    data.map { Unmanaged<SocketTransport>.fromOpaque($0).takeUnretainedValue() }
}

extension DBusError {
    /// libdbus has no name of its own for a process without descriptors, and says what the system said.
    fileprivate init(openingFailed name: String, _ text: String) {
        let shortage = [EMFILE, ENFILE].first { text.hasSuffix(String(cString: strerror($0))) }
        self = shortage.map { DBusError(.descriptors($0)) } ?? DBusError(name: name, message: text)
    }
}
