import Foundation
import BlueCapGATT

/// The sizes of what is sent (Core Specification Supplement, part A; BlueZ 5.66 to 5.87, `src/shared/ad.c` and
/// `src/advertising.c`): each structure has two bytes of length and type before its data.
extension AdvertisingData {
    /// The number of bytes of an advertisement or a scan response (Core Specification, Vol 6, Part B, 2.3.1).
    static let capacity = 31

    /// The longest extended advertisement that BlueZ can send, in bytes.
    private static let extendedCapacity = 251

    /// The length of the advertisement in bytes.
    public var byteCount: Int { Self.sum(sizes) + (isNameInside ? nameSize : 0) }

    /// The length of the scan response in bytes, including the name.
    public var scanResponseByteCount: Int { (isNameInside ? 0 : nameSize) + scanResponse.byteCount }

    private var nameSize: Int { localName.map { 2 + $0.utf8.count } ?? 0 }

    /// Whether the advertisement needs extended advertising.
    var isExtended: Bool { secondaryChannel != nil || Self.sum(sizes) > Self.capacity }

    /// A connectable extended advertisement has no scan response, and BlueZ puts the name into the advertisement.
    private var isNameInside: Bool { kind == .connectable && isExtended }

    /// Throws an error if this does not fit every adapter: if it has more than 31 bytes, or impossible values.
    ///
    /// `startAdvertising` makes the checks of ``check(_:)`` itself.
    ///
    /// - Throws: ``PeripheralManagerError/advertisementTooLong(field:by:)`` or
    ///   ``PeripheralManagerError/invalidAdvertisement(_:)``.
    public func check() throws(PeripheralManagerError) { try check(lengths: Lengths()) }

    /// Throws an error if this does not fit an adapter.
    ///
    /// - Parameter limits: The limits from ``PeripheralManager/advertisingLimits(timeout:)``.
    /// - Throws: As ``check()``.
    public func check(_ limits: AdvertisingLimits) throws(PeripheralManagerError) {
        try check(lengths: Lengths(limits))
    }

    /// Throws an error if this fits no adapter.
    func checkForAny() throws(PeripheralManagerError) {
        let most = Self.extendedCapacity
        try check(lengths: Lengths(plain: most, onChannel: most, scanResponse: most))
    }

    /// The lengths that advertisements may have.
    struct Lengths {
        var plain = AdvertisingData.capacity
        var onChannel = AdvertisingData.capacity
        var scanResponse = AdvertisingData.capacity
    }

    private func check(lengths: Lengths) throws(PeripheralManagerError) {
        if let excess = excess(over: lengths) {
            throw PeripheralManagerError.advertisementTooLong(field: excess.field, by: excess.count)
        }
        if let problem { throw PeripheralManagerError.invalidAdvertisement(problem) }
    }

    /// Returns the longest field of the part that is too long, and the number of bytes that are too many.
    func excess(over lengths: Lengths) -> (field: AdvertisingField, count: Int)? {
        let mayGrow = secondaryChannel != nil || lengths.plain > Self.capacity
        let isNameInside = isNameInside && mayGrow
        // A longer scan response needs extended advertising (Bluetooth Core Specification 5.4, volume 4, part E,
        // 7.8.55), which BlueZ uses without a secondary channel only for long advertising data.
        let responseCapacity = isExtended ? lengths.scanResponse : Self.capacity
        let response = (isNameInside ? 0 : nameSize) + scanResponse.byteCount - responseCapacity
        if response > 0 { return (nameSize > scanResponse.byteCount ? .localName : .scanResponse, response) }
        let named = sizes + [(.localName, isNameInside ? nameSize : 0)]
        let excess = Self.sum(named) - (secondaryChannel == nil ? lengths.plain : lengths.onChannel)
        guard excess > 0 else { return nil }
        return named.max { $0.size < $1.size }.map { ($0.field, excess) }
    }

    private var problem: String? {
        if let txPower, !(-127...20).contains(txPower) {
            return "A transmission power is from -127 to 20 dBm, not \(txPower)."
        }
        if let interval, interval.lowerBound < .milliseconds(20) || interval.upperBound > .milliseconds(10_240) {
            let (shortest, longest) = (interval.lowerBound.seconds, interval.upperBound.seconds)
            return "An interval is from 0.02 to 10.24 seconds, not \(shortest) to \(longest)."
        }
        for (name, time) in [("timeout", timeout), ("duration", duration)] {
            if let time, !(1...65_535).contains(time.components.seconds) || time.components.attoseconds != 0 {
                return "An advertisement's \(name) is a whole number of seconds from 1 to 65535, not \(time)."
            }
        }
        if kind == .connectable, isExtended, !scanResponse.isEmpty {
            return "A connectable extended advertisement has no scan response: leave scanResponse empty."
        }
        if localName?.isEmpty == true { return "A local name has at least one character: leave it nil for none." }
        return nil
    }

    private var sizes: [(field: AdvertisingField, size: Int)] {
        [
            (.flags, kind == .connectable && isDiscoverable ? 3 : 0),
            (.solicitedServiceUUIDs, Self.size(ofUUIDs: solicitedServiceUUIDs)),
            (.appearance, appearance == nil ? 0 : 4),
            (.txPower, includesTxPower ? 3 : 0),
        ] + Self.sizes(serviceUUIDs, manufacturerData, serviceData)
    }

    fileprivate static func sum(_ sizes: [(field: AdvertisingField, size: Int)]) -> Int {
        sizes.reduce(0) { $0 + $1.size }
    }

    fileprivate static func sizes(
        _ serviceUUIDs: [CBUUID], _ manufacturerData: [UInt16: Data], _ serviceData: [CBUUID: Data]
    ) -> [(field: AdvertisingField, size: Int)] {
        [
            (.serviceUUIDs, size(ofUUIDs: serviceUUIDs)),
            (.manufacturerData, manufacturerData.values.reduce(0) { $0 + 4 + $1.count }),
            (.serviceData, serviceData.reduce(0) { $0 + 2 + size(of: $1.key) + $1.value.count }),
        ]
    }

    /// Short UUIDs need one structure, and long UUIDs another.
    private static func size(ofUUIDs uuids: [CBUUID]) -> Int {
        let sizes = uuids.map(size(of:))
        return Set(sizes).count * 2 + sizes.reduce(0, +)
    }

    /// BlueZ shortens the UUIDs of the Bluetooth SIG to 16 bits, and has no form of 32 bits.
    private static func size(of uuid: CBUUID) -> Int { uuid.assignedNumber.map { $0 <= 0xFFFF } == true ? 2 : 16 }
}

extension AdvertisingData.ScanResponse {
    fileprivate var byteCount: Int {
        AdvertisingData.sum(AdvertisingData.sizes(serviceUUIDs, manufacturerData, serviceData))
    }
}

extension AdvertisingData.Lengths {
    init(_ limits: AdvertisingLimits) {
        plain = limits.maximumLength ?? AdvertisingData.capacity
        onChannel = limits.maximumLengthOnSecondaryChannel
        scanResponse = limits.maximumScanResponseLength
    }
}
