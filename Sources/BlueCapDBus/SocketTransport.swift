import CBlueCapDBus
import Foundation
import BlueCapReactor

/// A connection to a bus: a socket, or the in-process bus. Used on the connection's loop only.
protocol Transport: AnyObject {
    /// Starts to connect. The receiver is called later, never inside this method. An error means that it did not start.
    func start(_ receiver: any TransportReceiver) throws(DBusError)

    /// Sends a message and returns its serial; nil if this bus cannot carry it.
    func send(_ message: Message) -> UInt32?

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

/// The transport to a real bus: a socket, driven by the connection's loop.
///
/// libdbus opens the socket, authenticates, and writes. It never reads a message: from the moment at which it is
/// authenticated, this type reads the socket itself. Before that moment no bus sends a message, since the client speaks first.
/// Nothing on libdbus's way out reads or blocks (`dbus_connection_send`, and the handling of the watch for writing); a call
/// that does, such as `dbus_connection_flush`, must not be used. Unchecked, because it is confined to the loop, on which
/// every closure here runs; for the same reason the runtime need not check the accesses.
final class SocketTransport: Transport, @unchecked Sendable {
    private let address: String
    private let loop: any EventLoop
    private weak var receiver: (any TransportReceiver)?
    @exclusivity(unchecked) private var connection: OpaquePointer?
    /// The loop's watch for each of libdbus, which has one for reading and one for writing on the same socket.
    private var watches: [(handle: Handle, watch: Watch)] = []
    /// The socket, and what was read from it; nil as long as libdbus reads it. libdbus closes the socket after an error.
    @exclusivity(unchecked) private var socket: Int32?
    @exclusivity(unchecked) private var inbox: ReceiveBuffer?
    @exclusivity(unchecked) private var isReceiving = false

    init(address: String, loop: any EventLoop) {
        self.address = address
        self.loop = loop
    }

    deinit {
        close()
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

    var hasOutput: Bool { connection.map(cdbus_connection_has_output) ?? false }

    func close() {
        receiver = nil
        guard let connection else { return }
        self.connection = nil
        inbox = nil
        // Removes the watches one by one.
        cdbus_connection_close(connection)
    }

    // MARK: Messages

    private func handle(_ watch: Handle, isForReading: Bool, _ events: IOEvents) {
        guard let connection else { return }
        if inbox == nil, cdbus_connection_is_authenticated(connection) {
            inbox = ReceiveBuffer()
            socket = cdbus_watch_descriptor(watch.pointer)
        }
        if inbox == nil {
            cdbus_watch_handle(watch.pointer, UInt32(events.rawValue))
        } else if isForReading {
            receive()
        } else if events.contains(.writable) {
            // Not the hang-up, after which libdbus would close the socket: messages may remain to be read.
            write(watch)
        }
    }

    private func write(_ watch: Handle) {
        let hadOutput = hasOutput
        cdbus_watch_handle(watch.pointer, UInt32(CDBUS_WRITABLE))
        if hadOutput, !hasOutput { receiver?.outputDrained() }
    }

    /// Reads the socket and passes the messages to the receiver, up to the limit of a batch; the rest after the other work of
    /// the loop.
    ///
    /// If several messages have arrived together, more are likely to arrive while these are handled. Reading them at once
    /// makes larger batches: fewer rounds of the loop, and fewer wake-ups of other threads at the ends of batches.
    private func receive() {
        // A handler may call this method again.
        guard !isReceiving else { return }
        isReceiving = true
        defer { isReceiving = false }
        // Retained once for the batch.
        let receiver = receiver
        var count = 0
        var sinceRead = 4
        do throws(DBusError) {
            while count < batchLimit, connection != nil {
                if var message = try inbox?.next() {
                    count += 1
                    sinceRead += 1
                    receiver?.received(message)
                    inbox?.recycle(&message)
                } else {
                    guard let socket else { throw DBusError.lost }
                    guard sinceRead >= 4, try inbox?.receive(from: socket) == true else { break }
                    sinceRead = 0
                }
            }
        } catch {
            receiver?.lost(error)
        }
        // The receiver may have closed the connection.
        if count > 0, connection != nil { receiver?.batchEnded() }
        if count >= batchLimit { loop.post { [weak self] in self?.receive() } }
    }

    // MARK: Watches

    fileprivate func add(_ watch: Handle) {
        let isForReading = watch.isForReading
        // This object cancels its watches before it is released, so no weak reference need be read for each event.
        let made = loop.watch(cdbus_watch_descriptor(watch.pointer), for: wanted(watch)) { [unowned self] events in
            handle(watch, isForReading: isForReading, events)
        }
        watches.append((watch, made))
    }

    fileprivate func toggled(_ watch: Handle) {
        find(watch)?.update(wanted(watch))
    }

    fileprivate func remove(_ watch: Handle) {
        if watch.isForReading, connection != nil {
            // libdbus closes the socket after an error; what was received before is handled first.
            socket = nil
            loop.post { [weak self] in self?.receive() }
        }
        find(watch)?.cancel()
        watches.removeAll { $0.handle == watch }
    }

    private func find(_ watch: Handle) -> Watch? { watches.first { $0.handle == watch }?.watch }

    private func wanted(_ watch: Handle) -> IOEvents {
        // libdbus pauses its own reading when many of its messages are in use.
        guard inbox != nil && watch.isForReading || cdbus_watch_enabled(watch.pointer) else { return [] }
        let wanted = IOEvents(rawValue: UInt8(truncatingIfNeeded: cdbus_watch_flags(watch.pointer)))
        return wanted.intersection([.readable, .writable])
    }
}

/// A watch of libdbus. Unchecked: it is only passed to libdbus, on the loop.
private struct Handle: Equatable, @unchecked Sendable {
    let pointer: OpaquePointer?

    var isForReading: Bool { cdbus_watch_flags(pointer) & UInt32(CDBUS_READABLE) != 0 }
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
