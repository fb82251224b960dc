import BlueCapKit
import Foundation

/// What takes the connection. Each tells who asked through `settle`, once.
extension BluejaySession {
    typealias Settling = (BluejaySession, Outcome) -> Void

    // MARK: Reading and writing

    func read(
        from identifier: CharacteristicIdentifier, by caller: BluejayMachine.Caller, settle: @escaping Settling
    ) {
        perform(on: identifier, by: caller, { $0.read(identifier) }, settle)
    }

    func write(
        _ data: Data, to identifier: CharacteristicIdentifier, type: CBCharacteristicWriteType,
        by caller: BluejayMachine.Caller, settle: @escaping Settling
    ) {
        let write: (Peripheral) -> Future<Data> = { peripheral in
            peripheral.write(data, to: identifier, type: type).map(context: ImmediateContext()) { Data() }
        }
        perform(on: identifier, by: caller, write, settle)
    }

    /// Has something done with the peripheral, in its turn.
    private func perform(
        on identifier: CharacteristicIdentifier, by caller: BluejayMachine.Caller,
        _ operation: @escaping (Peripheral) -> Future<Data>, _ settle: @escaping Settling
    ) {
        request(
            .operation, by: caller,
            Request { session, id in
                guard let peripheral = session.core.withLock({ $0.peripheral }) else {
                    return session.finished(id, .failure(BluejayError.notConnected))
                }
                session.finish(id, with: operation(peripheral), of: identifier)
            } settle: { session, outcome in
                settle(session, outcome)
            })
    }

    private func finish(_ id: RequestID, with future: Future<Data>, of identifier: CharacteristicIdentifier) {
        future.onComplete(context: ImmediateContext()) { [weak self] result in
            switch result {
            case .success(let data): self?.finished(id, .success(data))
            case .failure(let error):
                self?.finished(id, .failure(BluejayError.inDocumentsWords(error, of: identifier)))
            }
        }
    }

    // MARK: Listening

    /// - Parameter isSet: Called when it is known whether values are going to come; a failure goes to the listen too.
    func begin(
        _ listen: Listen, by caller: BluejayMachine.Caller, isSet: @escaping (Outcome) -> Void = { _ in }
    ) {
        request(
            .operation, by: caller,
            Request { session, id in
                session.subscribe(listen, id)
            } stop: { session, _ in
                session.abandon(listen)
            } settle: { session, outcome in
                if case .failure(let error) = outcome { session.end(listen, with: error) }
                isSet(outcome)
            })
    }

    private func subscribe(_ listen: Listen, _ id: RequestID) {
        let identifier = listen.identifier
        var replaced: Listen?
        let peripheral = core.withLock { core -> Peripheral? in
            replaced = core.listens[identifier]
            guard replaced?.option != .trap else { return nil }
            core.listens[identifier] = listen
            return core.peripheral
        }
        guard let peripheral else { return finished(id, .failure(BluejayError.multipleListenTrapped)) }
        if let replaced { end(replaced, with: BluejayError.multipleListenReplaced) }
        let handed = Handed(listen)
        let subscription = peripheral.characteristic(identifier).flatMap(context: ImmediateContext()) {
            [weak self] characteristic -> Future<Void> in
            guard let self, attach(handed.value, to: characteristic) else { throw BluejayError.cancelled }
            return characteristic.startNotifying()
        }
        subscription.onFailure(context: ImmediateContext()) { [weak self] _ in _ = self?.remove(handed.value) }
        subscription.onSuccess(context: ImmediateContext()) { [weak self] in self?.endIfUnwanted(handed.value) }
        finish(id, with: subscription.map(context: ImmediateContext()) { Data() }, of: identifier)
    }

    /// Answers whether it is still wanted.
    private func attach(_ listen: Listen, to characteristic: Characteristic) -> Bool {
        let stream: FutureStream<(characteristic: Characteristic, data: Data?)> =
            characteristic.receiveNotificationUpdates(capacity: 0)
        let isWanted = core.withLock { _ in
            guard !listen.isEnded else { return false }
            (listen.characteristic, listen.stream) = (characteristic, stream)
            return true
        }
        guard isWanted else { return false }
        let handed = Handed(listen)
        stream.onComplete(context: ImmediateContext(), cancelToken: listen.token) { [weak self] element in
            self?.received(element, for: handed.value)
        }
        return true
    }

    private func received(_ element: Try<(characteristic: Characteristic, data: Data?)>, for listen: Listen) {
        switch element {
        case .success((_, let data?)): hand(.success(data), to: listen)
        case .success((_, nil)): hand(.failure(CharacteristicError.notificationsInterrupted), to: listen)
        case .failure(let error):
            guard remove(listen) else { return }
            end(listen, with: BluejayError.inDocumentsWords(error, of: listen.identifier))
        }
    }

    /// Hands a value on, unless the listen has had its last word: both under the lock, or a value might come after that
    /// word. Nobody else's code runs there; what is handed on is taken up later.
    private func hand(_ value: Result<Data, any Error>, to listen: Listen) {
        core.withLock { core in
            if core.listens[listen.identifier] === listen, !listen.isEnded { listen.receive(value) }
        }
    }

    /// Answers whether it was the one that listened.
    private func remove(_ listen: Listen) -> Bool {
        core.withLock { core in
            guard core.listens[listen.identifier] === listen else { return false }
            core.listens[listen.identifier] = nil
            return true
        }
    }

    /// No value goes to it any more, after this one word. Whoever comes first has it.
    private func end(_ listen: Listen, with error: (any Error)?) {
        let stream = core.withLock { _ in
            defer { (listen.isEnded, listen.stream) = (true, nil) }
            if !listen.isEnded, let error { listen.receive(.failure(error)) }
            return listen.stream
        }
        stream?.cancel(listen.token)
    }

    /// Ends it without asking for a turn, for those who cannot have one any more.
    func abandon(_ listen: Listen) {
        guard remove(listen) else { return }
        end(listen, with: nil)
        unsubscribe(listen)
    }

    private func unsubscribe(_ listen: Listen) {
        guard let characteristic = core.withLock({ _ in listen.characteristic }) else { return }
        let _: Future<Void> = characteristic.stopNotifying()
    }

    /// It may have been given up while it was being set up.
    private func endIfUnwanted(_ listen: Listen) {
        if core.withLock({ $0.listens[listen.identifier] == nil }) { unsubscribe(listen) }
    }

    /// The connection is gone, or Bluejay has stopped.
    func endListens(_ error: any Error) {
        let (listens, peripheral, isStarted) = core.withLock { core in
            defer { (core.listens, core.restoredListens) = ([:], []) }
            return (Array(core.listens.values) + core.restoredListens, core.peripheral, core.machine.isStarted)
        }
        endServiceWatch()
        for listen in listens.sorted(by: { $0.identifier.description < $1.identifier.description }) {
            end(listen, with: error)
            // Else BlueCapKit would take it up again on the next connection. Who extracts the state may go on with it.
            guard isStarted else { continue }
            unsubscribe(listen)
            peripheral?.forgetRestoredSubscription(to: listen.identifier)
        }
    }

    /// - Parameter error: What the listen hears, if anything.
    func endListen(
        to identifier: CharacteristicIdentifier, error: (any Error)?, by caller: BluejayMachine.Caller,
        settle: @escaping Settling
    ) {
        let end: (Peripheral) -> Future<Data> = { [weak self] peripheral in
            if let self, let listen = core.withLock({ $0.listens.removeValue(forKey: identifier) }) {
                self.end(listen, with: error)
            }
            return peripheral.stopNotifications(identifier).map(context: ImmediateContext()) { Data() }
        }
        perform(on: identifier, by: caller, end, settle)
    }
}
