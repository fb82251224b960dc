public import BlueCapKit
import Foundation

/// The next action of a scan after a discovery.
public enum ScanAction {
    /// Continues the scan.
    case `continue`
    /// Continues the scan, and ignores this peripheral for the rest of it.
    case blacklist
    /// Ends the scan.
    case stop
    /// Ends the scan, and connects to the discovered peripheral. The closure is called as by `Bluejay.connect`, after the
    /// scan's `stopped`.
    ///
    /// The discovery of an action with a time-out contains the time-out, so it can be used in another action.
    case connect(ScanDiscovery, (ConnectionResult) -> Void)

    /// The same as the case, with a time limit of the attempt. The warnings have no effect on Linux.
    public static func connect(
        _ discovery: ScanDiscovery, _ timeout: Timeout, _ warningOptions: WarningOptions?,
        _ completion: @escaping (ConnectionResult) -> Void
    ) -> ScanAction {
        var discovery = discovery
        discovery.connectionTimeout = timeout
        return .connect(discovery, completion)
    }
}

/// A peripheral that a scan has discovered, with the state of that advertisement.
public struct ScanDiscovery {
    /// The identifier for `Bluejay.connect`.
    public let peripheralIdentifier: PeripheralIdentifier
    /// The advertisement, under the keys of Core Bluetooth (`CBAdvertisementDataLocalNameKey` and so on).
    public let advertisementPacket: [String: Any]
    /// The advertisement, as typed values.
    public let advertisements: PeripheralAdvertisements
    /// The signal strength in dBm; 127 if it is not known.
    public let rssi: Int
    /// The time limit of a connection, from a ``ScanAction``.
    var connectionTimeout = Timeout.none

    init(_ peripheral: Peripheral) {
        peripheralIdentifier = PeripheralIdentifier(peripheral)
        advertisements = peripheral.advertisements
        advertisementPacket = advertisements.packet
        rssi = peripheral.RSSI
    }
}
