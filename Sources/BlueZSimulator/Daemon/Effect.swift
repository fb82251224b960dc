/// What the daemon wants done, in order.
enum Effect: Hashable, Sendable {
    case reply(CallID, Answer)
    case fail(CallID, DaemonError)
    case emit(Emission)
    /// For the air, which is in the same process; it never gets as far as a bus.
    case order(AirOrder)
    /// A peripheral's behaviour is to be asked.
    case ask(Question)
    /// A pair of sockets is made, and one of them answers the call.
    case openSocket(SocketID, CallID, mtu: Int)
    /// A packet goes to the client.
    case transmit(SocketID, [UInt8])
    case closeSocket(SocketID)
    /// A client has something here that must end with it.
    case watch(client: String)
    case unwatch(client: String)
    /// A client's objects say something that matters here.
    case listen(client: String)
    case unlisten(client: String)
    /// A client's object is called.
    case call(ClientCall)
    /// A central of the simulator's own hears something.
    case central(UInt64, CentralNews)
    /// The daemon falls over a fault of its own.
    case die
    /// The process starts or ends.
    case joinBus
    case leaveBus
}
