import BlueCapBlueZ
public import BlueCapFutures
import BlueCapReactor

/// The device that a pairing is with.
public enum PairingPeer: Hashable, Sendable {
    /// A peripheral that a ``CentralManager`` pairs with.
    case peripheral(Peripheral)
    /// A central that pairs with a ``PeripheralManager``.
    case central(Central)
}

/// A question of BlueZ about a pairing, for the application.
///
/// The application has ``PairingPolicy/answerTimeout`` seconds to answer; then the request is rejected. Only the first
/// answer counts.
///
/// ```swift
/// for try await request in manager.whenPairingIsRequested() {
///     switch request.kind {
///     case .displayPasskey(let passkey, _): show(passkey.digits)
///     case .confirm(let passkey): ask("Is it \(passkey.digits)?") { $0 ? request.confirm() : request.reject() }
///     case .enterPasskey: askForPasskey { request.enter($0) }
///     case .authorize: request.confirm()
///     }
/// }
/// ```
public final class PairingRequest: Sendable, CustomStringConvertible {
    /// What the user has to do, and which answer is needed.
    public enum Kind: Hashable, Sendable {
        /// The user enters this passkey at the other device. No answer is needed; the display ends with the request. With
        /// Bluetooth Low Energy `entered` is always 0.
        case displayPasskey(Passkey, entered: Int)
        /// The user confirms that the other device displays the same number.
        case confirm(Passkey)
        /// The user enters the passkey that the other device displays.
        case enterPasskey
        /// Confirm it to allow the pairing. BlueZ asks if the pairing needs no number. The manager asks before it pairs for an
        /// operation, because BlueZ would not; a request with a number or a passkey may then follow.
        case authorize
    }

    /// What the user has to do. With ``PairingPolicy/ask(_:)`` the capabilities of both devices determine it.
    public let kind: Kind
    /// The device that the pairing is with.
    public let peer: PairingPeer
    let request: AgentRequest
    /// Ends the time that the application has; `nil` for a displayed passkey, which needs no answer.
    let timer: TimerID?
    let ended = Future<Void>()

    init(_ request: AgentRequest, _ kind: Kind, of peer: PairingPeer, timer: TimerID?) {
        (self.request, self.kind, self.peer, self.timer) = (request, kind, peer, timer)
    }

    /// Confirms the number, or allows the pairing. For a displayed passkey it has no effect.
    /// - Returns: False if the request was answered before, has ended, or needs a passkey.
    @discardableResult
    public func confirm() -> Bool { kind == .enterPasskey ? false : request.answer(.accept) }

    /// Enters the passkey that the other device displays.
    /// - Returns: False if the request was answered before, has ended, or needs no passkey.
    @discardableResult
    public func enter(_ passkey: Passkey) -> Bool {
        kind == .enterPasskey ? request.answer(.passkey(passkey.rawValue)) : false
    }

    /// Rejects the pairing, also one with a displayed passkey, and removes a bond of it.
    /// - Returns: False if the request was answered before, or has ended. A displayed passkey ends with its pairing, which may
    ///   have succeeded: BlueZ does not wait for an answer.
    @discardableResult
    public func reject() -> Bool { request.answer(.reject(.rejectedByUser)) }

    /// Rejects the request as one that no handler receives.
    package func decline() { _ = request.answer(.reject(.rejectedByPolicy)) }

    /// Whether the request waits for an answer, or the passkey is to be displayed.
    public var isOpen: Bool { request.isOpen }

    /// Returns a future that succeeds when the request is answered, is cancelled by BlueZ or takes too long; of a
    /// displayed passkey, when the pairing has ended.
    public func whenEnded() -> Future<Void> { ended }

    /// The kind and the device, without the digits of a passkey.
    public var description: String {
        switch kind {
        case .displayPasskey: "PairingRequest(display a passkey, \(peer))"
        case .confirm: "PairingRequest(confirm a number, \(peer))"
        case .enterPasskey: "PairingRequest(enter a passkey, \(peer))"
        case .authorize: "PairingRequest(authorize, \(peer))"
        }
    }
}
