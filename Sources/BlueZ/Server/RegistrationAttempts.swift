/// Counts the attempts to register something with BlueZ, and decides from each refusal whether another one makes sense.
///
/// An error is tried again only if it is known to pass. What BlueZ has taken before is tried again after nearly every error,
/// since the operation that wanted it has succeeded and no caller waits.
struct RegistrationAttempts: Hashable, Sendable {
    enum Verdict: Hashable, Sendable {
        /// BlueZ may have it already: unregister it and register it at once.
        case clear
        case retry(after: Double)
        case giveUp
    }

    /// How often it is tried if BlueZ has taken it before: for half a minute.
    static let mostAgain = 8
    /// How often it is tried before BlueZ has ever taken it: for 7.5 seconds, so that a caller whose time-out is that of
    /// `PeripheralManager` learns the reason.
    static let mostAtFirst = 5
    private static let firstDelay = 0.5
    private static let longestDelay = 8.0
    private static let firstPatience = 20.0
    private static let longestPatience = 320.0

    /// How often it is tried at first after `org.bluez.Error.Failed`, which names no reason.
    private let mostFailures: Int
    private(set) var count = 0
    /// After how many seconds without an answer the answer counts as lost. It is doubled each time, so that a slow daemon is
    /// waited for long enough in the end.
    private(set) var patience = Self.firstPatience
    private var hasCleared = false

    init(mostFailures: Int) { self.mostFailures = mostFailures }

    mutating func startOver() { self = RegistrationAttempts(mostFailures: mostFailures) }

    /// BlueZ has taken it. ``count`` stays: what is released again and again must not be registered without a pause.
    mutating func succeeded() {
        hasCleared = false
        patience = Self.firstPatience
    }

    /// No answer has arrived for ``patience`` seconds.
    mutating func unanswered() { patience = min(patience * 2, Self.longestPatience) }

    /// - Parameter wasTaken: Whether BlueZ has taken the same before.
    mutating func refused(_ error: BlueZError, wasTaken: Bool) -> Verdict {
        count += 1
        switch error.cause {
        case .alreadyExists, .noReply:
            // Left over from a call whose answer was lost: BlueZ may have it, or get it yet.
            guard hasCleared else {
                hasCleared = true
                return .clear
            }
            return wasTaken ? retry(Self.mostAgain) : .giveUp
        case .invalidArguments, .notSupported, .accessDenied, .notAuthorized:
            return .giveUp
        case .failed:
            return retry(wasTaken ? Self.mostAgain : mostFailures)
        // The kernel is busy, or the adapter or the daemon is about to go, which is reported separately.
        case .inProgress, .notReady, .blocked, .unknownObject, .unknownMethod, .serviceGone, .disconnected:
            return retry(wasTaken ? Self.mostAgain : Self.mostAtFirst)
        // "Maximum advertisements reached" is `notPermitted`; names that are not in the table are `other`.
        case .notPermitted, .notAvailable, .doesNotExist, .alreadyConnected, .notConnected, .other:
            return wasTaken ? retry(Self.mostAgain) : .giveUp
        }
    }

    /// BlueZ has dropped what it had taken.
    mutating func released() -> Verdict {
        count += 1
        return retry(Self.mostAgain)
    }

    private func retry(_ most: Int) -> Verdict {
        guard count < most else { return .giveUp }
        return .retry(after: min(Self.firstDelay * Double(1 << (count - 1)), Self.longestDelay))
    }
}

/// The end of a registration: which answers are still to come, and what follows from each.
///
/// BlueZ works calls off in their order, so `Unregister…` behind an unanswered `Register…` takes it back. If BlueZ fails the
/// former and carries out the latter afterwards, it is unregistered once more.
package struct RegistrationEnding: Hashable, Sendable {
    enum Next: Hashable, Sendable {
        case wait
        /// `Unregister…` has its answer, which ends the registration for the user. A `Register…` call is still unanswered.
        case withdrawn
        case unregisterAgain
        case done
    }

    private var unregistering: UInt32?
    private(set) var registering: Set<UInt32>

    /// Whether `Unregister…` has its answer.
    var isWithdrawn: Bool { unregistering == nil }

    /// - Parameters:
    ///   - unregistering: The `Unregister…` call.
    ///   - registering: The `Register…` calls that have no answer yet.
    init(unregistering: UInt32, registering: Set<UInt32> = []) {
        self.unregistering = unregistering
        self.registering = registering
    }

    mutating func replied(_ request: UInt32, error: BlueZError?) -> Next {
        if request == unregistering {
            unregistering = nil
            return error == nil || registering.isEmpty ? .done : .withdrawn
        }
        guard registering.remove(request) != nil, isWithdrawn else { return .wait }
        guard error != nil else { return .unregisterAgain }
        return registering.isEmpty ? .done : .wait
    }
}
