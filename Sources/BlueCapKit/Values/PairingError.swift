public import Foundation
public import GATT

/// Who rejected a pairing.
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

/// Why a pairing failed.
public enum PairingError: Swift.Error, Hashable, Sendable {
    /// The application called ``Peripheral/cancelPairing()``, or another program cancelled the pairing.
    case cancelled
    case rejected(by: PairingParty)
    /// The pairing, or an answer that it needed, took too long.
    case timedOut
    /// The link was lost before the pairing was complete.
    case linkLost
    /// BlueZ reports one error for a wrong passkey, a refusal by the peer and a peer that cannot be paired in this way.
    case failed(BusFailure)
    /// BlueZ has a bond already, or believes that it has one.
    case alreadyPaired(BusFailure)
    /// There was no link to pair over, and none could be made.
    case connectionFailed(BusFailure)
    /// The peripheral no longer has the keys of the bond. `isCertain`: BlueZ has reported it (5.83 and later); otherwise
    /// two successive links ended as they do in that case. See ``Peripheral/repair(timeout:)``.
    case keyMissing(isCertain: Bool)
    /// Another program is pairing with the device.
    case busy(BusFailure)
    /// The manager's policy is ``PairingPolicy/reject``.
    case notAllowed
    /// The bus or BlueZ has refused this process's pairing agent.
    case unauthorized(BusFailure)
    /// There is no adapter with power, or BlueZ does not have the device.
    case unavailable(BusFailure)
}

/// The security that an operation needs.
public enum RequiredSecurity: Hashable, Sendable {
    /// An encrypted link: any pairing suffices.
    case encryption
    /// A pairing with a passkey or a comparison of numbers: the device is paired already, and that does not suffice.
    case authentication
}

/// A change of a peripheral's pairing.
public struct PairingChange: Hashable, Sendable {
    public enum Origin: Hashable, Sendable {
        /// The application called ``Peripheral/pair(trusting:timeout:)``, ``Peripheral/unpair(timeout:)`` or
        /// ``Peripheral/repair(timeout:)``.
        case application
        /// An operation on a protected value.
        case onDemand
        /// Another program, or the peer.
        case elsewhere
    }

    /// Whether the link can be encrypted.
    public var isPaired: Bool
    /// Whether the keys are stored, so that later links can be encrypted as well.
    public var isBonded: Bool
    public var origin: Origin
    /// Why a pairing has failed; `nil` if none has.
    public var error: PairingError?
}

/// A bond of an adapter: a device with which BlueZ shares stored keys.
public struct Bond: Hashable, Sendable {
    /// The identifier of the device's ``Peripheral``.
    public let identifier: UUID
    public let address: BluetoothAddress
    public let addressType: BluetoothAddress.AddressType
    public let name: String?
    public let isTrusted: Bool
    public let isConnected: Bool
    /// Whether this manager made the bond.
    public let isOurs: Bool
}

extension PairingError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { description }

    public var description: String {
        switch self {
        case .cancelled:
            "The pairing was cancelled."
        case .rejected(by: .application):
            "The application rejected the pairing."
        case .rejected(by: .policy):
            "The manager's pairing policy rejected the pairing: it accepts no request of this kind, or no handler of "
                + "whenPairingIsRequested() was there to answer it."
        case .rejected(by: .peer):
            "The other device rejected the pairing."
        case .rejected(by: .system):
            "BlueZ or another program rejected the pairing."
        case .timedOut:
            "The pairing was not completed in time."
        case .linkLost:
            "The link was lost before the pairing was complete."
        case .failed(let failure):
            "The pairing failed (\(failure)): the passkey was wrong, the other device refused, "
                + "or it cannot be paired in this way."
        case .alreadyPaired(let failure):
            "BlueZ has a bond with the device already (\(failure)): call repair() if the device no longer has it."
        case .connectionFailed(let failure):
            "There was no link to pair over (\(failure)). Check that the device is near, and can be connected."
        case .keyMissing(let isCertain):
            (isCertain
                ? "The device no longer has the keys of its bond"
                : "The device ends each link at once, as one does that no longer has the keys of its bond")
                + ": call repair() if it is the device that the user means."
        case .busy(let failure):
            "Another program is pairing with the device (\(failure)): try again later."
        case .notAllowed:
            "The manager does not pair: set its pairingPolicy to .justWorks or .ask."
        case .unauthorized(let failure):
            "BlueZ or the bus refused this program's pairing agent (\(failure))."
        case .unavailable(let failure):
            "The device cannot be paired now (\(failure))."
        }
    }
}
