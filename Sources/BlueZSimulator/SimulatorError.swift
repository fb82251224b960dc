public import Foundation

/// Why a simulator could not start.
public enum SimulatorError: Error, Hashable, Sendable {
    /// There is no bus at the address, or none could be started; the reason says why.
    case noBus(String)
    /// Somebody else is `org.bluez` on that bus already.
    case nameTaken
    /// The bus did not answer within five seconds.
    case noAnswer
}

extension SimulatorError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { description }

    public var description: String {
        switch self {
        case .noBus(let reason): "The simulator has no bus to be on: \(reason)"
        case .nameTaken: "There is an org.bluez on that bus already; give the simulator a bus of its own."
        case .noAnswer: "The bus did not answer the simulator within five seconds."
        }
    }
}
