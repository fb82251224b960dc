import BlueCapBlueZ
public import Foundation
public import BlueCapGATT
import BlueCapReactor

/// A remote device that the manager has discovered.
///
/// The manager uses the same object for every sighting of the device. The properties return what the manager knows at
/// the time of the call, and can be read from any thread. The object stays valid after the peripheral has expired; its
/// properties then return the last known values.
public final class Peripheral: Sendable {
    let session: CentralSession
    let key: PeripheralKey

    init(session: CentralSession, key: PeripheralKey) {
        self.session = session
        self.key = key
    }

    deinit { session.released(key) }

    /// A UUID that is derived from the address and the address type, and is the same on every run and every machine.
    ///
    /// It does not change when a bond replaces a private address. A later program derives it from the new address.
    public var identifier: UUID { key.identifier }

    /// The 48-bit address. A bond replaces a private address by the device's own one, if the device has such an address.
    public var bluetoothAddress: BluetoothAddress { session.presentAddress(of: key).address }

    /// The address as text, such as `00:1A:7D:DA:71:13`.
    public var address: String { bluetoothAddress.description }

    /// Whether the address is public or random; address and address type together identify the device.
    public var addressType: BluetoothAddress.AddressType { session.presentAddress(of: key).addressType }

    /// The advertised name, or the one that was read from the device; "Unknown" if there is none.
    public var name: String { session.read(key) { $0.name } ?? "Unknown" }

    /// The signal strength of the newest sighting in dBm; `nil` if it is not known.
    public var rssi: Int? { session.read(key) { $0.rssi } }

    /// Variant of ``rssi`` that is 127 if the strength is not known (Bluetooth Core Specification 5.4, volume 4, part E,
    /// 7.7.65.2).
    public var RSSI: Int { rssi ?? 127 }

    /// The data that the peripheral advertised.
    public var advertisements: PeripheralAdvertisements {
        session.read(key) { PeripheralAdvertisements($0) } ?? PeripheralAdvertisements()
    }

    /// When this manager first discovered the peripheral.
    public var discoveredAt: Date { session.readRecord(key) { $0.discoveredAt } ?? .distantPast }

    /// When the peripheral was last received.
    public var lastHeardAt: Date {
        let (now, date) = (session.loop.now, session.date)
        return session.readRecord(key) { $0.lastReceived }.map { date.addingTimeInterval(-now.seconds(since: $0)) }
            ?? .distantPast
    }

    /// The smoothed interval between sightings; `nil` until there have been two.
    public var advertisingInterval: Duration? {
        session.readRecord(key) { $0.interval }.flatMap { $0 > 0 ? .seconds($0) : nil }
    }
}

extension Peripheral: Hashable, CustomStringConvertible {
    public static func == (left: Peripheral, right: Peripheral) -> Bool { left === right }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    public var description: String { "Peripheral(\(name), \(address), RSSI \(rssi.map(String.init) ?? "unknown"))" }
}
