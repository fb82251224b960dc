public import BlueZSimulator
public import Foundation

/// What happened, in its order, written on any thread.
// Unchecked: `entries` is accessed under the lock of `condition` only.
public final class Notes: @unchecked Sendable {
    private let condition = NSCondition()
    private var entries: [String] = []
    public var texts: [String] { condition.withLock { entries } }
    public var count: Int { texts.count }
    public func contains(_ text: String) -> Bool { texts.contains(text) }

    public init() {}

    public func note(_ text: String) {
        condition.withLock {
            entries.append(text)
            condition.broadcast()
        }
    }

    public func clear() { condition.withLock { entries = [] } }

    /// Waits in real time. Checks the condition after each note, and at intervals, for what is not noted.
    public func wait(limit: TimeInterval, until condition: ([String]) -> Bool) -> Bool {
        let deadline = Date(timeIntervalSinceNow: limit)
        while Date() < deadline {
            if condition(texts) { return true }
            self.condition.withLock { _ = self.condition.wait(until: Date(timeIntervalSinceNow: 0.05)) }
        }
        return condition(texts)
    }
}

/// A peripheral that responds as a test chooses.
// Unchecked: used on the simulator's loop, which the test's thread drives, and by the test in between.
public final class Strap: PeripheralBehavior, @unchecked Sendable {
    public var connectionAnswer = ConnectionAnswer.accept(after: 0)
    public var writeAnswer: ([UInt8]) -> AttributeAnswer = { _ in .done }
    public var onWrite: ([UInt8]) -> Void = { _ in }
    public private(set) var written: [[UInt8]] = []

    public init() {}

    public func connectRequested(to peripheral: VirtualPeripheral, at seconds: TimeInterval) -> ConnectionAnswer {
        connectionAnswer
    }

    public func write(
        _ bytes: [UInt8], to attribute: VirtualAttribute, of peripheral: VirtualPeripheral, type: VirtualWriteType,
        at seconds: TimeInterval
    ) -> AttributeAnswer {
        written.append(bytes)
        onWrite(bytes)
        return writeAnswer(bytes)
    }
}
