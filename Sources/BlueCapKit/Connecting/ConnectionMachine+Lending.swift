/// A link for whoever needs one for a while, beside what the user wants of the connection.
///
/// Who borrows takes the link as it is: one that is there, one that is being tried for, or one that is tried for now.
/// The stream of the last `connect` tells of it as of any other. Only a link that is there for borrowers alone ends with
/// them: `connect` and `reconnect` make it the user's own.
extension ConnectionMachine {
    mutating func linkBorrowed() -> [Effect] {
        switch state {
        case .disconnected:
            isBorrowed = true
        case .waiting(.delay):
            // The user's own try, only sooner.
            break
        case .cancelling(_, let ending), .disconnecting(let ending):
            if case .connect = ending.next { return [] }
            isBorrowed = true
        case .waiting(.backOff), .waiting(.power), .seeking, .connecting, .connected, .closed:
            return []
        }
        return reconnect(after: 0)
    }

    mutating func linkReturned() -> [Effect] {
        guard isBorrowed else { return [] }
        isBorrowed = false
        switch state {
        case .waiting, .seeking, .connecting:
            return end(then: .rest)
        case .connected:
            // Somebody else's link, that was there before.
            return isOurs ? end(then: .rest) : []
        case .cancelling(let attempt, let ending):
            state = .cancelling(attempt, ending.resting)
            return []
        case .disconnecting(let ending):
            state = .disconnecting(ending.resting)
            return []
        case .disconnected, .closed:
            return []
        }
    }
}

extension ConnectionMachine.Ending {
    /// The same, without a connection to follow.
    fileprivate var resting: Self {
        if case .connect = next { Self(report: report, next: .rest) } else { self }
    }
}
