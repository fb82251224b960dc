public import BlueCapKit

/// Which advertisements are published. Links of configured peripherals do not depend on it.
public struct AdvertisementFilter: Hashable, Sendable {
    /// The names, or their beginnings.
    public var names: [NamePattern]
    /// The addresses.
    public var addresses: Set<DeviceName>
    /// The advertised services, or those for which data is advertised.
    public var services: Set<CBUUID>
    /// The companies of manufacturer specific data.
    public var manufacturers: Set<UInt16>
    /// The weakest strength in dBm; `nil` for none.
    public var minimumStrength: Int?

    /// Creates a filter; without arguments it accepts everything.
    public init(
        names: [NamePattern] = [], addresses: Set<DeviceName> = [], services: Set<CBUUID> = [],
        manufacturers: Set<UInt16> = [], minimumStrength: Int? = nil
    ) {
        (self.names, self.addresses, self.services) = (names, addresses, services)
        (self.manufacturers, self.minimumStrength) = (manufacturers, minimumStrength)
    }

    /// Whether a report is published: it is strong enough and, if there is any list, one of the lists matches. A report
    /// without a strength is too weak for each minimum.
    public func accepts(device: DeviceName, strength: Int?, advertisements: PeripheralAdvertisements) -> Bool {
        if let minimumStrength, strength.map({ $0 < minimumStrength }) ?? true { return false }
        if names.isEmpty, addresses.isEmpty, services.isEmpty, manufacturers.isEmpty { return true }
        if addresses.contains(device) { return true }
        if let name = advertisements.localName, names.contains(where: { $0.matches(name) }) { return true }
        if !services.isEmpty {
            if advertisements.serviceUUIDs?.contains(where: services.contains) ?? false { return true }
            if advertisements.serviceData?.keys.contains(where: services.contains) ?? false { return true }
        }
        return !manufacturers.isEmpty
            && advertisements.manufacturerDataByCompany.keys.contains(where: manufacturers.contains)
    }
}
