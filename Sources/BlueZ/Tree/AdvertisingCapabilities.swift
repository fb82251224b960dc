import DBus

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

    package init() {}
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
        var capabilities = self
        reader.dictionary { entry in
            guard let name = entry.string() else { return }
            _ = entry.variant { capabilities.take(name, &$0) }
        }
        self = capabilities
    }

    private mutating func take(_ name: String, _ value: inout MessageReader) {
        switch name {
        case "ActiveInstances": activeInstances = value.byte().map(Int.init)
        case "SupportedInstances": supportedInstances = value.byte().map(Int.init)
        case "SupportedIncludes": supportedIncludes = value.strings()
        case "SupportedSecondaryChannels": supportedSecondaryChannels = value.strings()
        case "SupportedFeatures": supportedFeatures = value.strings()
        case "SupportedCapabilities": takeLimits(&value)
        default: break
        }
    }

    private mutating func takeLimits(_ reader: inout MessageReader) {
        var limits = self
        reader.dictionary { entry in
            guard let name = entry.string() else { return }
            _ = entry.variant { value in
                switch name {
                case "MaxAdvLen": limits.maxAdvertisementLength = value.byte().map(Int.init)
                case "MaxScnRspLen": limits.maxScanResponseLength = value.byte().map(Int.init)
                case "MinTxPower": limits.minTxPower = value.int16().map(Int.init)
                case "MaxTxPower": limits.maxTxPower = value.int16().map(Int.init)
                default: break
                }
            }
        }
        self = limits
    }
}
