import DBus
import Foundation
import Futures
import Glibc
import Reactor

/// The daemon's calls to programs that serve, and what their objects say.
extension Stage {
    func callClient(_ call: ClientCall) {
        guard let connection = wire.withLock({ $0.connection }) else { return }
        guard let path = ObjectPath(validating: call.path) else {
            return settle(call, .error(name: DBusError.Name.unknownObject, message: "No such path"))
        }
        let message = Message.call(
            destination: call.client, path: path, interface: call.interface, member: call.member
        ) { writer in
            for argument in call.arguments { writer.argument(argument) }
        }
        guard call.form != .none else { return connection.send(message.withoutReply()) }
        connection.call(message, timeout: call.timeout) { [weak self, weak connection] result in
            // A daemon that was killed meanwhile asks nothing any more.
            guard let self, let connection, wire.withLock({ $0.connection === connection }) else { return }
            settle(call, reply(call.form, result))
        }
    }

    private func settle(_ call: ClientCall, _ reply: ClientReply) {
        guard call.form != .ignored else { return }
        let now = seconds
        decide { $0.daemon.clientAnswered(call.id, reply, now: now) }
    }

    private func reply(_ form: ClientCall.Form, _ result: Result<Message, DBusError>) -> ClientReply {
        switch result {
        case .failure(let error): return .error(name: error.name, message: error.message)
        case .success(let message):
            var reader = message.reader
            switch form {
            case .objects: return reader.remoteObjects().map(ClientReply.objects) ?? .malformed
            case .properties: return reader.remoteProperties().map(ClientReply.properties) ?? .malformed
            case .bytes: return reader.bytes().map(ClientReply.bytes) ?? .malformed
            case .nothing:
                // BlueZ minds only a second value.
                reader.skip()
                return reader.isAtEnd ? .done : .malformed
            case .socket: return socket(&reader)
            case .ignored, .none: return .done
            }
        }
    }

    /// Takes over a program's end of a pair of sockets.
    private func socket(_ reader: inout MessageReader) -> ClientReply {
        guard let owned = reader.descriptor(), let descriptor = owned.rawValue, let mtu = reader.uint16() else {
            return .malformed
        }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        let id = shared.withLock { $0.simulation.daemon.nextSocket() }
        adopt(owned, as: id)
        return .socket(id, mtu: Int(mtu))
    }

    // MARK: Listening

    func listen(to client: String) {
        guard let connection = wire.withLock({ $0.connection }) else { return }
        let subscription = connection.subscribe(MatchRule(sender: client)) { [weak self] message in
            guard let self, let signal = ClientSignal(message) else { return }
            let now = seconds
            decide { $0.daemon.clientSaid(signal, client, now: now) }
        }
        wire.withLock { $0.listened[client] = subscription }
    }
}

extension ClientSignal {
    /// Nil for signals that nobody here minds.
    init?(_ message: Message) {
        var reader = message.reader
        if message.isSignal(interface: "org.freedesktop.DBus.Properties", member: "PropertiesChanged") {
            guard let path = message.path?.rawValue, let interface = reader.string() else { return nil }
            var changed: [RemoteProperty] = []
            reader.dictionary { entry in
                guard let name = entry.string(), let value = entry.variant({ $0.remoteValue() }) else { return }
                changed.append(RemoteProperty(name: name, value: value))
            }
            self = .propertiesChanged(
                path: path, interface: interface, changed: changed, invalidated: reader.strings() ?? [])
        } else if message.isSignal(interface: "org.freedesktop.DBus.ObjectManager", member: "InterfacesRemoved") {
            guard let path = reader.objectPath()?.rawValue else { return nil }
            self = .interfacesRemoved(path: path, interfaces: reader.strings() ?? [])
        } else {
            return nil
        }
    }
}

extension MessageWriter {
    fileprivate mutating func argument(_ argument: ClientCall.Argument) {
        switch argument {
        case .string(let text): string(text)
        case .bytes(let list): bytes(list)
        case .options(let options): properties(options)
        case .variant(let value): variant(value.signature) { $0.value(value) }
        }
    }
}

extension MessageReader {
    /// The answer of `GetManagedObjects`, in the order sent; nil where it is something else.
    fileprivate mutating func remoteObjects() -> [RemoteObject]? {
        var objects: [RemoteObject] = []
        let isDictionary = dictionary { entry in
            guard let path = entry.objectPath()?.rawValue else { return }
            var object = RemoteObject(path: path, interfaces: [])
            entry.dictionary { interface in
                guard let name = interface.string() else { return }
                object.interfaces.append(
                    RemoteObject.Interface(name: name, properties: interface.remoteProperties() ?? [:]))
            }
            objects.append(object)
        }
        return isDictionary ? objects : nil
    }

    /// `a{sv}`.
    fileprivate mutating func remoteProperties() -> [String: RemoteValue]? {
        var properties: [String: RemoteValue] = [:]
        let isDictionary = dictionary { entry in
            guard let name = entry.string() else { return }
            properties[name] = entry.variant { $0.remoteValue() }
        }
        return isDictionary ? properties : nil
    }

    /// Whatever comes next.
    fileprivate mutating func remoteValue() -> RemoteValue? {
        if let text = string() { return .string(text) }
        if let path = objectPath() { return .objectPath(path.rawValue) }
        if let flag = bool() { return .bool(flag) }
        if let number = byte() { return .byte(number) }
        if let number = int16() { return .int16(number) }
        if let number = uint16() { return .uint16(number) }
        if let number = uint32() { return .uint32(number) }
        if let list = bytes() { return .bytes(list) }
        let signature = signature
        var entries: [RemoteEntry] = []
        let isDictionary = dictionary { entry in
            guard let key = entry.remoteValue() else { return }
            let value = entry.variant { $0.remoteValue() } ?? entry.remoteValue()
            if let value { entries.append(RemoteEntry(key: key, value: value)) }
        }
        if isDictionary { return .dictionary(entries) }
        var elements: [RemoteValue] = []
        let isArray = array { element in
            if let value = element.remoteValue() { elements.append(value) }
        }
        if isArray { return .array(elements) }
        skip()
        return .other(signature: signature)
    }
}
