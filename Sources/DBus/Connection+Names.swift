import CDBus

/// What the bus says to a request for a name.
package enum NameReply: UInt32, Sendable {
    case primaryOwner = 1
    /// Another owns it; we are next in line.
    case inQueue = 2
    /// Another owns it, and we did not want to wait.
    case exists = 3
    case alreadyOwner = 4
}

/// How a name is asked for: the flags of org.freedesktop.DBus.RequestName.
package struct NameFlags: OptionSet, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    package static let allowReplacement = NameFlags(rawValue: 1)
    package static let replaceExisting = NameFlags(rawValue: 2)
    package static let doNotQueue = NameFlags(rawValue: 4)
}

extension Connection {
    /// Asks the bus for a name.
    package func requestName(
        _ name: String, flags: NameFlags = .doNotQueue,
        completion: @escaping @Sendable (Result<NameReply, DBusError>) -> Void = { _ in }
    ) {
        requireName(name)
        let message = Message.toBus("RequestName") { writer in
            writer.string(name)
            writer.uint32(flags.rawValue)
        }
        call(message) { result in
            completion(
                result.flatMap { reply in
                    var reader = reply.reader
                    guard let answer = reader.uint32().flatMap(NameReply.init) else {
                        return .failure(.failed("The bus has answered RequestName with \(reply)."))
                    }
                    return .success(answer)
                })
        }
    }

    /// Gives a name back; giving back what one does not own is no error.
    package func releaseName(
        _ name: String, completion: @escaping @Sendable (Result<Void, DBusError>) -> Void = { _ in }
    ) {
        requireName(name)
        call(.toBus("ReleaseName") { $0.string(name) }) { completion($0.map { _ in }) }
    }

    private func requireName(_ name: String) {
        precondition(isValid(name, cdbus_is_bus_name), "\"\(name)\" is not a bus name, such as org.bluez.")
    }
}
