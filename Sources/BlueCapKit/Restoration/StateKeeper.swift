import Dispatch
import Foundation
import BlueCapFutures
import BlueCapReactor

/// One queue for the process, so that the state of a manager is on the disk before the next one with its identifier
/// reads it.
private let restorationQueue = DispatchQueue(label: "bluecap.restoration", qos: .utility)

/// Reads and writes the state of one manager, on a queue of its own: the disk may take seconds, for which neither the
/// loop nor the manager's lock is blocked. Virtual time does not pass meanwhile.
final class StateKeeper<State: KeptState>: Sendable {
    /// The outcome of opening the kept state.
    enum Opening: Equatable, Sendable {
        case kept(State)
        /// Nothing can be restored. If the reason is that another manager keeps its state under this identifier,
        /// `inUse` is the path of the file.
        case failed(inUse: String?)
        /// The process has reached a limit: the state is to be opened again later.
        case postponed
    }

    private struct Record {
        /// Whether the state was ever opened: otherwise there is nothing to finish.
        var isInUse = false
        var store: StateStore<State>?
        /// The contents of the file; `nil` if they are not known.
        var written: State?
        /// Why no state is being kept; `nil` if it is.
        var problem: String?
        /// Why nothing was restored.
        var failure: String?
    }

    private let place: RestorationPlace
    private let record = Locked(Record())

    /// - Parameter identifier: That of the options; without one, nothing is kept.
    init?(identifier: String?, folder: String?) {
        guard let identifier else { return nil }
        place = RestorationPlace(identifier: identifier, root: RestorationPlace.root(folder), kind: State.folder)
    }

    /// Why no state is being kept, in one sentence; `nil` if it is.
    var problem: String? { record.withLock { $0.problem } }

    /// Why nothing was restored, in one sentence with the path of what was set aside; `nil` if a state was restored, or
    /// none was kept.
    var failure: String? { record.withLock { $0.failure } }

    /// Takes ownership of the state, and calls `completion` with what was kept, on the disk's queue.
    func open(for loop: any EventLoop, _ completion: @escaping @Sendable (Opening) -> Void) {
        record.withLock { $0.isInUse = true }
        work(for: loop) { completion(self.open()) }
    }

    private func work(for loop: any EventLoop, _ work: @escaping @Sendable () -> Void) {
        loop.beginWorkElsewhere()
        restorationQueue.async {
            work()
            loop.endWorkElsewhere()
        }
    }

    private func open() -> Opening {
        do {
            let store = try StateStore<State>(place)
            let opening = try store.read()
            return record.withLock { record in
                (record.store, record.problem) = (store, nil)
                switch opening {
                case .kept(let state):
                    record.written = state
                    return .kept(state)
                case .damaged(let damage, let aside):
                    // A file that is set aside had the same name before, without the addition.
                    let path = aside.range(of: ".unreadable-", options: .backwards).map { aside[..<$0.lowerBound] }
                    record.written = State()
                    record.failure = "\(path ?? "The state") \(damage): it is set aside as \(aside)."
                    return .failed(inUse: nil)
                }
            }
        } catch {
            if case .system(_, _, let code) = error, StateProblem.shortages.contains(code) {
                record.withLock { $0.problem = error.description }
                return .postponed
            }
            record.withLock { ($0.problem, $0.failure) = (error.description, error.description) }
            guard case .inUse(let path) = error else { return .failed(inUse: nil) }
            return .failed(inUse: path)
        }
    }

    /// Writes a state, unless the file contains it already. After an error, ``problem`` describes the error, and
    /// `failed` is called so that the write can be repeated.
    func keep(_ state: State, for loop: any EventLoop, failed: @escaping @Sendable () -> Void) {
        work(for: loop) { if !self.write(state) { failed() } }
    }

    /// Writes the last state, if there is one, and releases the file.
    func finish(_ state: State?, for loop: any EventLoop) {
        guard record.withLock({ $0.isInUse }) else { return }
        work(for: loop) {
            if let state { _ = self.write(state) }
            self.record.replace(\.store, with: nil)
        }
    }

    private func write(_ state: State) -> Bool {
        let (store, written) = record.withLock { ($0.store, $0.written) }
        guard let store, written != state else { return true }
        do {
            if state.isEmpty { try store.forget() } else { try store.keep(state) }
            record.withLock { ($0.written, $0.problem) = (state, nil) }
            return true
        } catch {
            record.withLock { ($0.written, $0.problem) = (nil, error.description) }
            return false
        }
    }

    /// Returns when everything that any manager of this process requested so far is done.
    static func waitForAll() { restorationQueue.sync {} }
}

typealias RestorationKeeper = StateKeeper<RestorationState>
