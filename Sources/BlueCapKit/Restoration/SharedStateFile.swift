import Foundation

/// A file in the state directory that all programs of a user share.
///
/// Each call takes ownership of the file for the time of the call. Changes are rare, so a call waits for the disk. Without a
/// usable state directory nothing is kept.
package struct SharedStateFile<State: KeptState>: Sendable {
    /// How often a file that another process is writing is tried, once in a millisecond.
    private static var mostTries: Int { 50 }

    private let place: RestorationPlace

    /// - Parameters:
    ///   - identifier: The name of the file.
    ///   - folder: The state directory; `nil` for the default one.
    package init(_ identifier: String, folder: String? = nil) {
        place = RestorationPlace(identifier: identifier, root: RestorationPlace.root(folder), kind: State.folder)
    }

    /// Returns what is kept; an empty state if that is nothing.
    package func read() -> State {
        guard FileManager.default.fileExists(atPath: place.path(of: place.fileName)), let store = open() else {
            return State()
        }
        return state(of: store)
    }

    /// Changes what is kept. A state that is as before is not written, and an empty one has no file.
    package func change(_ body: (inout State) -> Void) {
        guard let store = open() else { return }
        let old = state(of: store)
        var new = old
        body(&new)
        guard new != old else { return }
        if new.isEmpty { try? store.forget() } else { try? store.keep(new) }
    }

    private func open() -> StateStore<State>? {
        for _ in 0..<Self.mostTries {
            do throws(StateProblem) {
                return try StateStore(place)
            } catch .inUse {
                // The other process holds the lock for one write. Nothing reports its end.
                usleep(1_000)
            } catch {
                return nil
            }
        }
        return nil
    }

    private func state(of store: StateStore<State>) -> State {
        guard case .kept(let state)? = try? store.read() else { return State() }
        return state
    }
}
