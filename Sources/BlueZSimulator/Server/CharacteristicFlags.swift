/// What the flags of an object mean.
struct CharacteristicFlags: Hashable, Sendable {
    var properties: AttributeProperties = []
    /// The bits of the descriptor for extended properties.
    var extended: UInt8 = 0
    var permissions: AttributePermissions = []
    /// Who may write the descriptor for subscriptions.
    var subscribing: AttributePermissions = []
    var wantsAuthorization = false

    /// Nil for what is no list of flags, and where one of them is unknown; an empty list too, as with BlueZ.
    static func ofCharacteristic(_ value: BusValue, hasSecuredSubscriptions: Bool) -> CharacteristicFlags? {
        guard let texts = value.strings, !texts.isEmpty else { return nil }
        var flags = CharacteristicFlags()
        for text in texts { guard flags.add(text) else { return nil } }
        let isSecured = !flags.subscribing.isDisjoint(with: [.writeEncrypted, .writeAuthenticated, .writeSecure])
        guard hasSecuredSubscriptions || !isSecured else { return nil }
        if flags.extended != 0 { flags.properties.insert(.extended) }
        return flags
    }

    static func ofDescriptor(_ value: BusValue) -> CharacteristicFlags? {
        guard let texts = value.strings, !texts.isEmpty else { return nil }
        var flags = CharacteristicFlags()
        for text in texts {
            guard descriptorFlags.contains(text), flags.add(text) else { return nil }
        }
        return flags
    }

    private static let descriptorFlags: Set<String> = [
        "read", "write", "encrypt-read", "encrypt-write", "encrypt-authenticated-read", "encrypt-authenticated-write",
        "secure-read", "secure-write", "authorize",
    ]

    private mutating func add(_ text: String) -> Bool {
        switch text {
        case "broadcast": properties.insert(.broadcast)
        case "read": take(.read, .read)
        case "write-without-response": take(.writeWithoutResponse, .write)
        case "write": take(.write, .write)
        case "notify": subscribe(.notify, .write)
        case "indicate": subscribe(.indicate, .write)
        case "authenticated-signed-writes": take(.signedWrite, .write)
        case "extended-properties": properties.insert(.extended)
        case "reliable-write":
            extended |= 1
            permissions.insert(.write)
        case "writable-auxiliaries": extended |= 2
        case "encrypt-read": take(.read, [.read, .readEncrypted])
        case "encrypt-write": take(.write, [.write, .writeEncrypted])
        case "encrypt-authenticated-read": take(.read, [.read, .readAuthenticated])
        case "encrypt-authenticated-write": take(.write, [.write, .writeAuthenticated])
        case "secure-read": take(.read, [.read, .readSecure])
        case "secure-write": take(.write, [.write, .writeSecure])
        case "authorize": wantsAuthorization = true
        case "encrypt-notify": subscribe(.notify, .writeEncrypted)
        case "encrypt-authenticated-notify": subscribe(.notify, .writeAuthenticated)
        case "secure-notify": subscribe(.notify, .writeSecure)
        case "encrypt-indicate": subscribe(.indicate, .writeEncrypted)
        case "encrypt-authenticated-indicate": subscribe(.indicate, .writeAuthenticated)
        case "secure-indicate": subscribe(.indicate, .writeSecure)
        default: return false
        }
        return true
    }

    private mutating func take(_ property: AttributeProperties, _ permission: AttributePermissions) {
        properties.insert(property)
        permissions.formUnion(permission)
    }

    private mutating func subscribe(_ property: AttributeProperties, _ permission: AttributePermissions) {
        properties.insert(property)
        subscribing.formUnion(permission)
    }
}
