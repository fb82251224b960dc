import BlueCapDBus

/// A secondary physical channel of extended advertising, by BlueZ's name.
package enum SecondaryChannel: String, Hashable, Sendable, CaseIterable {
    case oneMegabit = "1M"
    case twoMegabit = "2M"
    case coded = "Coded"
}

/// The properties of an adapter's `org.bluez.LEAdvertisingManager1`; `nil` if this version of BlueZ has no such property.
package struct AdvertisingCapabilities: Hashable, Sendable {
    /// The number of advertisements of all programs.
    package var activeInstances: Int?
    /// How many more there may be.
    package var supportedInstances: Int?
    /// By BlueZ's names.
    package var supportedIncludes: [String]?
    /// Only where controller and kernel have extended advertising.
    package var supportedSecondaryChannels: [String]?
    /// Experimental before 5.77, as all below.
    package var supportedFeatures: [String]?
    /// In bytes.
    package var maxAdvertisementLength: Int?
    package var maxScanResponseLength: Int?
    /// In dBm.
    package var minTxPower: Int?
    package var maxTxPower: Int?
}

extension AdvertisingCapabilities {
    /// The powers of the controller, in dBm; `nil` if BlueZ does not report them.
    package var powers: ClosedRange<Int>? {
        guard let least = minTxPower, let most = maxTxPower, least <= most else { return nil }
        return least...most
    }

    init(_ reply: Message) {
        var reader = reply.reader
        self.init()
        take(&reader)
    }

    /// Reads properties of `LEAdvertisingManager1` from an `a{sv}`.
    mutating func take(_ reader: inout MessageReader) {
        reader.dictionary { entry in
            guard let name = entry.string() else { return }
            _ = entry.variant { take(name, &$0) }
        }
    }

    private mutating func take(_ name: String, _ value: inout MessageReader) {
        switch name {
        case "ActiveInstances": activeInstances = value.byte().map(Int.init)
        case "SupportedInstances": supportedInstances = value.byte().map(Int.init)
        case "SupportedIncludes": supportedIncludes = value.strings()
        case "SupportedSecondaryChannels": supportedSecondaryChannels = value.strings()
        case "SupportedFeatures": supportedFeatures = value.strings()
        case "SupportedCapabilities": take(&value)
        // These four are in the dictionary `SupportedCapabilities`.
        case "MaxAdvLen": maxAdvertisementLength = value.byte().map(Int.init)
        case "MaxScnRspLen": maxScanResponseLength = value.byte().map(Int.init)
        case "MinTxPower": minTxPower = value.int16().map(Int.init)
        case "MaxTxPower": maxTxPower = value.int16().map(Int.init)
        default: break
        }
    }
}
