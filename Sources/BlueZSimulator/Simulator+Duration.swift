// The forms with a number of seconds are the same functions.
extension Simulator {
    /// Lets virtual time pass, and does everything that falls due in it in its order. In process only.
    public func advance(by duration: Duration) { advance(by: duration.seconds) }

    /// Lets virtual time pass, and runs the tasks that become ready in it; as ``advance(by:)-(TimeInterval)`` in `async`
    /// functions.
    nonisolated(nonsending) public func advance(by duration: Duration) async { await advance(by: duration.seconds) }

    /// Lets virtual time pass until the condition holds, but no longer than `limit`; returns whether it holds. In process
    /// only.
    @discardableResult
    public func advance(until condition: () -> Bool, limit: Duration) -> Bool {
        advance(until: condition, limit: limit.seconds)
    }

    /// Lets virtual time pass, and runs the tasks that become ready in it, until the condition holds, but no longer than
    /// `limit`; returns whether it holds. In process only.
    @discardableResult
    nonisolated(nonsending) public func advance(until condition: () -> Bool, limit: Duration) async -> Bool {
        await advance(until: condition, limit: limit.seconds)
    }

    /// Waits until the condition holds, which is checked after each event here, but no longer than `limit`; returns whether it
    /// holds. For a simulator in real time, and never on its loop.
    @discardableResult
    public func wait(until condition: () -> Bool, limit: Duration) -> Bool {
        wait(until: condition, limit: limit.seconds)
    }
}

extension Duration {
    fileprivate var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
