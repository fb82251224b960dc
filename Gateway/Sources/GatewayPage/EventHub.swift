import Foundation
import GatewayCore

/// Sends the changes of a board to all viewers once a second.
// `@unchecked`: `state` is accessed only while `lock` is held.
final class EventHub: @unchecked Sendable {
    struct Viewer: Sendable {
        let number: Int
        /// An event with everything, to be sent first.
        let first: Data
        /// The events that follow. They end if the viewer takes fewer than are sent.
        let events: AsyncStream<Data>
    }

    private struct State {
        var viewers: [Int: AsyncStream<Data>.Continuation] = [:]
        var number = 0
        /// What was sent to all viewers; `nil` if there are none.
        var mark: StatusBoard.Mark?
    }

    private let lock = NSLock()
    private var state = State()
    private let board: StatusBoard
    private let limit: Int

    init(board: StatusBoard, limit: Int) {
        (self.board, self.limit) = (board, limit)
    }

    var viewers: Int { lock.withLock { state.viewers.count } }

    /// Adds a viewer; returns `nil` if there are too many.
    func join() -> Viewer? {
        let (events, continuation) = AsyncStream.makeStream(of: Data.self, bufferingPolicy: .bufferingOldest(8))
        let joined: (number: Int, snapshot: StatusSnapshot)? = lock.withLock {
            guard state.viewers.count < limit else { return nil }
            let (snapshot, mark) = board.changes(since: nil)
            // The next event begins at an earlier mark if there are other viewers. Changes may arrive twice.
            if state.mark == nil { state.mark = mark }
            state.number += 1
            state.viewers[state.number] = continuation
            return (state.number, snapshot)
        }
        guard let joined else { return nil }
        return Viewer(number: joined.number, first: Self.event(joined.snapshot), events: events)
    }

    func leave(_ number: Int) {
        lock.withLock {
            state.viewers.removeValue(forKey: number)?.finish()
            if state.viewers.isEmpty { state.mark = nil }
        }
    }

    /// Sends what has changed since the last call. A viewer that has not taken the last eight events is removed.
    func send() {
        let snapshot: StatusSnapshot? = lock.withLock {
            guard let mark = state.mark else { return nil }
            let (snapshot, next) = board.changes(since: mark)
            state.mark = next
            return snapshot
        }
        guard let snapshot else { return }
        let event = Self.event(snapshot)
        lock.withLock {
            for (number, viewer) in state.viewers {
                if case .enqueued = viewer.yield(event) { continue }
                state.viewers.removeValue(forKey: number)?.finish()
            }
            if state.viewers.isEmpty { state.mark = nil }
        }
    }

    /// Sends changes once a second until the task is cancelled; then it ends the events of all viewers.
    func run() async throws {
        defer {
            lock.withLock {
                for viewer in state.viewers.values { viewer.finish() }
                (state.viewers, state.mark) = ([:], nil)
            }
        }
        while true {
            try await Task.sleep(for: .seconds(1))
            send()
        }
    }

    /// Returns a server-sent event. The JSON has no line ends.
    private static func event(_ snapshot: StatusSnapshot) -> Data {
        let name = snapshot.whole ? "snapshot" : "changes"
        return Data("event: \(name)\ndata: ".utf8) + snapshot.json + Data("\n\n".utf8)
    }
}
