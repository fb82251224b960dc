package import BlueCapDBus

/// The state of the link to `bluetoothd`: bus, daemon, tree of objects.
package enum Availability: Hashable, Sendable {
    /// The first attempt to connect to the bus is under way.
    case connecting
    /// There is no bus, or it was lost. Retried automatically.
    case noBus(DBusError)
    /// The bus, or its policy for `org.bluez`, refuses this process.
    case refused(DBusError)
    /// The bus is there, and `org.bluez` has no owner.
    case noDaemon
    /// The daemon is there, its objects are being read.
    case loading
    /// The daemon is there, and its objects could not be read. Retried automatically.
    case notLoaded(DBusError)
    /// The tree is complete, and kept current.
    case ready
}

/// Connects to the bus, then watches the daemon's name, then reads its objects, and repeats the step that fails.
///
/// Pure: calls go out as effects, time comes in as ``timerFired()``. There is one timer, because at any moment there is
/// one thing to wait for.
struct DaemonMachine {
    typealias LoadID = UInt32

    enum Effect: Hashable, Sendable {
        case openBus
        case closeBus
        /// Subscribe to the daemon's signals and watch its name; once for each opened bus.
        case watchDaemon
        /// Read all objects, and report the reply with ``DaemonMachine/loadReplied(_:error:)``.
        case load(LoadID)
        /// Every object is gone.
        case clearTree
        case startTimer(seconds: Double)
        case cancelTimer
        case report(Availability)
    }

    enum State: Hashable, Sendable {
        /// There are no observers.
        case idle
        case connecting
        /// The bus could not be reached; the timer runs.
        case waitingForBus
        /// The bus has not yet reported the owner of the name.
        case watching
        case absent
        case loading(owner: String, LoadID)
        /// The objects could not be read; the timer runs.
        case waitingToLoad(owner: String)
        /// The policy forbids us to call this owner. Another one may be treated otherwise.
        case refused(owner: String)
        case ready(owner: String)
    }

    private static let firstBusDelay = 0.5
    private static let firstLoadDelay = 1.0
    private static let longestDelay = 30.0

    private(set) var state: State = .idle
    private(set) var availability: Availability = .connecting

    private var attempts = 0
    private var nextLoad: LoadID = 1

    /// Starts, because there is an observer.
    mutating func start() -> [Effect] {
        guard state == .idle else { return [] }
        state = .connecting
        attempts = 0
        return [.openBus] + report(.connecting)
    }

    /// Ends everything, because no observer is left.
    mutating func stop() -> [Effect] {
        guard state != .idle else { return [] }
        let cleared = clearTree()
        state = .idle
        availability = .connecting
        return cleared + [.cancelTimer, .closeBus]
    }

    mutating func busOpened() -> [Effect] {
        guard state == .connecting else { return [] }
        // Not yet a success: a bus that does not name the owner of `org.bluez` ends the connection.
        state = .watching
        return [.watchDaemon]
    }

    /// The bus could not be reached, or was lost.
    mutating func busClosed(_ error: DBusError) -> [Effect] {
        guard state != .idle, state != .waitingForBus else { return [] }
        let cleared = clearTree()
        state = .waitingForBus
        let refused = BlueZError(error).cause == .accessDenied
        return cleared + report(refused ? .refused(error) : .noBus(error)) + [delay(from: Self.firstBusDelay)]
    }

    /// Reports the owner of `org.bluez`. The bus always reports the first owner, or that there is none.
    mutating func ownerChanged(_ owner: String?) -> [Effect] {
        switch state {
        case .idle, .connecting, .waitingForBus:
            return []
        case .loading(owner: owner, _), .waitingToLoad(owner: owner), .refused(owner: owner), .ready(owner: owner):
            return []
        case .watching, .absent, .loading, .waitingToLoad, .refused, .ready:
            let cleared = clearTree() + [.cancelTimer]
            attempts = 0
            guard let owner else {
                state = .absent
                return cleared + report(.noDaemon)
            }
            return cleared + report(.loading) + [load(from: owner)]
        }
    }

    mutating func loadReplied(_ load: LoadID, error: DBusError?) -> [Effect] {
        guard case .loading(let owner, load) = state else { return [] }
        guard let error else {
            state = .ready(owner: owner)
            attempts = 0
            return report(.ready)
        }
        guard BlueZError(error).cause != .accessDenied else {
            state = .refused(owner: owner)
            return report(.refused(error))
        }
        // The daemon is starting, hangs, or is not BlueZ's. If it has ended, the owner of its name changes.
        state = .waitingToLoad(owner: owner)
        return report(.notLoaded(error)) + [delay(from: Self.firstLoadDelay)]
    }

    mutating func timerFired() -> [Effect] {
        switch state {
        case .waitingForBus:
            state = .connecting
            return [.openBus]
        case .waitingToLoad(let owner):
            // The availability remains the last failure until the reply.
            return [load(from: owner)]
        case .idle, .connecting, .watching, .absent, .loading, .refused, .ready:
            return []
        }
    }

    /// Whether the reply to this call is still awaited.
    func isWaiting(for load: LoadID) -> Bool {
        if case .loading(_, load) = state { true } else { false }
    }

    private mutating func load(from owner: String) -> Effect {
        let load = nextLoad
        nextLoad &+= 1
        state = .loading(owner: owner, load)
        return .load(load)
    }

    private func clearTree() -> [Effect] {
        if case .ready = state { [.clearTree] } else { [] }
    }

    private mutating func delay(from first: Double) -> Effect {
        let seconds = min(first * Double(1 << min(attempts, 16)), Self.longestDelay)
        attempts += 1
        return .startTimer(seconds: seconds)
    }

    private mutating func report(_ new: Availability) -> [Effect] {
        guard new != availability || new == .connecting else { return [] }
        availability = new
        return [.report(new)]
    }
}
