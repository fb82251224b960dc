extension ObjectRegistry {
    /// Answers org.freedesktop.DBus.Properties; false where the call is of another interface, or of no method of it.
    func answerProperties(_ message: Message, of object: ExportedObject, on connection: ConnectionCore) -> Bool {
        guard message.hasInterface("org.freedesktop.DBus.Properties"), object.hasProperties else { return false }
        if message.hasMember("Get"), message.hasSignature("ss") {
            get(message, of: object, on: connection)
        } else if message.hasMember("GetAll"), message.hasSignature("s") {
            getAll(message, of: object, on: connection)
        } else if message.hasMember("Set"), message.hasSignature("ssv") {
            set(message, of: object, on: connection)
        } else {
            return false
        }
        return true
    }

    private func get(_ message: Message, of object: ExportedObject, on connection: ConnectionCore) {
        var reader = message.reader
        guard let interface = reader.withString(object.interface(named:)) ?? nil else {
            return connection.answer(message, .noSuchInterface(message))
        }
        guard let property = reader.withString(interface.property(named:)) ?? nil, property.exists else {
            return connection.answer(message, .noSuchProperty(message, name: DBusError.Name.invalidArguments))
        }
        connection.answer(message) { writer in
            writer.variant(static: property.description.signature, property.get)
        }
    }

    private func getAll(_ message: Message, of object: ExportedObject, on connection: ConnectionCore) {
        var reader = message.reader
        guard let interface = reader.withString(object.interface(named:)) ?? nil else {
            return connection.answer(message, .noSuchInterface(message))
        }
        connection.answer(message) { writer in
            writer.dictionary(key: "s", value: "v") { interface.writeProperties(&$0) }
        }
    }

    private func set(_ message: Message, of object: ExportedObject, on connection: ConnectionCore) {
        var reader = message.reader
        guard let interface = reader.withString(object.interface(named:)) ?? nil else {
            return connection.answer(message, .noSuchInterface(message))
        }
        guard let property = reader.withString(interface.property(named:)) ?? nil else {
            return connection.answer(message, .noSuchProperty(message, name: DBusError.Name.unknownProperty))
        }
        guard let set = property.set else {
            return connection.answer(
                message,
                DBusError(
                    name: DBusError.Name.propertyReadOnly,
                    message: "Property '\(property.description.name)' is not writable"))
        }
        guard property.exists else {
            return connection.answer(message, .noSuchProperty(message, name: DBusError.Name.unknownProperty))
        }
        let invocation = connection.invocation(message, of: StandardInterface.set)
        reader.variant { value in
            guard value.signature == "\(property.description.signature)" else {
                return invocation.fail(
                    DBusError(
                        name: DBusError.Name.invalidSignature,
                        message: "Invalid signature for '\(property.description.name)'"))
            }
            set(&value, invocation)
        }
    }
}

extension ExportedObject {
    var hasProperties: Bool { interfaces.contains { !$0.description.properties.isEmpty } }
}

extension DBusError {
    fileprivate static func noSuchInterface(_ message: Message) -> DBusError {
        var reader = message.reader
        return .invalidArguments("No such interface '\(reader.string() ?? "")'")
    }

    fileprivate static func noSuchProperty(_ message: Message, name: String) -> DBusError {
        var reader = message.reader
        reader.skip()
        return DBusError(name: name, message: "No such property '\(reader.string() ?? "")'")
    }
}
