import BlueCapKit
import Foundation

/// What the code on the peripheral role assumes.
///
/// The code is compiled and never run, so that the members need no value.
enum ServerContext {
    static var manager: PeripheralManager { fatalError() }
    static var characteristic: MutableCharacteristic { fatalError() }
    static var battery: MutableService { fatalError() }
    static var floor: UUID { fatalError() }
    static func ask(_ question: String, _ body: @escaping @Sendable (Bool) -> Void) {}
}
