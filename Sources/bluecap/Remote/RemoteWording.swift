import BlueCapKit
import Foundation

/// What went wrong, for people at a command line: no word of the library's functions.
enum RemoteWording {
    static func text(for error: any Error) -> String {
        switch error {
        case let failure as ToolFailure: failure.description
        case PeripheralError.disconnected: "The peripheral has ended the connection, or is out of reach."
        case PeripheralError.forcedDisconnect: "The connection was ended."
        case CharacteristicError.readNotSupported: "This characteristic cannot be read."
        case CharacteristicError.writeNotSupported: "This characteristic cannot be written in this way."
        case CharacteristicError.invalidated:
            "The peripheral has changed its services meanwhile, and this characteristic is gone."
        case CharacteristicError.valueTooLong(let count, let maximum):
            "The value has \(count) bytes, and at most \(maximum) can be written at once."
        case let error as any LocalizedError: error.errorDescription ?? "\(error)"
        default: "\(error)"
        }
    }

    /// The same in a few words, beside the attribute that could not be read.
    static func brief(_ error: any Error) -> String {
        switch error {
        case CharacteristicError.readFailed(let failure):
            failure.attError.map { "\($0)" } ?? (failure.message.isEmpty ? failure.name : failure.message)
        case CharacteristicError.readTimeout: "no answer"
        case PeripheralError.disconnected: "link lost"
        default: text(for: error)
        }
    }

    static func failure(_ error: any Error) -> ToolFailure {
        (error as? ToolFailure) ?? ToolFailure(text(for: error))
    }
}
