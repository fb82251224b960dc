public import BlueCapKit
public import Foundation

/// Where the scan tests play: the same bodies on a loopback bus in virtual time, on a private bus, and on real
/// `bluetoothd` in the radio lab.
public protocol ScanStage: AnyObject {
    /// What a manager needs to find this stage.
    var centralConfiguration: CentralManager.Configuration { get }
    /// Whether the controllers here measure signal strengths; btvirt's do not.
    var measuresRSSI: Bool { get }

    /// Starts to advertise. A scan that starts after this returns receives the advertisement.
    func advertise(_ device: StageDevice) throws
    /// Stops advertising.
    func endAdvertising() throws
    func setPower(_ isOn: Bool) throws
    /// Kills the daemon and starts it again.
    func restartDaemon() throws
    /// Whether the adapter's `Discovering` is true.
    func isDiscovering() throws -> Bool
    /// Waits until the journal has the entries; false when `limit` seconds of the stage's time brought none.
    func wait(_ journal: Journal, limit: TimeInterval, until isReached: (Journal.Entries) -> Bool) -> Bool
}

/// A device that a stage can advertise.
public struct StageDevice: Sendable {
    public let name: String
    /// UUIDs as text.
    public let services: [String]
    public let company: UInt16
    public let data: [UInt8]
    /// In dBm, if the stage measures it.
    public let rssi: Int

    public init(name: String, services: [String], company: UInt16, data: [UInt8], rssi: Int = -60) {
        self.name = name
        self.services = services
        self.company = company
        self.data = data
        self.rssi = rssi
    }

    public static let strap = StageDevice(
        name: "Strap", services: ["180D"], company: 0xFFFF, data: [1, 2, 3], rssi: -48)
}
