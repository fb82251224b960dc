import BlueCapKit
import Foundation

/// A listen to a characteristic: receives values until it has ended.
// Unchecked: the session accesses the variables, and calls `receive`, under its lock.
final class Listen: @unchecked Swift.Sendable {
    let identifier: CharacteristicIdentifier
    let option: MultipleListenOption
    /// Whether the application has not given it a closure yet: its values go to the ``ListenRestorer``.
    let isUnhandled: Bool
    /// Called with each value, and with the failure that ends the listen. It only enqueues, on the callback queue or
    /// for the background task.
    let receive: (BluejayMachine.Outcome) -> Void
    var isEnded = false
    var stream: FutureStream<Data?>?

    init(
        _ identifier: CharacteristicIdentifier, _ option: MultipleListenOption, isUnhandled: Bool = false,
        receive: @escaping (BluejayMachine.Outcome) -> Void
    ) {
        (self.identifier, self.option, self.isUnhandled, self.receive) = (identifier, option, isUnhandled, receive)
    }
}

/// The restoration of an earlier run of the program: the settings, and the connection until it is back or given up.
struct Restoration {
    /// After how many seconds the restoration of the connection has failed, as in Bluejay 0.8.
    static let limit: TimeInterval = 15

    let identifier: RestoreIdentifier?
    private(set) weak var listenRestorer: (any ListenRestorer)?
    private(set) weak var backgroundRestorer: (any BackgroundRestorer)?
    /// The machine's attempt to connect; `nil` if no connection is being restored.
    var attempt: Int?

    init(_ mode: BackgroundRestoreMode) {
        switch mode {
        case .disable: identifier = nil
        case .enable(let name): identifier = name
        case .enableWithListenRestorer(let name, let restorer): (identifier, listenRestorer) = (name, restorer)
        case .enableWithConfig(let config):
            (identifier, listenRestorer) = (config.restoreIdentifier, config.listenRestorer)
            backgroundRestorer = config.backgroundRestorer
        }
    }
}

extension BluejayError {
    /// Returns the documented error for an error of BlueCapKit, or the error itself if there is none.
    ///
    /// - Parameter characteristic: The characteristic of the operation; `nil` for a connection or a pairing.
    static func documented(_ error: any Error, of characteristic: CharacteristicIdentifier? = nil) -> any Error {
        switch (error, characteristic) {
        case (CharacteristicError.pairingRequired(let security, _), _): BluejayError.pairingRequired(security)
        case (CharacteristicError.pairingFailed(let error), _), (PeripheralError.pairing(let error), _):
            BluejayError.pairingFailed(error)
        case (let error as PairingError, _): BluejayError.pairingFailed(error)
        case (PeripheralError.disconnected, _?): BluejayError.notConnected
        case (PeripheralError.forcedDisconnect, _?): BluejayError.explicitDisconnect
        case (PeripheralError.serviceNotFound, let characteristic?), (PeripheralError.noServices, let characteristic?):
            BluejayError.missingService(characteristic.service)
        case (ServiceError.characteristicNotFound, let characteristic?):
            BluejayError.missingCharacteristic(characteristic)
        default: error
        }
    }
}
