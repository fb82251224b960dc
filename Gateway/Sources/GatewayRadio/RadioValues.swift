public import BlueCapKit
public import Foundation
public import GatewayCore

/// A characteristic whose values are taken.
public struct WatchedCharacteristic: Hashable, Sendable {
    /// How values are taken.
    public typealias Mode = GatewayConfiguration.CharacteristicEntry.Mode

    public var identifier: CharacteristicIdentifier
    public var mode: Mode

    public init(_ identifier: CharacteristicIdentifier, mode: Mode) {
        (self.identifier, self.mode) = (identifier, mode)
    }
}

/// A device to which the gateway keeps a link.
public struct FollowedDevice: Hashable, Sendable {
    public var selector: PeripheralSelector
    public var characteristics: [WatchedCharacteristic]

    public init(_ selector: PeripheralSelector, characteristics: [WatchedCharacteristic]) {
        (self.selector, self.characteristics) = (selector, characteristics)
    }
}

/// What was received of a device in one report of the scan.
public struct DeviceReport: Sendable {
    public var device: DeviceName
    public var addressType: BluetoothAddress.AddressType
    public var date: Date
    /// In dBm; `nil` if BlueZ did not report a strength.
    public var rssi: Int?
    public var advertisements: PeripheralAdvertisements
}

/// A change of the link between the gateway and a device.
public enum LinkChange: Hashable, Sendable {
    /// The gateway tries to connect.
    case connecting
    /// The link is up.
    case connected
    /// The link was lost; the next attempt follows.
    case lost(reason: String)
    /// An attempt has failed; the next one follows.
    case failed(reason: String)
    /// There is no link, and no further attempt: the gateway has ended it, or it was connected once.
    case ended
}

/// What the radio reports.
public enum RadioEvent: Sendable {
    /// An advertisement was received.
    case report(DeviceReport)
    /// BlueZ has a link to the device that this radio did not make, such as one that an earlier process has left. The device may not
    /// advertise. Reported once a second.
    case foreignLink(DeviceName, name: String?, rssi: Int?)
    /// A link of the radio has changed.
    case link(DeviceName, LinkChange)
    /// A value of a watched characteristic.
    case value(DeviceName, CharacteristicIdentifier, Data, Date)
    /// Values of a watched characteristic may have been missed before this time; also when it is first watched.
    case gap(DeviceName, CharacteristicIdentifier, GapPayload.Reason, Date)
    /// A watched characteristic gives no values for this reason; the radio tries again.
    case watchFailed(DeviceName, CharacteristicIdentifier, reason: String)
    /// Bluetooth can be used (`nil`), or cannot for this reason.
    case unavailable(reason: String?)
}

/// Why a request for a device was not executed.
public enum RadioError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The device has not been received since the gateway began.
    case unknownDevice(DeviceName)

    public var description: String {
        switch self {
        case .unknownDevice(let device):
            "The gateway has not received the device \(device.address). Is it switched on and in range?"
        }
    }
}

extension PeripheralSelector {
    /// Whether a device is the one that is named, by its address or by the whole of its name.
    public func selects(_ device: DeviceName, name: String?) -> Bool {
        switch self {
        case .address(let address): address == device
        case .name(let wanted): wanted == name
        }
    }
}
