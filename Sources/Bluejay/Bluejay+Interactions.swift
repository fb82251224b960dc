public import BlueCapKit
import Foundation

extension Bluejay {
    /// Reads a value. Services and characteristics are discovered by the way.
    ///
    /// - Parameters:
    ///   - characteristicIdentifier: The characteristic to read.
    ///   - completion: Called once: with the value; or with ``BluejayError/notConnected``,
    ///     ``BluejayError/missingService(_:)``, ``BluejayError/missingCharacteristic(_:)``, BlueCapKit's
    ///     `CharacteristicError` where the peripheral refuses, or whatever `R` throws.
    public func read<R: Receivable>(
        from characteristicIdentifier: CharacteristicIdentifier, completion: @escaping (ReadResult<R>) -> Void
    ) {
        session.read(from: characteristicIdentifier, by: session.caller) { session, outcome in
            session.call { completion(ReadResult(outcome)) }
        }
    }

    /// Writes a value.
    ///
    /// - Parameters:
    ///   - characteristicIdentifier: The characteristic to write to.
    ///   - value: The value to write.
    ///   - type: Whether the peripheral is to confirm it.
    ///   - completion: Called once; see ``read(from:completion:)`` for the errors.
    public func write<S: Sendable>(
        to characteristicIdentifier: CharacteristicIdentifier, value: S,
        type: CBCharacteristicWriteType = .withResponse, completion: @escaping (WriteResult) -> Void
    ) {
        session.write(value.toBluetoothData(), to: characteristicIdentifier, type: type, by: session.caller) {
            session, outcome in
            session.call { completion(WriteResult(outcome)) }
        }
    }

    /// Listens to a characteristic: has the peripheral send its value whenever it changes, until
    /// ``endListen(to:error:completion:)`` or the end of the connection.
    ///
    /// - Parameters:
    ///   - characteristicIdentifier: The characteristic to listen to.
    ///   - option: What becomes of this listen when somebody else listens to the same characteristic.
    ///   - completion: Called with each value, and with the failure that ends the listen: ``BluejayError/notConnected`` when
    ///     the connection is lost, ``BluejayError/explicitDisconnect`` after `disconnect`. Bytes that make no `R`, and
    ///     `CharacteristicError.notificationsInterrupted` where values may have been missed, are failures that do not end
    ///     it.
    public func listen<R: Receivable>(
        to characteristicIdentifier: CharacteristicIdentifier,
        multipleListenOption option: MultipleListenOption = .trap,
        completion: @escaping (ReadResult<R>) -> Void
    ) {
        session.begin(listen(characteristicIdentifier, option, completion), by: session.caller)
    }

    /// Ends a listen. Without one it succeeds, too.
    ///
    /// - Parameters:
    ///   - characteristicIdentifier: The characteristic that is listened to.
    ///   - error: With what the listen's own closure is called as the last; `nil` for not at all.
    ///   - completion: Called once.
    public func endListen(
        to characteristicIdentifier: CharacteristicIdentifier, error: (any Error)? = nil,
        completion: ((WriteResult) -> Void)? = nil
    ) {
        session.endListen(to: characteristicIdentifier, error: error, by: session.caller) { session, outcome in
            guard let completion else { return }
            session.call { completion(WriteResult(outcome)) }
        }
    }

    /// Gives a listen of an earlier run of the program its closure back: see ``ListenRestorer``. Values come once the
    /// connection is there.
    public func restoreListen<R: Receivable>(
        to characteristicIdentifier: CharacteristicIdentifier, completion: @escaping (ReadResult<R>) -> Void
    ) {
        session.restoreListen(listen(characteristicIdentifier, .trap, completion))
    }

    /// Whether the characteristic is listened to.
    /// - Throws: ``BluejayError/notConnected`` where there is no connection.
    public func isListening(to characteristicIdentifier: CharacteristicIdentifier) throws -> Bool {
        try session.core.withLock { core in
            guard core.machine.connection == .connected else { throw BluejayError.notConnected }
            return core.listens[characteristicIdentifier].map { !$0.isUnhandled } ?? false
        }
    }

    private func listen<R: Receivable>(
        _ identifier: CharacteristicIdentifier, _ option: MultipleListenOption,
        _ completion: @escaping (ReadResult<R>) -> Void
    ) -> Listen {
        // It would hold the session that holds it.
        Listen(identifier, option) { [weak session] outcome in
            session?.call { completion(ReadResult(outcome)) }
        }
    }
}

extension ReadResult where R: Receivable {
    init(_ outcome: Result<Data, any Error>) {
        do { self = .success(try R(bluetoothData: outcome.get())) } catch { self = .failure(error) }
    }
}

extension WriteResult {
    init(_ outcome: Result<Data, any Error>) {
        switch outcome {
        case .success: self = .success
        case .failure(let error): self = .failure(error)
        }
    }
}
