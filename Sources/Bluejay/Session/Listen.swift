import BlueCapKit
import Foundation

/// A listen to a characteristic.
// Unchecked: its variables are accessed under the session's lock alone.
final class Listen: @unchecked Swift.Sendable {
    let identifier: CharacteristicIdentifier
    let option: MultipleListenOption
    /// Called with each value, and with the failure that ends the listen.
    let receive: (Result<Data, any Error>) -> Void
    let token = CancelToken()
    /// Whether the application has not given it a closure yet: its values go to the ``ListenRestorer``.
    var isUnhandled = false
    /// Whether `receive` is not called any more.
    var isEnded = false
    /// The characteristic of the subscription, once it is discovered.
    var characteristic: Characteristic?
    var stream: FutureStream<(characteristic: Characteristic, data: Data?)>?

    init(
        _ identifier: CharacteristicIdentifier, _ option: MultipleListenOption,
        receive: @escaping (Result<Data, any Error>) -> Void
    ) {
        (self.identifier, self.option, self.receive) = (identifier, option, receive)
    }
}

/// The listens of a session by characteristic, and those that wait for the connection to come back.
struct ListenTable {
    private var current: [CharacteristicIdentifier: Listen] = [:]
    private var restored: [Listen] = []

    subscript(identifier: CharacteristicIdentifier) -> Listen? {
        get { current[identifier] }
        set { current[identifier] = newValue }
    }

    func contains(_ identifier: CharacteristicIdentifier) -> Bool {
        current[identifier] != nil || restored.contains { $0.identifier == identifier }
    }

    mutating func remove(_ identifier: CharacteristicIdentifier) -> Listen? {
        current.removeValue(forKey: identifier)
    }

    mutating func addRestored(_ listen: Listen) { restored.append(listen) }

    /// Removes and returns the listens that wait for the connection.
    mutating func takeRestored() -> [Listen] {
        defer { restored = [] }
        return restored
    }

    /// Removes and returns all listens, in the order of their identifiers.
    mutating func takeAll() -> [Listen] {
        defer { self = ListenTable() }
        return (Array(current.values) + restored).sorted { $0.identifier.description < $1.identifier.description }
    }
}

/// The restoration of an earlier run of the program: the settings, and the connection until it is back or given up.
struct Restoration {
    /// After how many seconds the restoration of the connection has failed, as in Bluejay 0.8.
    static let limit: TimeInterval = 15

    private(set) var isEnabled = false
    private(set) weak var listenRestorer: (any ListenRestorer)?
    private(set) weak var backgroundRestorer: (any BackgroundRestorer)?
    /// The machine's attempt to connect; `nil` if no connection is being restored.
    private(set) var attempt: Int?
    var timer: ManagerTimer?

    init() {}

    init(_ mode: BackgroundRestoreMode) {
        isEnabled = mode.identifier != nil
        (listenRestorer, backgroundRestorer) = (mode.restorer, mode.backgroundRestorer)
    }

    /// Begins if there is an object to report to.
    mutating func begin(attempt: Int) {
        if backgroundRestorer != nil { self.attempt = attempt }
    }

    /// Returns whether a connection was being restored.
    mutating func end() -> Bool {
        defer { (attempt, timer) = (nil, nil) }
        timer?.cancel()
        return attempt != nil
    }
}

extension BluejayError {
    /// Returns the documented error for an error of BlueCapKit, or the error itself if there is none.
    static func documented(_ error: any Error, of characteristic: CharacteristicIdentifier) -> any Error {
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
