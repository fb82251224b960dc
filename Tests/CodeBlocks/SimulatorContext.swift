import BlueCapKit
import BlueZSimulator
import Foundation

/// What the code on the simulator assumes.
///
/// The code is compiled and never run, so that the members need no value.
enum SimulatorContext {
    struct Reader: Sendable {
        func level() async throws -> UInt8 { fatalError() }
    }

    static let reader = Reader()
    static var simulator: Simulator { fatalError() }
    static var manager: CentralManager { fatalError() }
    static var peripheral: VirtualPeripheral { fatalError() }
}
