public import Foundation
public import BlueCapGATT

/// The party that rejected a pairing.
public enum PairingParty: Hashable, Sendable {
    /// The application, with ``PairingRequest/reject()``.
    case application
    /// The manager's ``PairingPolicy``: it accepts no such request, or the application had no handler.
    case policy
    /// The other device or its user.
    case peer
    /// BlueZ or another program of this machine.
    case system
}

/// Why a pairing failed. A later version may add cases.
public enum PairingError: Swift.Error, Hashable, Sendable {
    /// The application called ``Peripheral/cancelPairing()``, or another program cancelled the pairing. In the peripheral
    /// role: the pairing ended before this program had answered.
    case cancelled
    /// A request was rejected, by this program or by the other device.
    case rejected(by: PairingParty)
    /// The pairing, or an answer that it needed, took too long.
    case timedOut
    /// The link was lost before the pairing was complete. In the peripheral role this is also a pairing that failed: BlueZ
    /// reports to a peripheral only that the link has ended.
    case linkLost
    /// BlueZ reports one error for a wrong passkey, a refusal by the peer and a peer that cannot be paired in this way.
    case failed(BusError)
    /// BlueZ has a bond already, or believes that it has one.
    case alreadyPaired(BusError)
    /// There was no link to pair over, and none could be made.
    case connectionFailed(BusError)
    /// The peripheral no longer has the keys of the bond. `isCertain`: BlueZ has reported it (5.83 and later). Otherwise
    /// two successive links ended as they do in that case; or a link could not be used within 60 seconds, or a new pairing
    /// for it was rejected, which also happens if the adapter has lost the keys. See ``Peripheral/repair(timeout:)``.
    case keyMissing(isCertain: Bool)
    /// Another program is pairing with the device.
    case busy(BusError)
    /// The manager's policy is ``PairingPolicy/reject``.
    case notAllowed
    /// The bus or BlueZ does not allow this process to pair, or has not registered its pairing agent.
    case unauthorized(BusError)
    /// There is no bus, no `bluetoothd` or no adapter with power, or BlueZ does not have the device; the failure says which.
    case unavailable(BusError)
    /// BlueZ has not removed the bond.
    case removalFailed(BusError)
    /// BlueZ has not changed the mark ``Peripheral/isTrusted``.
    case trustFailed(BusError)
}

/// The security that an operation on a value needs.
public enum RequiredSecurity: Hashable, Sendable {
    /// An encrypted link: any pairing suffices.
    case encryption
    /// A pairing with a passkey or a comparison of numbers. As a central: the device is paired already, and that does not
    /// suffice.
    case authentication
    /// Such a pairing with LE Secure Connections. A central is not told that this is what a value needs:
    /// ``CharacteristicError/pairingRequired(_:_:)`` then has ``authentication``.
    case secureConnections
}

/// A change of the pairing with a peripheral or a central.
public struct PairingChange: Hashable, Sendable {
    /// The cause of a change.
    public enum Origin: Hashable, Sendable {
        /// The application called ``Peripheral/pair(trusting:timeout:)``, ``Peripheral/unpair(timeout:)`` or
        /// ``Peripheral/repair(timeout:)``. In the peripheral role: BlueZ has asked this manager, or the application called
        /// ``PeripheralManager/forget(_:)``.
        case application
        /// An operation on a protected value; not in the peripheral role.
        case onDemand
        /// Another program, or the peer; in the peripheral role another program or another manager of this process.
        case elsewhere
    }

    /// Whether the link can be encrypted.
    public var isPaired: Bool
    /// Whether the keys are stored, so that later links can be encrypted as well.
    public var isBonded: Bool
    /// The program or device that made the change.
    public var origin: Origin
    /// Why a pairing has failed; `nil` if none has.
    public var error: PairingError?
}

/// A bond of an adapter: a device with which BlueZ shares stored keys.
public struct Bond: Hashable, Sendable {
    /// The identifier of the device's ``Peripheral``.
    public let identifier: UUID
    /// The address that BlueZ reports: the identity address of a device that has one.
    public let address: BluetoothAddress
    /// The type of ``address``.
    public let addressType: BluetoothAddress.AddressType
    /// The name that BlueZ has stored; `nil` if it has none. A device chooses its name itself.
    public let name: String?
    /// Whether BlueZ's stored mark "trusted" was set; see ``Peripheral/isTrusted``.
    public let isTrusted: Bool
    /// Whether the device was connected when the bonds were listed.
    public let isConnected: Bool
    /// Whether this manager made the bond.
    public let isOurs: Bool
}

extension PairingError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { description }

    public var description: String {
        let parts = [cause(), failure.map { " (\($0))" }, advice.map { ". \($0)" }]
        return parts.compactMap { $0 }.joined() + "."
    }

    /// Returns what has happened, without advice and without a full stop.
    /// - Parameter name: The other device; `nil` for "the device".
    package func cause(_ name: String? = nil) -> String {
        let (device, start) = (name ?? "the device", name ?? "The device")
        return switch self {
        case .cancelled: "The pairing was cancelled"
        case .rejected(by: .application): "The application rejected the pairing"
        case .rejected(by: .policy): "The pairing policy rejected the pairing"
        case .rejected(by: .peer): "\(start) has rejected the pairing"
        case .rejected(by: .system): "BlueZ or another program rejected the pairing"
        case .timedOut: "The pairing with \(device) was not completed in time"
        case .linkLost: "The link to \(device) was lost before the pairing was complete"
        case .failed:
            "The pairing failed: the passkey was wrong, \(device) has refused, or it cannot be paired in this way"
        case .alreadyPaired: "BlueZ has a bond with \(device) already"
        case .connectionFailed: "There was no link to \(device) to pair over"
        case .keyMissing(isCertain: true): "\(start) no longer has the keys of its bond"
        case .keyMissing(isCertain: false):
            "The link to \(device) was not encrypted, as if \(device) or this adapter had lost the keys of the bond"
        case .busy: "Another program is pairing with \(device)"
        case .notAllowed: "The pairing policy allows no pairing"
        case .unauthorized: "BlueZ or the bus does not let this program pair"
        case .unavailable: "BlueZ is not available, or does not have \(device)"
        case .removalFailed: "The bond with \(device) was not removed"
        case .trustFailed: "Whether \(device) is trusted was not changed"
        }
    }

    private var failure: BusError? {
        switch self {
        case .failed(let failure), .alreadyPaired(let failure), .connectionFailed(let failure), .busy(let failure),
            .unauthorized(let failure), .unavailable(let failure), .removalFailed(let failure),
            .trustFailed(let failure):
            failure
        case .cancelled, .rejected, .timedOut, .linkLost, .keyMissing, .notAllowed: nil
        }
    }

    private var advice: String? {
        switch self {
        case .rejected(by: .policy):
            "It accepts no request of this kind, or no handler of whenPairingIsRequested() was there to answer it"
        case .alreadyPaired: "Call repair() if the device no longer has it"
        case .connectionFailed: "Check that the device is near, and can be connected"
        case .keyMissing: "Call repair() if it is the device that the user means"
        case .busy: "Try again later"
        case .notAllowed: "Set pairingPolicy to .justWorks or .ask"
        case .cancelled, .rejected, .timedOut, .linkLost, .failed, .unauthorized, .unavailable, .removalFailed,
            .trustFailed:
            nil
        }
    }
}
