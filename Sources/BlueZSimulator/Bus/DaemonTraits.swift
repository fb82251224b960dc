/// How a version of BlueZ differs from others. The daemon's behaviour depends on its version nowhere else.
///
/// The initial values are those of 5.55; ``changes`` lists, in the order of versions, what each later one changes.
struct DaemonTraits: Hashable, Sendable {
    // A trait without a comment is described by the summary of its change.

    // MARK: Objects
    /// The properties that the version does not have; of an advertisement, those that it does not read.
    var missingProperties = Set(changes.flatMap(\.properties))
    /// `BatteryProviderManager1`, which here refuses every call.
    var hasBatteryProviders = false
    var hasBearers = false
    var signalsDisconnections = false

    // MARK: Discovery
    var discoveryFilterKeys = ["UUIDs", "RSSI", "Pathloss", "Transport", "DuplicateData", "Discoverable", "Pattern"]
    /// Whether any filter makes a discovery a filtered one, in which all devices are reported and not only those that say
    /// that they are discoverable. Otherwise the filter must narrow something.
    var countsEveryFilter = true
    var repeatsStrengthByProximityOnly = false
    /// The longest field, in bytes behind its type, that is kept of what a device advertises.
    var longestField = 29
    var diesOfUUIDFilters = false

    // MARK: Links
    var connectionFailure = "Software caused connection abort"
    var connectionCancelled = "Cancelled"
    /// What a second `Connect` fails with while the first runs.
    var secondConnect = DaemonError.failed("Operation already in progress")
    var diesOfRemovingConnected = false

    // MARK: Pairing
    /// Whether `Pair` of a bonded device takes it for one of classic Bluetooth, which does not respond.
    var pairsOverWrongBearer = true
    /// The services of a link that `Pair` makes are then discovered after the pairing.
    var pairsLinkWithItsCapability = false
    var pairExcludesConnect = false
    /// Otherwise the security of a link is raised in steps as long as the request is refused.
    var retriesSecurityOnce = false
    var losesRetriedRequests = false
    var stallsAfterRefusal = false
    /// `device_bonding_complete`, until 622a46ebc.
    var losesReplyOfPairBesideDiscovery = true
    var failsPairWithDiscovery = true

    // MARK: Attributes
    /// The services are generic access and those of input devices. They can be read and subscribed to.
    var showsClaimedServices = false
    var acquiresIndications = false
    var answersRefusedAcquisitions = false
    var diesOfLostAcquisitions = true

    // MARK: Serving
    /// The longest write that a central's packet may carry, in bytes.
    var longestWrite = 512
    var passesApplicationErrors = false
    var passesImproperlyConfigured = false
    var hasSecuredSubscriptions = false
    var needsHandles = false
    var hasAddressResolution = false
    var hasLongAdvertisements = false
    var needsSecondaryChannel = true
    /// The flags that a `Discoverable` of false puts into an advertisement; nil for none.
    var undiscoverableFlags: UInt8?
    var sparesBroadcasts = false
    var setsAdvertisementInstance = false
    /// Otherwise a characteristic has one socket for all subscribers.
    var hasNotificationSocketPerCentral = false
    var routesNotificationSockets = false
    /// Whether `Confirm` is called when an indication from a socket was confirmed.
    var confirmsSocketsByCall = true
    var confirmsSocketsByPacket = false
    var hasWriteSocketPerCentral = false
    /// Whether a characteristic that notifies and indicates sends nothing to subscribers that asked for notifications.
    var losesNotificationsBesideIndications = true

    /// A difference between one version and the one before it.
    struct Change: Sendable {
        /// The first version that has it.
        let version: BlueZVersion
        /// A phrase for the documentation, which lists all changes.
        let summary: String
        /// The properties that come with it.
        let properties: Set<String>
        let apply: @Sendable (inout DaemonTraits) -> Void

        init(
            _ minor: Int, _ summary: String, adds properties: Set<String> = [],
            _ change: @escaping @Sendable (inout DaemonTraits) -> Void = { _ in }
        ) {
            version = BlueZVersion(5, minor)
            self.summary = summary
            self.properties = properties
            apply = {
                $0.missingProperties.subtract(properties)
                change(&$0)
            }
        }

        /// These traits have the opposite value from the version on.
        init(
            _ minor: Int, _ summary: String, _ traits: any WritableKeyPath<DaemonTraits, Bool> & Sendable...
        ) {
            self.init(minor, summary) { values in for trait in traits { values[keyPath: trait].toggle() } }
        }
    }

    static let changes = [
        Change(
            56, "subscribers get notifications of a characteristic that indicates, too",
            \.losesNotificationsBesideIndications),
        Change(61, "generic access that is served has Central Address Resolution", \.hasAddressResolution),
        Change(62, "errors of `Connect` are `le-connection-…` and `br-connection-canceled`") {
            $0.connectionFailure = "le-connection-abort-by-local"
            $0.connectionCancelled = "br-connection-canceled"
        },
        Change(62, "`GattCharacteristic1.MTU`", adds: ["GattCharacteristic1.MTU"]),
        Change(
            62, "the flags `encrypt-notify`, `encrypt-indicate` and their like, which before refuse the application",
            \.hasSecuredSubscriptions),
        Change(63, "a write of more than 510 bytes is refused") { $0.longestWrite = 510 },
        Change(65, "`Device1.Bonded`", adds: ["Device1.Bonded"]),
        Change(
            66, "a program's errors `0x80` to `0x9F` reach the central, before always `0x80`",
            \.passesApplicationErrors),
        Change(67, "a filter of nothing but all transports of the adapter counts as none", \.countsEveryFilter),
        Change(
            67,
            "a call that waits for a pairing gets no reply if the link ends; later ones get `InProgress` until `RemoveDevice`",
            \.losesRetriedRequests),
        Change(
            67, "after an agent has refused a pairing for a value, the link stays up without any responses",
            \.stallsAfterRefusal),
        Change(
            69, "`Handle` of services, characteristics and descriptors",
            adds: ["GattService1.Handle", "GattCharacteristic1.Handle", "GattDescriptor1.Handle"]),
        Change(69, "advertisements of more than 31 bytes, with a `SecondaryChannel`", \.hasLongAdvertisements),
        Change(69, "`Discoverable: false` in an advertisement sends flags of 0") { $0.undiscoverableFlags = 0 },
        Change(69, "writes of 512 bytes are taken") { $0.longestWrite = 512 },
        Change(
            69,
            "a notification socket per central, each broadcasting; an unbonded central that leaves closes the oldest",
            \.hasNotificationSocketPerCentral),
        Change(69, "a write socket per central", \.hasWriteSocketPerCentral),
        Change(71, "`Adapter1.Manufacturer` and `Version`", adds: ["Adapter1.Manufacturer", "Adapter1.Version"]),
        Change(71, "`BatteryProviderManager1`", \.hasBatteryProviders),
        Change(
            71, "a link is secured once for each request, and then the request fails with `NotPermitted`",
            \.retriesSecurityOnce),
        Change(73, "`Adapter1.PowerState`", adds: ["Adapter1.PowerState"]),
        Change(74, "characteristics without an explicit `Handle` refuse their application", \.needsHandles),
        Change(76, "advertisements of more than 31 bytes need no `SecondaryChannel`", \.needsSecondaryChannel),
        Change(76, "fields of more than 29 bytes that a device advertises reach the bus") { $0.longestField = 249 },
        Change(76, "handles are given again where a program leaves them to BlueZ", \.needsHandles),
        Change(76, "`ImproperlyConfigured` is 0xFD for the central, before 0x0E", \.passesImproperlyConfigured),
        Change(
            76, "packets of a notification socket go to its central only; their confirmations are not reported",
            \.routesNotificationSockets, \.confirmsSocketsByCall),
        Change(
            77, "`SupportedCapabilities` and `SupportedFeatures` of `LEAdvertisingManager1`",
            adds: ["LEAdvertisingManager1.SupportedCapabilities", "LEAdvertisingManager1.SupportedFeatures"]),
        Change(
            77, "`MinInterval`, `MaxInterval` and `TxPower` of an advertisement are used",
            adds: ["LEAdvertisement1.MinInterval", "LEAdvertisement1.MaxInterval", "LEAdvertisement1.TxPower"]),
        Change(77, "`Discoverable: false` sends flags of 4") { $0.undiscoverableFlags = 4 },
        Change(
            78, "`Device1.AdvertisingFlags` and `AdvertisingData`",
            adds: ["Device1.AdvertisingFlags", "Device1.AdvertisingData"]),
        Change(
            79, "`Pair` of a bonded device is `AlreadyExists`, before `ConnectionAttemptFailed` after five seconds",
            \.pairsOverWrongBearer),
        Change(79, "`Adapter1.Connectable`", adds: ["Adapter1.Connectable"]),
        Change(80, "`Discoverable: false` sends no flags in a broadcast, which before is refused", \.sparesBroadcasts),
        Change(
            80, "`ScanResponseServiceUUIDs`, `…SolicitUUIDs`, `…ManufacturerData`, `…ServiceData`, `…Data`",
            adds: [
                "LEAdvertisement1.ScanResponseServiceUUIDs", "LEAdvertisement1.ScanResponseSolicitUUIDs",
                "LEAdvertisement1.ScanResponseManufacturerData", "LEAdvertisement1.ScanResponseServiceData",
                "LEAdvertisement1.ScanResponseData",
            ]),
        Change(
            80, "services that BlueZ uses itself (`1800`) have objects, which cannot be written",
            \.showsClaimedServices),
        Change(80, "`AcquireNotify` takes characteristics that only indicate", \.acquiresIndications),
        Change(80, "a confirmation comes back on the notification socket, as one byte 1", \.confirmsSocketsByPacket),
        Change(81, "a second `Connect` is `InProgress`, before `Failed` \"Operation already in progress\"") {
            $0.secondConnect = .inProgress
        },
        Change(
            81, "generic access that is served has Central Address Resolution only with LL privacy, which is off here",
            \.hasAddressResolution),
        Change(
            81, "`Pair` of a connected device uses the capability that the adapter had when the link came up",
            \.pairsLinkWithItsCapability),
        Change(81, "`Pair` and `Connect` of one device refuse each other with `InProgress`", \.pairExcludesConnect),
        Change(
            82, "`RemoveDevice` after an `AcquireNotify` without a reply does not crash; seen at 5.66 and at 5.82 only",
            \.diesOfLostAcquisitions),
        Change(83, "`Device1.Disconnected` says why a link has ended", \.signalsDisconnections),
        Change(83, "`Device1.CablePairing`; `AutoConnect` in `GetDiscoveryFilters`", adds: ["Device1.CablePairing"]) {
            $0.discoveryFilterKeys.append("AutoConnect")
        },
        Change(
            84, "`Bearer.LE1` with nothing but a signal `Disconnected`, sent before that of `Device1`",
            \.hasBearers),
        Change(
            84, "`AcquireNotify` is answered when the peer refuses, before never, also if a pairing follows",
            \.answersRefusedAcquisitions),
        Change(
            87, "the number of an advertisement is written to its property `Instance`, if it has one",
            \.setsAdvertisementInstance),
        Change(
            87, "`Pair` succeeds if the link ends after the pairing and before the services are discovered",
            \.failsPairWithDiscovery),
        Change(
            87, "`Pair` gets a reply if services are being discovered when the pairing succeeds, before none",
            \.losesReplyOfPairBesideDiscovery),
        Change(87, "crashes on a filter with `UUIDs` when an advertisement has services", \.diesOfUUIDFilters),
        Change(
            87, "crashes after `RemoveDevice` on a connected device when the link has ended",
            \.diesOfRemovingConnected),
        Change(
            88, "does not crash on either; the version stands for BlueZ's development head",
            \.diesOfUUIDFilters, \.diesOfRemovingConnected),
        Change(
            88, "`RSSI` at each report only if a filter has `RSSI` or `Pathloss`, else in steps of 8 dB",
            \.repeatsStrengthByProximityOnly),
    ]

    init(_ version: BlueZVersion) {
        for change in Self.changes where change.version <= version { change.apply(&self) }
    }
}
