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
            "The value has \(count) bytes, and at most \(maximum) can be written at once: write it in parts."
        case PeripheralError.serviceDiscoveryTimeout, ServiceError.characteristicDiscoveryTimeout:
            "The peripheral's services were not known in time: try again, or give it more time with --timeout."
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

    /// Why a characteristic is not for this command, and which one it is for.
    ///
    /// - Parameter wanted: the properties of which it has none.
    static func misuse(
        of characteristic: AttributeTree.Characteristic, wanted: CBCharacteristicProperties
    ) -> ToolFailure {
        let name = characteristic.name ?? characteristic.uuid.uuidString
        let properties = characteristic.properties
        let words = properties.names.joined(separator: ", ")
        let reason = words.isEmpty ? "it has no properties." : "its properties are: \(words)."
        let sends = !properties.isDisjoint(with: [.notify, .indicate])
        if wanted.contains(.read) {
            return ToolFailure(
                "\(name) cannot be read:", reason, sends ? "`bluecap notify` prints what it sends." : "")
        }
        if !wanted.isDisjoint(with: [.notify, .indicate]) {
            return ToolFailure(
                "\(name) sends no values by itself:", reason,
                properties.contains(.read) ? "`bluecap read` asks for its value." : "")
        }
        if properties.contains(.write) {
            return ToolFailure("\(name) cannot be written without response:", "leave out --without-response.")
        }
        return ToolFailure("\(name) cannot be written:", reason)
    }

    static func failure(_ error: any Error) -> ToolFailure {
        (error as? ToolFailure) ?? ToolFailure(text(for: error))
    }
}
