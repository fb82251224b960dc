/// The meaning of the `Flags` of an object.
struct CharacteristicFlags: Hashable, Sendable {
    /// Those that a central discovers.
    var flags: Set<CharacteristicFlag> = []
    var permissions: AttributePermissions = []
    /// The permissions of the descriptor for subscriptions.
    var subscribing: AttributePermissions = []
    var wantsAuthorization = false

    /// Nil if the value is no list of flags, if one of them is unknown, or if the list is empty, as with BlueZ.
    static func ofCharacteristic(_ value: BusValue, hasSecuredSubscriptions: Bool) -> CharacteristicFlags? {
        guard let texts = value.strings, !texts.isEmpty else { return nil }
        var flags = CharacteristicFlags()
        for text in texts { guard flags.add(text) else { return nil } }
        let isSecured = !flags.subscribing.isDisjoint(with: [.writeEncrypted, .writeAuthenticated, .writeSecure])
        guard hasSecuredSubscriptions || !isSecured else { return nil }
        if flags.flags.extendedPropertyBits != 0 { flags.flags.insert(.extendedProperties) }
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
        case "broadcast": flags.insert(.broadcast)
        case "read": take(.read, .read)
        case "write-without-response": take(.writeWithoutResponse, .write)
        case "write": take(.write, .write)
        case "notify": subscribe(.notify, .write)
        case "indicate": subscribe(.indicate, .write)
        case "authenticated-signed-writes": take(.authenticatedSignedWrites, .write)
        case "extended-properties": flags.insert(.extendedProperties)
        case "reliable-write": take(.reliableWrite, .write)
        case "writable-auxiliaries": flags.insert(.writableAuxiliaries)
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

    private mutating func take(_ flag: CharacteristicFlag, _ permission: AttributePermissions) {
        flags.insert(flag)
        permissions.formUnion(permission)
    }

    private mutating func subscribe(_ flag: CharacteristicFlag, _ permission: AttributePermissions) {
        flags.insert(flag)
        subscribing.formUnion(permission)
    }
}
