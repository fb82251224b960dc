import BlueCapKit
import Foundation

/// One thing that was asked for: how it is begun, how it is ended where it has begun, and who hears what became of it.
///
/// `begin` and `stop` lead to `finished` of the machine, at once or later. `settle` is called once.
struct Request {
    /// The peripheral that is to be connected.
    var target: UUID?
    let begin: (BluejaySession, BluejayMachine.RequestID) -> Void
    var stop: (BluejaySession, BluejayMachine.RequestID) -> Void = { _, _ in }
    let settle: (BluejaySession, BluejayMachine.Outcome) -> Void
}

/// Lets a value go to another thread.
///
/// Sound where it is used: the document's closures are made on one thread and called on the callback queue alone, one at
/// a time; what a background task takes and returns is handed over before it begins and after it has ended.
struct Handed<T>: @unchecked Swift.Sendable {
    let value: T

    init(_ value: T) { self.value = value }
}

/// Somebody who listens to a characteristic.
///
/// Its fields, but for the constants, are touched under the session's lock.
final class Listen {
    let identifier: CharacteristicIdentifier
    let option: MultipleListenOption
    /// Called with each value, and with the failure that ends it.
    let receive: (Result<Data, any Error>) -> Void
    let token = CancelToken()
    /// The application has given it no closure yet: its values go to the ``ListenRestorer``.
    var isUnhandled = false
    /// It has had its last word.
    var isEnded = false
    /// What it is subscribed to, once that is known.
    var characteristic: Characteristic?
    var stream: FutureStream<(characteristic: Characteristic, data: Data?)>?

    init(
        _ identifier: CharacteristicIdentifier, _ option: MultipleListenOption,
        receive: @escaping (Result<Data, any Error>) -> Void
    ) {
        (self.identifier, self.option, self.receive) = (identifier, option, receive)
    }
}

extension BluejayError {
    /// The document's word for what BlueCapKit says, where it has one.
    static func inDocumentsWords(_ error: any Error, of characteristic: CharacteristicIdentifier) -> any Error {
        switch error {
        case PeripheralError.disconnected: BluejayError.notConnected
        case PeripheralError.forcedDisconnect: BluejayError.explicitDisconnect
        case PeripheralError.serviceNotFound, PeripheralError.noServices:
            BluejayError.missingService(characteristic.service)
        case ServiceError.characteristicNotFound: BluejayError.missingCharacteristic(characteristic)
        default: error
        }
    }
}
