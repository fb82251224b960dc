import BlueCapKit
import Foundation

/// The connection of an earlier run, from the start until it is back or is given up; there is one only if there is a
/// ``BackgroundRestorer``.
struct Restoration {
    /// The attempt of the machine to connect.
    let attempt: Int
    var timer: ManagerTimer?

    /// After how many seconds it has failed, as with Bluejay 0.8.
    static let limit: TimeInterval = 15
}

extension BluejaySession {
    /// Begins the time within which the connection has to be back.
    func limitRestoration() {
        guard core.withLock({ $0.restoration != nil }) else { return }
        let timer = timer(after: Restoration.limit) { [weak self] in self?.restorationTimedOut() }
        let isOver = core.withLock { core in
            guard core.restoration != nil else { return true }
            core.restoration?.timer = timer
            return false
        }
        if isOver { timer?.cancel() }
    }

    private func restorationTimedOut() {
        decide { core in
            guard let restoration = core.restoration, core.machine.attempt == restoration.attempt else { return [] }
            return core.machine.reconnectionTimedOut()
        }
    }

    /// The connection is there.
    func restorationSucceeded(_ peripheral: Peripheral) {
        guard takeRestoration() else { return }
        report { $0.didRestoreConnection(to: PeripheralIdentifier(peripheral)) }
    }

    /// There is no connection, and no attempt at one.
    func endRestoration(_ error: any Error) {
        guard takeRestoration(), let peripheral = core.withLock({ $0.peripheral }) else { return }
        report { $0.didFailToRestoreConnection(to: PeripheralIdentifier(peripheral), error: error) }
    }

    /// Returns whether there was a restoration, which is over now.
    private func takeRestoration() -> Bool {
        let restoration = core.withLock { core in
            defer { core.restoration = nil }
            return core.restoration
        }
        restoration?.timer?.cancel()
        return restoration != nil
    }

    private func report(_ event: @escaping (any BackgroundRestorer) -> BackgroundRestoreCompletion) {
        call {
            guard let restorer = self.core.withLock({ $0.backgroundRestorer }) else { return }
            switch event(restorer) {
            case .callback(let work): work()
            case .continue: break
            }
        }
    }

    // MARK: Listens without a closure

    /// Restores a listen whose values go to the ``ListenRestorer`` until the application listens, unless it has restored
    /// the listen itself.
    func restoreUnhandledListen(to identifier: CharacteristicIdentifier, of peripheral: Peripheral) {
        let isRestored = core.withLock { core in
            core.listens[identifier] != nil || core.restoredListens.contains { $0.identifier == identifier }
        }
        guard !isRestored else { return }
        let reported = PeripheralIdentifier(peripheral)
        let listen = Listen(identifier, .replaceable) { [weak self] outcome in
            // What ends the listen is of no interest to the restorer.
            guard let self, case .success(let value) = outcome else { return }
            call { self.ask(about: value, on: identifier, from: reported) }
        }
        listen.isUnhandled = true
        restoreListen(listen)
    }

    /// On the callback queue.
    private func ask(
        about value: Data, on identifier: CharacteristicIdentifier, from peripheral: PeripheralIdentifier
    ) {
        let (restorer, isUnhandled) = core.withLock { core in
            // The application may have listened meanwhile.
            (core.restorer, core.listens[identifier]?.isUnhandled == true)
        }
        guard let restorer, isUnhandled else { return }
        switch restorer.didReceiveUnhandledListen(from: peripheral, on: identifier, with: value) {
        case .promiseRestoration: break
        case .stopListen: endListen(to: identifier, error: nil, by: .application) { _, _ in }
        }
    }
}
