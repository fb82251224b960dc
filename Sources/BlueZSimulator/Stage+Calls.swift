import DBus
import Foundation
import Futures
import Glibc
import Reactor

/// The daemon's calls of clients' objects.
extension Stage {
    func callClient(_ call: ClientCall) {
        guard let connection = wire.withLock({ $0.connection }) else { return }
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
            guard let self, let connection, wire.withLock({ $0.connection === connection }) else { return }
            settle(call, reply(to: call, result))
        }
    }

    private func settle(_ call: ClientCall, _ reply: ClientReply) {
        let now = seconds
        decide { $0.daemon.clientReplied(call.id, reply, now: now) }
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
        let id = shared.withLock { $0.simulation.daemon.core.nextSocket() }
        adopt(owned, as: id)
        return id
    }
}
