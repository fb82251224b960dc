import CBlueCapDBus
import Foundation
import BlueCapReactor

/// A connection to a bus: a socket, or the in-process bus. Used on the connection's loop only.
protocol Transport: AnyObject {
    /// Starts to connect. The receiver is called later, never inside this method. An error means that it did not start.
    func start(_ receiver: any TransportReceiver) throws(DBusError)

    /// Sends a message and returns its serial; nil if this bus cannot carry it.
    func send(_ message: Message) -> UInt32?

    /// Sets the name that the bus has given to this connection.
    func named(_ uniqueName: String)

    /// Whether messages wait for the bus to receive them.
    var hasOutput: Bool { get }

    /// Ends the connection; the receiver is not called any more.
    func close()
}

/// What a transport calls, on the loop.
protocol TransportReceiver: AnyObject {
    /// Handles a message, in the order of the wire.
    func received(_ message: Message)
    /// Handles the end of a group of messages.
    func batchEnded()
    /// Handles that the bus has received everything that was sent.
    func outputDrained()
    /// Handles the loss of the bus. No other call follows.
    func lost(_ error: DBusError)
}

/// The maximum number of messages in one batch, before timers and posted work run.
let batchLimit = 256

/// The transport to a real bus: libdbus on a socket, driven by the connection's loop.
///
/// libdbus's own dispatching and pending calls are not used: this type takes the messages from libdbus's queue. Unchecked,
/// because it is confined to the loop, on which every closure here runs.
final class SocketTransport: Transport, @unchecked Sendable {
    private let address: String
    private let loop: any EventLoop
    private weak var receiver: (any TransportReceiver)?
    private var connection: OpaquePointer?
    /// The loop's watch for each of libdbus, which has one for reading and one for writing on the same socket.
    private var watches: [(handle: Handle, watch: Watch)] = []
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
        // Without descriptors, the connection would be lost at once and the error would not contain the reason.
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
        // Not retained: the handlers are removed before this object is released.
        handlers.data = Unmanaged.passUnretained(self).toOpaque()
        handlers.added = { watch, data in transport(data)?.add(Handle(pointer: watch)) }
        handlers.removed = { watch, data in transport(data)?.remove(Handle(pointer: watch)) }
        handlers.toggled = { watch, data in transport(data)?.toggled(Handle(pointer: watch)) }
        precondition(
            cdbus_connection_set_handlers(connection, &handlers),
            "The system has no memory left for a D-Bus connection.")
    }

    func send(_ message: Message) -> UInt32? {
        guard let connection else { return nil }
        // A message with a serial was sent before; the second one needs a serial of its own.
        let message = message.serial == 0 ? message : message.copied()
        var serial: UInt32 = 0
        // libdbus writes as much as the socket accepts, this message after those that waited.
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
        // Removes the watches one by one.
        cdbus_connection_close(connection)
    }

    // MARK: Messages

    private func handle(_ watch: Handle, _ events: IOEvents) {
        let hadOutput = hasOutput
        // After a hang-up libdbus reads the remaining messages, after an error it does not.
        cdbus_watch_handle(watch.pointer, UInt32(events.rawValue))
        if hadOutput, !hasOutput { receiver?.outputDrained() }
        drain(rereading: events.contains(.readable) ? watch : nil)
    }

    /// Passes the messages that libdbus has read to the receiver, up to the limit of a batch; the rest after the other work
    /// of the loop.
    ///
    /// libdbus reads about two kilobytes at a time. If these contained several messages, more are likely to wait in the
    /// socket. Reading them at once, through `watch`, makes larger batches: fewer rounds of the loop, and fewer wake-ups of
    /// other threads at the ends of batches.
    private func drain(rereading watch: Handle? = nil) {
        // A handler may call this method again.
        guard !isDraining, connection != nil else { return }
        isDraining = true
        defer { isDraining = false }
        // Retained once for the batch. Closing clears `connection`, and nothing more is popped.
        let receiver = receiver
        var count = 0
        while count < batchLimit {
            let before = count
            while count < batchLimit, let connection, let pointer = cdbus_connection_pop(connection) {
                count += 1
                receive(Message(received: pointer), receiver)
            }
            guard count - before >= 4, let watch, find(watch) != nil else { break }
            cdbus_watch_handle(watch.pointer, UInt32(CDBUS_READABLE))
        }
        guard count > 0 else { return }
        self.receiver?.batchEnded()
        if count >= batchLimit { loop.post { [weak self] in self?.drain() } }
    }

    private func receive(_ message: Message, _ receiver: (any TransportReceiver)?) {
        // libdbus adds this message after the last one of the bus. No peer can send it: the bus adds a sender.
        if message.isSignal(interface: "org.freedesktop.DBus.Local", member: "Disconnected"),
            message.heading.sender == nil
        {
            receiver?.lost(.lost)
        } else {
            receiver?.received(message)
        }
    }

    // MARK: Watches

    fileprivate func add(_ watch: Handle) {
        let made = loop.watch(cdbus_watch_descriptor(watch.pointer), for: wanted(watch)) { [weak self] events in
            self?.handle(watch, events)
        }
        watches.append((watch, made))
    }

    fileprivate func toggled(_ watch: Handle) {
        find(watch)?.update(wanted(watch))
    }

    fileprivate func remove(_ watch: Handle) {
        find(watch)?.cancel()
        watches.removeAll { $0.handle == watch }
    }

    private func find(_ watch: Handle) -> Watch? { watches.first { $0.handle == watch }?.watch }

    private func wanted(_ watch: Handle) -> IOEvents {
        guard cdbus_watch_enabled(watch.pointer) else { return [] }
        let wanted = IOEvents(rawValue: UInt8(truncatingIfNeeded: cdbus_watch_flags(watch.pointer)))
        return wanted.intersection([.readable, .writable])
    }
}

/// A watch of libdbus. Unchecked: it is only passed to libdbus, on the loop.
private struct Handle: Equatable, @unchecked Sendable {
    let pointer: OpaquePointer?
}

private func transport(_ data: UnsafeMutableRawPointer?) -> SocketTransport? {
    data.map { Unmanaged<SocketTransport>.fromOpaque($0).takeUnretainedValue() }
}

extension DBusError {
    /// libdbus has no error name for a process without free descriptors, but the system's text.
    fileprivate init(openingFailed name: String, _ text: String) {
        let shortage = [EMFILE, ENFILE].first { text.hasSuffix(String(cString: strerror($0))) }
        self = shortage.map { DBusError(.descriptors($0)) } ?? DBusError(name: name, message: text)
    }
}
