import BlueCapDBus
import Foundation
import BlueCapFutures
import Glibc
import BlueCapReactor

/// The daemon's connection to the bus: a new one each time that the daemon starts, as with a process.
extension Stage {
    func connectToBus() {
        let connection = Connection.open(.custom(address), loop: loop) { [weak self] state in
            if case .closed(let error) = state { self?.reportConnected(.failure(.noBus(error.message))) }
        }
        connection.answerCalls { [weak self] in self?.received($0) }
        wire.withLock { $0.connection = connection }
        connection.requestName(Self.busName) { [weak self] result in
            switch result {
            case .success(.primaryOwner), .success(.alreadyOwner): self?.reportConnected(.success(()))
            case .success(.exists), .success(.inQueue): self?.reportConnected(.failure(.nameTaken))
            case .failure(let error): self?.reportConnected(.failure(.noBus(error.message)))
            }
        }
    }

    func disconnectFromBus() {
        let (connection, watches, sockets) = wire.withLock {
            (exchange(&$0.connection, with: nil), exchange(&$0.watches, with: [:]), exchange(&$0.sockets, with: [:]))
        }
        for socket in sockets.values { socket.watch.cancel() }
        connection?.close()
        withExtendedLifetime(watches) {}
    }

    private func reportConnected(_ result: Result<Void, SimulatorError>) {
        shared.withLock { $0.joined = $0.joined ?? result }
        changes.withLock { changes.broadcast() }
    }

    static let busName = "org.bluez"
}

/// The daemon's calls of clients' objects.
extension Stage {
    func callClient(_ call: ClientCall) {
        // The client has sent the path.
        guard let connection, let path = ObjectPath(validating: call.path) else { return }
        let message = Message.call(
            destination: call.client, path: path, interface: call.interface, member: call.member
        ) { $0.values(call.arguments) }
        guard call.reply != .none else { return connection.send(message.withoutReply()) }
        connection.call(message, timeout: call.timeout) { [weak self, weak connection] result in
            // The daemon may have been killed in the meantime.
            guard let self, let connection, self.connection === connection else { return }
            let reply: ClientReply =
                switch result {
                case .failure(let error): .error(name: error.name, message: error.message)
                case .success(let message) where call.reply == .socket:
                    socket(of: message).map(ClientReply.socket) ?? .values([])
                case .success(let message): .values(message.values)
                }
            decide { $0.daemon.clientReplied(call.id, reply) }
        }
    }

    /// Takes a program's end of a pair of sockets; nil if the message has none.
    private func socket(of message: Message) -> SocketID? {
        var reader = message.reader
        guard let owned = reader.descriptor(), let descriptor = owned.rawValue, reader.uint16() != nil else {
            return nil
        }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        let id = SocketID(number: shared.withLock { $0.simulation.daemon.core.nextNumber() })
        adopt(owned, as: id)
        return id
    }
}
