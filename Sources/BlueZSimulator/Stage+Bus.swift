import BlueCapDBus
import Foundation
import BlueCapFutures
import Glibc
import BlueCapReactor

/// The daemon's connection to the bus: a new one each time that the daemon starts, as with a process.
extension Stage {
    func connectToBus() {
        let connection = Connection.open(.custom(address), loop: loop) { [weak self] state in
            self?.connectionChanged(state)
        }
        connection.answerCalls { [weak self] in self?.received($0) }
        let previous = wire.withLock { wire in
            defer { wire.connection = connection }
            return wire.connection
        }
        previous?.close()
        connection.requestName(Self.busName) { [weak self] result in
            switch result {
            case .success(.primaryOwner), .success(.alreadyOwner): self?.reportConnected(.success(()))
            case .success(.exists), .success(.inQueue): self?.reportConnected(.failure(.nameTaken))
            case .failure(let error): self?.reportConnected(.failure(.noBus(error.message)))
            }
        }
    }

    func disconnectFromBus() {
        let (connection, watches, sockets) = wire.withLock { wire in
            defer {
                wire.connection = nil
                wire.watches = [:]
            }
            return (wire.connection, wire.watches, wire.takeSockets())
        }
        for socket in sockets { socket.watch.cancel() }
        withExtendedLifetime(watches) {}
        connection?.close()
    }

    /// Blocks until all effects have been performed, and the bus has taken the messages. Must not be called on the loop.
    func waitUntilDone(limit: TimeInterval) -> Bool {
        let done = DispatchSemaphore(value: 0)
        // After the turn of the loop that performs them.
        loop.post { [weak self] in
            if let connection = self?.connection {
                connection.whenDrained { done.signal() }
            } else {
                done.signal()
            }
        }
        return done.wait(timeout: .now() + limit) == .success
    }

    /// Blocks until the bus name has an owner, or has none, as a client sees it. Must not be called on the loop.
    func waitForOwner(_ isWanted: Bool, limit: TimeInterval) -> Bool {
        let done = DispatchSemaphore(value: 0)
        let connection = Connection.open(.custom(address), loop: loop)
        let watch = connection.watchName(Self.busName) { owner in
            if (owner != nil) == isWanted { done.signal() }
        }
        defer {
            watch.cancel()
            connection.close()
        }
        return done.wait(timeout: .now() + limit) == .success
    }

    private func connectionChanged(_ state: ConnectionState) {
        guard case .closed(let error) = state else { return }
        reportConnected(.failure(.noBus(error.message)))
    }

    private func reportConnected(_ result: Result<Void, SimulatorError>) {
        let joined = shared.withLock { shared in
            defer { shared.joined = nil }
            return shared.joined
        }
        joined?(result)
    }

    static let busName = "org.bluez"
}

/// The daemon's calls of clients' objects.
extension Stage {
    func callClient(_ call: ClientCall) {
        guard let connection else { return }
        guard let path = ObjectPath(validating: call.path) else {
            return settle(call, .error(name: DBusError.Name.unknownObject, message: "No such path"))
        }
        let message = Message.call(
            destination: call.client, path: path, interface: call.interface, member: call.member
        ) { writer in
            for argument in call.arguments { writer.value(argument) }
        }
        guard call.reply != .none else { return connection.send(message.withoutReply()) }
        connection.call(message, timeout: call.timeout) { [weak self, weak connection] result in
            // The daemon may have been killed in the meantime.
            guard let self, let connection, self.connection === connection else { return }
            settle(call, reply(to: call, result))
        }
    }

    private func settle(_ call: ClientCall, _ reply: ClientReply) {
        decide { $0.daemon.clientReplied(call.id, reply) }
    }

    private func reply(to call: ClientCall, _ result: Result<Message, DBusError>) -> ClientReply {
        switch result {
        case .failure(let error): .error(name: error.name, message: error.message)
        case .success(let message):
            call.reply == .socket
                ? socket(of: message).map(ClientReply.socket) ?? .values([]) : .values(message.values)
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
