public import BlueCapKit

/// Where the tests of the peripheral role play: a ``ScanStage`` with a second adapter, for a peripheral of ours.
public protocol PeripheralStage: ScanStage {
    /// What a peripheral manager needs to serve where the stage's centrals look.
    var peripheralConfiguration: PeripheralManager.Configuration { get }
    /// Kills the daemon.
    func killDaemon() throws
    /// Starts the daemon again, with all adapters on.
    func startDaemon() throws
}

/// A central, ours or a foreign one, which does one thing after the other. UUIDs are text.
public protocol StageCentral: AnyObject {
    /// Looks for the name, which is advertised with that service, connects, and discovers all there is.
    func connect(to name: String, advertising service: String) throws
    /// What it has discovered, in the order of handles.
    func table() throws -> [StageRow]
    func read(_ uuid: String) throws -> StageAnswer
    func readDescriptor(_ descriptor: String, of uuid: String) throws -> [UInt8]
    /// The response to a request is an empty value; a command has none.
    @discardableResult
    func write(_ bytes: [UInt8], to uuid: String, withResponse: Bool) throws -> StageAnswer
    func subscribe(to uuid: String) throws
    func unsubscribe(from uuid: String) throws
    /// Waits until it has received so many values since it subscribed. Returns all of them.
    func values(of uuid: String, count: Int) throws -> [[UInt8]]
    /// Waits until the link has been ended by the other side.
    func awaitLoss() throws
    func disconnect() throws
}

/// A characteristic as a central sees it.
public struct StageRow: Hashable, Sendable, CustomStringConvertible {
    /// All UUIDs in full and in small letters.
    public var service: String
    public var characteristic: String
    /// By BlueZ's names.
    public var properties: Set<String>
    public var descriptors: Set<String>

    public init(_ service: String, _ characteristic: String, _ properties: Set<String>, _ descriptors: Set<String>) {
        self.service = service
        self.characteristic = characteristic
        self.properties = properties
        self.descriptors = descriptors
    }

    public var description: String {
        ([service, characteristic] + properties.sorted() + descriptors.sorted()).joined(separator: " ")
    }
}

public enum StageAnswer: Hashable, Sendable {
    case value([UInt8])
    /// The error code, if the central knows it.
    case refused(UInt8?)
}
