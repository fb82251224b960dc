import Foundation
import GATT

/// The sizes of what goes over the air (Core Specification Supplement, part A; BlueZ 5.66, `src/shared/ad.c` and
/// `src/advertising.c`): each structure has two bytes of length and type before its data.
extension AdvertisingData {
    /// How many bytes an advertisement or a scan response has (Core Specification, Vol 6, Part B, 2.3.1).
    static let capacity = 31

    /// How many bytes of 31 the advertisement takes.
    public var byteCount: Int { sizes.reduce(0) { $0 + $1.size } }

    /// How many bytes of 31 the scan response takes, which carries the name.
    public var scanResponseByteCount: Int { isNameInside ? 0 : nameSize }

    private var nameSize: Int { localName.map { 2 + $0.utf8.count } ?? 0 }

    /// What is connectable on a secondary channel has no scan response.
    private var isNameInside: Bool { kind == .connectable && secondaryChannel != nil }

    /// Says whether this can be advertised, before anybody is asked. `startAdvertising` does so by itself.
    ///
    /// - Throws: ``PeripheralManagerError/advertisementTooLong(field:by:)`` or
    ///   ``PeripheralManagerError/invalidAdvertisement(_:)``.
    public func check() throws {
        let nameExcess = scanResponseByteCount - Self.capacity
        if nameExcess > 0 {
            throw PeripheralManagerError.advertisementTooLong(field: .localName, by: nameExcess)
        }
        let excess = byteCount - Self.capacity
        if excess > 0, let longest = sizes.max(by: { $0.size < $1.size }) {
            throw PeripheralManagerError.advertisementTooLong(field: longest.field, by: excess)
        }
        if let problem { throw PeripheralManagerError.invalidAdvertisement(problem) }
    }

    private var problem: String? {
        if let txPower, !(-127...20).contains(txPower) {
            return "A transmission power is from -127 to 20 dBm, not \(txPower)."
        }
        if let interval, !(0.02...10.24).contains(interval.lowerBound) || !(0.02...10.24).contains(interval.upperBound)
        {
            return "An interval is from 0.02 to 10.24 seconds, not \(interval.lowerBound) to \(interval.upperBound)."
        }
        for (name, seconds) in [("timeout", timeout), ("duration", duration)] {
            if let seconds, !(1...65_535).contains(seconds) {
                return "An advertisement's \(name) is from 1 to 65535 seconds, not \(seconds)."
            }
        }
        if localName?.isEmpty == true { return "A local name has at least one character: leave it nil for none." }
        return nil
    }

    private var sizes: [(field: AdvertisingField, size: Int)] {
        [
            (.flags, kind == .connectable && isDiscoverable ? 3 : 0),
            (.localName, isNameInside ? nameSize : 0),
            (.serviceUUIDs, Self.size(ofUUIDs: serviceUUIDs)),
            (.solicitedServiceUUIDs, Self.size(ofUUIDs: solicitedServiceUUIDs)),
            (.manufacturerData, manufacturerData.values.reduce(0) { $0 + 4 + $1.count }),
            (.serviceData, serviceData.reduce(0) { $0 + 2 + Self.size(of: $1.key) + $1.value.count }),
            (.appearance, appearance == nil ? 0 : 4),
            (.txPower, includesTxPower ? 3 : 0),
        ]
    }

    /// One structure for the short ones, one for the long ones.
    private static func size(ofUUIDs uuids: [CBUUID]) -> Int {
        let sizes = uuids.map(size(of:))
        return Set(sizes).count * 2 + sizes.reduce(0, +)
    }

    /// BlueZ shortens those of the SIG to 16 bits, and has no form of 32.
    private static func size(of uuid: CBUUID) -> Int { uuid.data.count == 2 ? 2 : 16 }
}
