import BlueZ
public import Foundation
public import GATT
import Reactor

/// A device that was discovered, and the same object each time it is heard.
///
/// It is a handle: what it tells is what the manager knows at that moment, from any thread. It stays valid when the
/// peripheral has expired, and then tells what was known last.
public final class Peripheral: Sendable {
    let session: CentralSession
    let key: PeripheralKey

    init(session: CentralSession, key: PeripheralKey) {
        self.session = session
        self.key = key
    }

    deinit { session.released(key) }

    /// A UUID derived from address and address type: the same on every run and every machine.
    public var identifier: UUID { bluetoothAddress.identifier(type: addressType) }

    /// The 48 bits of the address.
    public var bluetoothAddress: BluetoothAddress { key.address }

    /// The address: `00:1A:7D:DA:71:13`.
    public var address: String { bluetoothAddress.description }

    /// Whether the address is public or random; with the address it names the device.
    public var addressType: BluetoothAddress.AddressType { key.addressType }

    /// The advertised name, or the one read from the device; "Unknown" where there is none.
    public var name: String { session.read(key) { $0.name } ?? "Unknown" }

    /// The strength of the newest sighting in dBm; 127 where it is not known (Bluetooth Core Specification 5.4, volume
    /// 4, part E, 7.7.65.2).
    public var RSSI: Int { rssi ?? 127 }

    /// The strength of the newest sighting in dBm; `nil` where it is not known.
    public var rssi: Int? { session.read(key) { $0.rssi } }

    /// What it advertised.
    public var advertisements: PeripheralAdvertisements {
        session.read(key) { PeripheralAdvertisements($0) } ?? PeripheralAdvertisements()
    }

    /// When it was first discovered by this manager.
    public var discoveredAt: Date { session.readRecord(key) { $0.discoveredAt } ?? .distantPast }

    /// When it was heard last.
    public var lastHeardAt: Date {
        let (now, date) = (session.loop.now, session.date)
        return session.readRecord(key) { $0.lastHeard }.map { date.addingTimeInterval(-now.seconds(since: $0)) }
            ?? .distantPast
    }

    /// Seconds between its sightings, smoothed; `nil` until there were two.
    public var advertisingInterval: TimeInterval? {
        session.readRecord(key) { $0.interval }.flatMap { $0 > 0 ? $0 : nil }
    }
}

extension Peripheral: Hashable, CustomStringConvertible {
    public static func == (left: Peripheral, right: Peripheral) -> Bool { left === right }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    public var description: String { "Peripheral(\(name), \(address), RSSI \(rssi.map(String.init) ?? "unknown"))" }
}
