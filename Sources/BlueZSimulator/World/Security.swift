public import Foundation

/// The means of a device to show and enter numbers while it pairs, by BlueZ's names.
public enum PairingCapability: String, Hashable, Sendable, Codable, CaseIterable {
    /// It shows a passkey.
    case displayOnly = "DisplayOnly"
    /// It shows a number, which its user compares.
    case displayYesNo = "DisplayYesNo"
    /// Its user enters a passkey.
    case keyboardOnly = "KeyboardOnly"
    /// Neither: its pairings have no number.
    case noInputNoOutput = "NoInputNoOutput"
    /// It shows a passkey, and its user enters one or compares a number.
    case keyboardDisplay = "KeyboardDisplay"

    public init(from decoder: any Decoder) throws { self = try decoder.choice(of: Self.self, by: \.rawValue) }
}

/// The security of a link, and the security that an attribute demands.
public enum LinkSecurity: Int, Hashable, Sendable, CaseIterable, Comparable {
    /// Not encrypted.
    case none
    /// Encrypted, with keys of any pairing.
    case encrypted
    /// Encrypted, with keys of a pairing in which a user compared a number or entered a passkey.
    case authenticated
    /// The same, and the pairing used LE Secure Connections.
    case secure

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// The error code of a request that needs this security, over a link that has another; nil if that suffices.
    func refusal(over security: LinkSecurity) -> UInt8? {
        guard security < self else { return nil }
        return self == .encrypted ? ATTError.insufficientEncryption : ATTError.insufficientAuthentication
    }
}

/// The security that the link must have for the operations on an attribute. A request below it is refused with 0x0F
/// (insufficient encryption) or 0x05 (insufficient authentication).
public struct AttributeSecurity: Hashable, Sendable {
    /// For reading.
    public var read: LinkSecurity
    /// For writing.
    public var write: LinkSecurity
    /// For writing the descriptor for subscriptions. Descriptors have none of their own.
    public var subscribe: LinkSecurity

    /// Creates the security of an attribute; without arguments no operation needs any.
    public init(read: LinkSecurity = .none, write: LinkSecurity = .none, subscribe: LinkSecurity = .none) {
        self.read = read
        self.write = write
        self.subscribe = subscribe
    }

    /// No operation needs security.
    public static let none = AttributeSecurity()
    /// Each operation needs an encrypted link.
    public static let encrypted = AttributeSecurity(read: .encrypted, write: .encrypted, subscribe: .encrypted)
    /// Each operation needs a link with authenticated keys.
    public static let authenticated = AttributeSecurity(
        read: .authenticated, write: .authenticated, subscribe: .authenticated)
}

/// How a virtual device pairs.
///
/// ```swift
/// let lock = VirtualPeripheral(
///     "C0:FF:EE:00:10:CC",
///     services: [VirtualService("B001", characteristics: [VirtualCharacteristic("B002", security: .encrypted)])],
///     security: VirtualSecurity(.displayOnly, user: VirtualUser(displays: 123_456)))
/// ```
public struct VirtualSecurity: Hashable, Sendable {
    /// What it can show, and its user can enter.
    public var capability: PairingCapability
    /// Whether it has LE Secure Connections; without, pairings are legacy pairings.
    public var hasSecureConnections: Bool
    /// Whether it keeps keys. As a peripheral it refuses each pairing if it does not.
    public var isBondable: Bool
    /// Whether it asks for a pairing with a number if the capabilities of both devices permit one. If neither device does, no
    /// number is used.
    public var wantsMITM: Bool
    /// Whether it asks the central to encrypt each link as soon as the link is up, as a peripheral.
    public var requestsSecurity: Bool
    /// Whether it pairs without a number with a central of which it has keys already, as a peripheral. BlueZ does not.
    public var confirmsJustWorksRepairing: Bool
    /// What its user does.
    public var user: VirtualUser
    /// The identity address that a pairing gives to the peer; nil for a device without private addresses.
    public var privacy: VirtualPrivacy?

    /// Creates the security of a device. Without `wantsMITM`, a device that can show or enter something asks for a number,
    /// as Linux does.
    public init(
        _ capability: PairingCapability = .noInputNoOutput, hasSecureConnections: Bool = true,
        isBondable: Bool = true, wantsMITM: Bool? = nil, requestsSecurity: Bool = false,
        confirmsJustWorksRepairing: Bool = false, user: VirtualUser = VirtualUser(), privacy: VirtualPrivacy? = nil
    ) {
        self.capability = capability
        self.hasSecureConnections = hasSecureConnections
        self.isBondable = isBondable
        self.wantsMITM = wantsMITM ?? (capability != .noInputNoOutput)
        self.requestsSecurity = requestsSecurity
        self.confirmsJustWorksRepairing = confirmsJustWorksRepairing
        self.user = user
        self.privacy = privacy
    }
}

/// The user of a virtual device while it pairs.
public struct VirtualUser: Hashable, Sendable {
    /// The answer to a number that is compared, and to a pairing without a number. Times are seconds, 0 to 1e9.
    public enum Answer: Hashable, Sendable {
        /// Confirms it, so many seconds later.
        case accept(after: TimeInterval)
        /// Rejects it, so many seconds later.
        case reject(after: TimeInterval)
        /// Does nothing, so the pairing fails 30 seconds after its last packet.
        case never

        /// Confirms it at once.
        public static let accept = Answer.accept(after: 0)
        /// Rejects it at once.
        public static let reject = Answer.reject(after: 0)
    }

    /// The passkey that is entered.
    public enum Entry: Hashable, Sendable {
        /// The number that the other device displays, so many seconds later, 0 to 1e9.
        case displayed(after: TimeInterval)
        /// Another number.
        case wrong
        /// 0 to 999,999.
        case number(Int)
        /// None, so the pairing fails 30 seconds after its last packet.
        case never

        /// The number that the other device displays, at once.
        public static let displayed = Entry.displayed(after: 0)
    }

    /// What the user does if a number is to be compared, or a pairing without a number is to be allowed.
    public var confirms: Answer
    /// What the user enters if the other device displays a passkey.
    public var passkey: Entry
    /// The passkey that the device displays, 0 to 999,999; nil for a random one. A number outside becomes the nearest bound.
    public var displays: Int? { didSet { displays = displays.map(Limits.passkey.nearest) } }

    /// Creates a user; without arguments one that agrees to everything at once.
    public init(confirms: Answer = .accept, passkey: Entry = .displayed, displays: Int? = nil) {
        self.confirms = confirms
        self.passkey = passkey
        self.displays = displays.map(Limits.passkey.nearest)
    }
}

/// The identity of a virtual device with a private address.
public struct VirtualPrivacy: Hashable, Sendable {
    /// The address that a pairing gives to the peer.
    public var identity: VirtualAddress
    /// The type of ``identity``.
    public var identityType: AddressType

    /// Creates an identity; the device's own address is its private one.
    public init(identity: VirtualAddress, identityType: AddressType = .public) {
        self.identity = identity
        self.identityType = identityType
    }
}

/// The pairing agent of a program that the simulator plays, such as a desktop's.
public struct VirtualAgent: Hashable, Sendable {
    /// What its program can show, and its user can enter.
    public var capability: PairingCapability
    /// What its user does.
    public var user: VirtualUser
    /// Whether it asks to be the default agent. The first agent is that without asking.
    public var isDefault: Bool

    /// Creates an agent; without arguments one that agrees to everything at once.
    public init(
        _ capability: PairingCapability = .keyboardDisplay, user: VirtualUser = VirtualUser(), isDefault: Bool = false
    ) {
        self.capability = capability
        self.user = user
        self.isDefault = isDefault
    }
}

/// Why a pairing fails, with the codes of the Security Manager (core specification 5.4, volume 3, part H, 3.5.5). BlueZ reports
/// none of them to programs.
public enum PairingFailure: Hashable, Sendable {
    /// 0x01: the user has not entered the passkey.
    case passkeyEntryFailed
    /// 0x03: the capabilities permit no pairing that is secure enough.
    case authenticationRequirements
    /// 0x04: the passkey was wrong.
    case confirmValueFailed
    /// 0x05: the device does not pair.
    case pairingNotSupported
    /// 0x0C: the user of one device has rejected.
    case numericComparisonFailed
    /// 30 seconds without a packet, after which the link ends.
    case timedOut
    /// The link ended first.
    case linkLost
    /// The central's host has cancelled it.
    case cancelled
}

// MARK: - JSON

/// In JSON: `"none"`, `"encrypted"`, `"authenticated"` or `"secure"`.
extension LinkSecurity: Codable {
    public init(from decoder: any Decoder) throws { self = try decoder.choice(of: Self.self) { "\($0)" } }

    public func encode(to encoder: any Encoder) throws { try "\(self)".encode(to: encoder) }
}

/// In JSON every key is optional: `{"read": "encrypted", "write": "authenticated", "subscribe": "none"}`.
extension AttributeSecurity: Codable {
    private enum CodingKeys: String, CodingKey, CaseIterable { case read, write, subscribe }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        self.init(
            read: try container.decodeIfPresent(LinkSecurity.self, forKey: .read) ?? LinkSecurity.none,
            write: try container.decodeIfPresent(LinkSecurity.self, forKey: .write) ?? LinkSecurity.none,
            subscribe: try container.decodeIfPresent(LinkSecurity.self, forKey: .subscribe) ?? LinkSecurity.none)
    }
}

/// In JSON every key is optional: `{"capability": "DisplayYesNo", "hasSecureConnections": false, "isBondable": true,`
/// `"wantsMITM": true, "requestsSecurity": true, "confirmsJustWorksRepairing": true, "user": {…}, "privacy": {…}}`.
extension VirtualSecurity: Codable {
    private enum CodingKeys: String, CodingKey, CaseIterable {
        case capability, hasSecureConnections, isBondable, wantsMITM, requestsSecurity, confirmsJustWorksRepairing
        case user, privacy
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        func flag(_ key: CodingKeys) throws -> Bool? { try container.decodeIfPresent(Bool.self, forKey: key) }
        let capability = try container.decodeIfPresent(PairingCapability.self, forKey: .capability)
        self.init(capability ?? .noInputNoOutput, wantsMITM: try flag(.wantsMITM))
        hasSecureConnections = try flag(.hasSecureConnections) ?? hasSecureConnections
        isBondable = try flag(.isBondable) ?? isBondable
        requestsSecurity = try flag(.requestsSecurity) ?? requestsSecurity
        confirmsJustWorksRepairing = try flag(.confirmsJustWorksRepairing) ?? confirmsJustWorksRepairing
        user = try container.decodeIfPresent(VirtualUser.self, forKey: .user) ?? user
        privacy = try container.decodeIfPresent(VirtualPrivacy.self, forKey: .privacy)
    }
}

/// In JSON every key is optional: `{"confirms": {"reject": 2}, "passkey": {"displayed": 3}, "displays": 123456}`. `confirms` is
/// `{"accept": seconds}`, `{"reject": seconds}` or `{}`, no answer; `passkey` is `{"displayed": seconds}`,
/// `{"number": 123456}`, `{"isWrong": true}` or `{}`.
extension VirtualUser: Codable {
    private enum Key: String, CodingKey, CaseIterable { case confirms, passkey, displays }
    private enum AnswerKey: String, CodingKey, CaseIterable { case accept, reject }
    private enum EntryKey: String, CodingKey, CaseIterable { case displayed, number, isWrong }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: Key.self)
        self.init(displays: try container.number(Limits.passkey, forKey: .displays))
        if container.contains(.confirms) {
            let answer = try container.superDecoder(forKey: .confirms).strictContainer(keyedBy: AnswerKey.self)
            confirms = .never
            if let delay = try answer.number(Limits.seconds, forKey: .accept) { confirms = .accept(after: delay) }
            if let delay = try answer.number(Limits.seconds, forKey: .reject) { confirms = .reject(after: delay) }
        }
        if container.contains(.passkey) {
            let entry = try container.superDecoder(forKey: .passkey).strictContainer(keyedBy: EntryKey.self)
            passkey = .never
            if let delay = try entry.number(Limits.seconds, forKey: .displayed) { passkey = .displayed(after: delay) }
            if let number = try entry.number(Limits.passkey, forKey: .number) { passkey = .number(number) }
            if try entry.decodeIfPresent(Bool.self, forKey: .isWrong) == true { passkey = .wrong }
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        var answer = container.nestedContainer(keyedBy: AnswerKey.self, forKey: .confirms)
        switch confirms {
        case .accept(let delay): try answer.encode(delay, forKey: .accept)
        case .reject(let delay): try answer.encode(delay, forKey: .reject)
        case .never: break
        }
        var entry = container.nestedContainer(keyedBy: EntryKey.self, forKey: .passkey)
        switch passkey {
        case .displayed(let delay): try entry.encode(delay, forKey: .displayed)
        case .wrong: try entry.encode(true, forKey: .isWrong)
        case .number(let number): try entry.encode(number, forKey: .number)
        case .never: break
        }
        try container.encodeIfPresent(displays, forKey: .displays)
    }
}

/// In JSON: `{"identity": "00:1B:DC:00:00:01", "identityType": "public"}`; the type may be left out.
extension VirtualPrivacy: Codable {
    private enum CodingKeys: String, CodingKey, CaseIterable { case identity, identityType }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        self.init(
            identity: try container.decode(VirtualAddress.self, forKey: .identity),
            identityType: try container.decodeIfPresent(AddressType.self, forKey: .identityType) ?? .public)
    }
}
