package import Foundation
package import GATT

/// What is to be advertised: the properties of `org.bluez.LEAdvertisement1` at 5.66 (`doc/advertising-api.txt`). Nothing is
/// checked here; BlueZ refuses what does not fit into 31 bytes.
package struct AdvertisementData: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// Others can connect.
        case peripheral
        case broadcast
    }

    /// What BlueZ adds by itself.
    package enum Include: String, Hashable, Sendable, CaseIterable {
        case txPower = "tx-power"
        case appearance
        /// The adapter's alias; goes into the scan response.
        case localName = "local-name"
        case resolvableSetIdentifier = "rsi"
    }

    package enum SecondaryChannel: String, Hashable, Sendable, CaseIterable {
        case oneMegabit = "1M"
        case twoMegabit = "2M"
        case coded = "Coded"
    }

    package var kind = Kind.peripheral
    package var serviceUUIDs: [CBUUID] = []
    package var solicitedUUIDs: [CBUUID] = []
    /// By the number of the company.
    package var manufacturerData: [UInt16: Data] = [:]
    package var serviceData: [CBUUID: Data] = [:]
    /// In the scan response, as the next two; ignored by BlueZ before 5.80.
    package var scanResponseServiceUUIDs: [CBUUID] = []
    package var scanResponseManufacturerData: [UInt16: Data] = [:]
    package var scanResponseServiceData: [CBUUID: Data] = [:]
    /// By the type of the field; experimental at 5.66.
    package var data: [UInt8: Data] = [:]
    /// General discoverable; as the adapter is, where nil.
    package var isDiscoverable: Bool?
    /// In seconds.
    package var discoverableTimeout: UInt16?
    package var includes: Set<Include> = []
    /// Goes into the scan response. Not together with the include.
    package var localName: String?
    package var appearance: UInt16?
    /// How long it is on the air before others get their turn, in seconds.
    package var duration: UInt16?
    /// After how many seconds BlueZ ends it.
    package var timeout: UInt16?
    package var secondaryChannel: SecondaryChannel?
    /// In milliseconds, 20 to 10 485; ignored by BlueZ before 5.77 unless it is experimental.
    package var minInterval: UInt32?
    package var maxInterval: UInt32?
    /// In dBm, -127 to 20; ignored by BlueZ before 5.77 unless it is experimental.
    package var txPower: Int16?

    package init() {}
}

/// What becomes of an advertisement. Told on the client's loop.
package enum AdvertisingEvent: Hashable, Sendable {
    case stateChanged(RegistrationState)
    /// Its time-out has passed, and BlueZ has ended it. Nothing follows.
    case timedOut
}

/// What an adapter's `org.bluez.LEAdvertisingManager1` can do. `nil`: this version of BlueZ does not tell.
package struct AdvertisingCapabilities: Hashable, Sendable {
    /// How many advertisements there are, of all programs.
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
