/// One way to a bus: a socket, or the in-process bus. Used on the connection's loop only.
protocol Transport: AnyObject {
    /// Begins. What comes of it is told to the receiver, never inside this call. An error means that it did not begin.
    func start(_ receiver: any TransportReceiver) throws(DBusError)

    /// Hands a message to the bus and gives the serial it goes by; nil where this bus cannot carry it.
    func send(_ message: Message) -> UInt32?

    /// The bus has given this connection its name.
    func named(_ uniqueName: String)

    /// Whether messages wait for the bus to take them.
    var hasOutput: Bool { get }

    /// Ends; the receiver hears nothing more.
    func close()
}

/// Who a transport talks to. On the loop.
protocol TransportReceiver: AnyObject {
    /// A message has come, in the order of the wire.
    func received(_ message: Message)
    /// The messages that had come are handled.
    func batchEnded()
    /// Everything that was handed over is with the bus now.
    func outputDrained()
    /// There is no bus any more; nothing follows.
    func lost(_ error: DBusError)
}

/// The most messages that are handled in one go, before timers and posted work have their turn.
let batchLimit = 256
