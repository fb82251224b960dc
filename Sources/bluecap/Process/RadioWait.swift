import BlueCapKit

/// Waiting until Bluetooth can be used, or is known to be of no use.
enum RadioWait {
    /// How long a daemon may take to say how things stand, in seconds: one that starts, on a slow machine.
    static let patience = 10.0

    /// Returns when the manager is powered on.
    ///
    /// - Parameters:
    ///   - patience: For how many seconds it waits.
    ///   - standing: The manager's state at that moment, and the reason for it.
    /// - Throws: ``ToolFailure`` with the status ``ToolFailure/noAdapter``, or `CancellationError`.
    static func untilUsable(
        _ states: FutureStream<ManagerState>, isSimulated: Bool, for patience: Double = patience,
        standing: @escaping @Sendable () -> (state: ManagerState, explanation: String)
    ) async throws {
        let failure: ToolFailure? = await withTaskGroup(of: ToolFailure?.self) { group in
            group.addTask {
                for await outcome in states.outcomes {
                    guard case .success = outcome else { continue }
                    // It may be another one already, and the explanation is of no other.
                    let (state, explanation) = standing()
                    switch state {
                    case .poweredOn: return nil
                    case .unsupported, .unauthorized, .poweredOff: return unusable(explanation, isSimulated)
                    case .unknown, .resetting: continue
                    }
                }
                return nil
            }
            group.addTask {
                try? await Task.sleep(for: .seconds(patience))
                let (state, explanation) = standing()
                return Task.isCancelled || state == .poweredOn ? nil : unusable(explanation, isSimulated)
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
        try Task.checkCancellation()
        if let failure { throw failure }
    }

    /// What everybody can do who has no radio that works is said with it.
    static func unusable(_ why: String, _ isSimulated: Bool) -> ToolFailure {
        var failure = ToolFailure(why, isSimulated ? "" : "Without a radio, try --simulated.")
        failure.status = ToolFailure.noAdapter
        return failure
    }
}
