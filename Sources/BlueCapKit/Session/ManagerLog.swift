import BlueCapBlueZ
import Logging

/// Writes what a manager does to the application's logger. Values of characteristics, passkeys and keys are no arguments of
/// these functions, so that they cannot be logged.
struct ManagerLog: Sendable {
    typealias Metadata = [(name: String, value: String?)]

    private let logger: Logger

    init(_ logger: Logger) { self.logger = logger }

    /// - Parameter metadata: What the message is about; entries without a value are left out. Not evaluated if the level is
    ///   not logged.
    func write(_ level: Logger.Level, _ message: Logger.Message, _ metadata: @autoclosure () -> Metadata) {
        guard logger.logLevel <= level else { return }
        logger.log(
            level: level, message,
            metadata: Dictionary(
                metadata().compactMap { entry in entry.value.map { (entry.name, .string($0)) } },
                uniquingKeysWith: { $1 }))
    }

    /// The level of a new state, and its metadata.
    func state(_ state: ManagerState, _ explanation: String, adapter: String?) {
        let level: Logger.Level =
            switch state {
            case .poweredOn: .info
            case .unknown: .debug
            case .resetting, .poweredOff, .unsupported, .unauthorized: .warning
            }
        write(level, "state", [("state", "\(state)"), ("why", explanation), ("adapter", adapter)])
    }

    func restorationFailed(_ reason: String) { write(.error, "state not restored", [("why", reason)]) }
}
