/// How a version of BlueZ differs from others. The daemon's behaviour depends on its version nowhere else.
struct DaemonTraits: Hashable, Sendable {
    // A trait without a comment is described by the summary of its change.

    // MARK: Objects
    /// The properties that the version does not have; of an advertisement, those that it does not read.
    let missingProperties: Set<String>
    /// `BatteryProviderManager1`, which here refuses every call.
    let hasBatteryProviders: Bool
    let hasBearers: Bool
    let signalsDisconnections: Bool

    // MARK: Discovery
    let discoveryFilterKeys: [String]
    /// Whether any filter makes a discovery a filtered one, in which all devices are reported and not only those that say
    /// that they are discoverable. Otherwise the filter must narrow something.
    let countsEveryFilter: Bool
    let repeatsStrengthByProximityOnly: Bool
    /// The longest field, in bytes behind its type, that is kept of what a device advertises.
    let longestField: Int
    let diesOfUUIDFilters: Bool

    // MARK: Links
    let connectionFailure: String
    let connectionCancelled: String
    /// What a second `Connect` fails with while the first runs.
    let secondConnect: DaemonError
    let diesOfRemovingConnected: Bool

    // MARK: Pairing
    /// Whether `Pair` of a bonded device takes it for one of classic Bluetooth, which does not respond.
    let pairsOverWrongBearer: Bool
    /// The services of a link that `Pair` makes are then discovered after the pairing.
    let pairsLinkWithItsCapability: Bool
    let pairExcludesConnect: Bool
    /// Otherwise the security of a link is raised in steps as long as the request is refused.
    let retriesSecurityOnce: Bool
    let losesRetriedRequests: Bool
    let stallsAfterRefusal: Bool
    /// `device_bonding_complete`, until 622a46ebc.
    let losesReplyOfPairBesideDiscovery: Bool
    let failsPairWithDiscovery: Bool

    // MARK: Attributes
    /// The services are generic access and those of input devices. They can be read and subscribed to.
    let showsClaimedServices: Bool
    let acquiresIndications: Bool
    let answersRefusedAcquisitions: Bool
    let diesOfLostAcquisitions: Bool

    // MARK: Serving
    /// The longest write that a central's packet may carry, in bytes.
    let longestWrite: Int
    let passesApplicationErrors: Bool
    let passesImproperlyConfigured: Bool
    let hasSecuredSubscriptions: Bool
    let needsHandles: Bool
    let hasAddressResolution: Bool
    let hasLongAdvertisements: Bool
    let needsSecondaryChannel: Bool
    /// The flags that a `Discoverable` of false puts into an advertisement; nil for none.
    let undiscoverableFlags: UInt8?
    let sparesBroadcasts: Bool
    let setsAdvertisementInstance: Bool
    /// Otherwise a characteristic has one socket for all subscribers.
    let hasNotificationSocketPerCentral: Bool
    /// Otherwise `Confirm` is called when an indication from a socket was confirmed.
    let routesNotificationSockets: Bool
    let confirmsSocketsByPacket: Bool
    let hasWriteSocketPerCentral: Bool
    /// Whether a characteristic that notifies and indicates sends nothing to subscribers that asked for notifications.
    let losesNotificationsBesideIndications: Bool

    /// A difference between one version and the one before it.
    struct Change: Hashable, Sendable {
        /// The first version that has it.
        let version: BlueZVersion
        /// A phrase for the documentation, which lists all changes.
        let summary: String
    }

    init(_ version: BlueZVersion) { self.init { $0.version <= version } }

    /// All changes, in the order of versions.
    static var changes: [Change] {
        var changes: [Change] = []
        _ = DaemonTraits { change in
            changes.append(change)
            return true
        }
        return changes.sorted { $0.version < $1.version }
    }

    /// Creates the traits of 5.55 with some of the changes. Each change is asked for if those before it are applied.
    init(applying isApplied: (Change) -> Bool) {
        func since(_ minor: Int, _ summary: String) -> Bool {
            isApplied(Change(version: BlueZVersion(5, minor), summary: summary))
        }
        var missing: Set<String> = []
        func adds(_ properties: Set<String>, since minor: Int, _ summary: String) {
            if !since(minor, summary) { missing.formUnion(properties) }
        }

        losesNotificationsBesideIndications = !since(
            56, "subscribers get notifications of a characteristic that indicates, too")
        hasAddressResolution =
            since(61, "generic access that is served has Central Address Resolution")
            && !since(
                81,
                "generic access that is served has Central Address Resolution only with LL privacy, which is off here")
        let hasNewErrors = since(62, "errors of `Connect` are `le-connection-…` and `br-connection-canceled`")
        connectionFailure = hasNewErrors ? "le-connection-abort-by-local" : "Software caused connection abort"
        connectionCancelled = hasNewErrors ? "br-connection-canceled" : "Cancelled"
        adds(["GattCharacteristic1.MTU"], since: 62, "`GattCharacteristic1.MTU`")
        hasSecuredSubscriptions = since(
            62, "the flags `encrypt-notify`, `encrypt-indicate` and their like, which before refuse the application")
        let refusesLongest = since(63, "a write of more than 510 bytes is refused")
        longestWrite = refusesLongest && !since(69, "writes of 512 bytes are taken") ? 510 : 512
        adds(["Device1.Bonded"], since: 65, "`Device1.Bonded`")
        passesApplicationErrors = since(
            66, "a program's errors `0x80` to `0x9F` reach the central, before always `0x80`")
        countsEveryFilter = !since(67, "a filter of nothing but all transports of the adapter counts as none")
        losesRetriedRequests = since(
            67,
            "a call that waits for a pairing gets no reply if the link ends; later ones get `InProgress` until `RemoveDevice`"
        )
        stallsAfterRefusal = since(
            67, "after an agent has refused a pairing for a value, the link stays up without any responses")
        adds(
            ["GattService1.Handle", "GattCharacteristic1.Handle", "GattDescriptor1.Handle"], since: 69,
            "`Handle` of services, characteristics and descriptors")
        hasLongAdvertisements = since(69, "advertisements of more than 31 bytes, with a `SecondaryChannel`")
        undiscoverableFlags =
            since(69, "`Discoverable: false` in an advertisement sends flags of 0")
            ? since(77, "`Discoverable: false` sends flags of 4") ? 4 : 0 : nil
        hasNotificationSocketPerCentral = since(
            69,
            "a notification socket per central, each broadcasting; an unbonded central that leaves closes the oldest")
        hasWriteSocketPerCentral = since(69, "a write socket per central")
        adds(["Adapter1.Manufacturer", "Adapter1.Version"], since: 71, "`Adapter1.Manufacturer` and `Version`")
        hasBatteryProviders = since(71, "`BatteryProviderManager1`")
        retriesSecurityOnce = since(
            71, "a link is secured once for each request, and then the request fails with `NotPermitted`")
        adds(["Adapter1.PowerState"], since: 73, "`Adapter1.PowerState`")
        needsHandles =
            since(74, "characteristics without an explicit `Handle` refuse their application")
            && !since(76, "handles are given again where a program leaves them to BlueZ")
        needsSecondaryChannel = !since(76, "advertisements of more than 31 bytes need no `SecondaryChannel`")
        longestField = since(76, "fields of more than 29 bytes that a device advertises reach the bus") ? 249 : 29
        passesImproperlyConfigured = since(76, "`ImproperlyConfigured` is 0xFD for the central, before 0x0E")
        routesNotificationSockets = since(
            76, "packets of a notification socket go to its central only; their confirmations are not reported")
        adds(
            ["LEAdvertisingManager1.SupportedCapabilities", "LEAdvertisingManager1.SupportedFeatures"], since: 77,
            "`SupportedCapabilities` and `SupportedFeatures` of `LEAdvertisingManager1`")
        adds(
            ["LEAdvertisement1.MinInterval", "LEAdvertisement1.MaxInterval", "LEAdvertisement1.TxPower"], since: 77,
            "`MinInterval`, `MaxInterval` and `TxPower` of an advertisement are used")
        adds(
            ["Device1.AdvertisingFlags", "Device1.AdvertisingData"], since: 78,
            "`Device1.AdvertisingFlags` and `AdvertisingData`")
        pairsOverWrongBearer = !since(
            79, "`Pair` of a bonded device is `AlreadyExists`, before `ConnectionAttemptFailed` after five seconds")
        adds(["Adapter1.Connectable"], since: 79, "`Adapter1.Connectable`")
        sparesBroadcasts = since(80, "`Discoverable: false` sends no flags in a broadcast, which before is refused")
        adds(
            [
                "LEAdvertisement1.ScanResponseServiceUUIDs", "LEAdvertisement1.ScanResponseSolicitUUIDs",
                "LEAdvertisement1.ScanResponseManufacturerData", "LEAdvertisement1.ScanResponseServiceData",
                "LEAdvertisement1.ScanResponseData",
            ], since: 80,
            "`ScanResponseServiceUUIDs`, `…SolicitUUIDs`, `…ManufacturerData`, `…ServiceData`, `…Data`")
        showsClaimedServices = since(
            80, "services that BlueZ uses itself (`1800`) have objects, which cannot be written")
        acquiresIndications = since(80, "`AcquireNotify` takes characteristics that only indicate")
        confirmsSocketsByPacket = since(80, "a confirmation comes back on the notification socket, as one byte 1")
        let isInProgress = since(
            81, "a second `Connect` is `InProgress`, before `Failed` \"Operation already in progress\"")
        secondConnect = isInProgress ? .inProgress : .failed("Operation already in progress")
        pairsLinkWithItsCapability = since(
            81, "`Pair` of a connected device uses the capability that the adapter had when the link came up")
        pairExcludesConnect = since(81, "`Pair` and `Connect` of one device refuse each other with `InProgress`")
        diesOfLostAcquisitions = !since(
            82, "`RemoveDevice` after an `AcquireNotify` without a reply does not crash; seen at 5.66 and at 5.82 only")
        signalsDisconnections = since(83, "`Device1.Disconnected` says why a link has ended")
        adds(
            ["Device1.CablePairing"], since: 83, "`Device1.CablePairing`; `AutoConnect` in `GetDiscoveryFilters`")
        hasBearers = since(84, "`Bearer.LE1` with nothing but a signal `Disconnected`, sent before that of `Device1`")
        answersRefusedAcquisitions = since(
            84, "`AcquireNotify` is answered when the peer refuses, before never, also if a pairing follows")
        setsAdvertisementInstance = since(
            87, "the number of an advertisement is written to its property `Instance`, if it has one")
        failsPairWithDiscovery = !since(
            87, "`Pair` succeeds if the link ends after the pairing and before the services are discovered")
        losesReplyOfPairBesideDiscovery = !since(
            87, "`Pair` gets a reply if services are being discovered when the pairing succeeds, before none")
        let crashesOnFilters = since(87, "crashes on a filter with `UUIDs` when an advertisement has services")
        let crashesOnRemoval = since(87, "crashes after `RemoveDevice` on a connected device when the link has ended")
        let isMended = since(88, "does not crash on either; the version stands for BlueZ's development head")
        diesOfUUIDFilters = crashesOnFilters && !isMended
        diesOfRemovingConnected = crashesOnRemoval && !isMended
        repeatsStrengthByProximityOnly = since(
            88, "`RSSI` at each report only if a filter has `RSSI` or `Pathloss`, else in steps of 8 dB")
        missingProperties = missing
        let filterKeys = ["UUIDs", "RSSI", "Pathloss", "Transport", "DuplicateData", "Discoverable", "Pattern"]
        discoveryFilterKeys = filterKeys + (missing.contains("Device1.CablePairing") ? [] : ["AutoConnect"])
    }
}
