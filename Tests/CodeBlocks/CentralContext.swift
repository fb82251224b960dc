import BlueCapKit
import Foundation

/// What the code on the central role assumes.
///
/// The code is compiled and never run, so that the members need no value.
enum CentralContext {
    enum Enabled: UInt8, RawDeserializable {
        case no = 0
        case yes = 1
        static let uuid = "F000AA12-0451-4000-B000-000000000000"
    }

    struct Assembly: Sendable {
        func takes(_ packet: Data) -> Bool { fatalError() }
    }

    static var manager: CentralManager { fatalError() }
    static var peripheral: Peripheral { fatalError() }
    static var connected: ConnectedPeripheral { fatalError() }
    static var characteristic: Characteristic { fatalError() }
    static var identifier: CharacteristicIdentifier { fatalError() }
    static let (batteryLevel, bodySensorLocation, control, controlPoint) = (
        identifier, identifier, identifier, identifier
    )
    static let (heartRateMeasurement, pressure, rx, status, tx) = (
        identifier, identifier, identifier, identifier, identifier
    )
    static var assembly: Assembly { fatalError() }
    static var firmware: Data { fatalError() }
    static var floor: UUID { fatalError() }
    static var parts: [Data] { fatalError() }
    static var request: Data { fatalError() }
    static func ask(_ question: String, _ body: @escaping @Sendable (Bool) -> Void) {}
    static func askForPasskey(_ body: @escaping @Sendable (Passkey) -> Void) {}
    static func keep(_ peripheral: Peripheral) {}
    static func show(_ text: String) {}
}
