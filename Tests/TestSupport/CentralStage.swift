/// Where the tests of the central role play: a ``ScanStage`` on which one peripheral can be connected to.
public protocol CentralStage: ScanStage {
    /// The peripheral advertises and can be connected to, as soon as this returns. There is one at a time.
    func serve(_ peripheral: StagePeripheral) throws
    /// It stops advertising and accepts no new link; an existing link may remain or end.
    func silence() throws
    /// It ends its link.
    func drop() throws

    /// The server's program takes an application away, by its number from 0.
    func unregister(application: Int) throws
    /// It registers it again; the attributes may have other handles than before.
    func register(application: Int) throws

    /// What a characteristic holds.
    func value(of key: String) throws -> [UInt8]
    /// Sets the value of a characteristic without notifying it.
    func setValue(_ value: [UInt8], of key: String) throws
    /// A characteristic refuses reads or writes with an error of the application, 0x80 to 0x9F.
    func refuse(_ operation: StageOperation, of key: String, code: UInt8) throws
    /// Notifies or indicates values, one after another.
    func notify(_ key: String, _ values: [[UInt8]]) throws
    /// Notifies so many values of 20 bytes as fast as it goes. Each is its number from 0, the least significant byte first.
    func count(_ key: String, to count: Int) throws

    /// Whether the first link after the daemon's restart may be that of the daemon before, which the kernel ends within two
    /// seconds, as in the radio lab (Documentation/BlueZNotes.md).
    var mayEndFirstLink: Bool { get }
}

extension CentralStage {
    public var mayEndFirstLink: Bool { false }
}

public enum StageOperation: String, Sendable {
    case read, write
}
