import BlueCapDBus
/// The abilities of a `bluetoothd` and one of its adapters; ``Adapter1/capabilities`` has the present value.
///
/// Read from what the daemon exports, and from its version only if the bus cannot show it. Each property says what it is
/// while nothing is known, which is also what ``init()`` makes it: the value that is safe with every version.
/// `Documentation/BlueZNotes.md` has the source of each version number.
package struct DaemonCapabilities: Hashable, Sendable {
    /// Each version that the daemon can be.
    private var versions = DaemonVersionRange()
    /// Whether the daemon runs with `--experimental`; unknown: false.
    package private(set) var isExperimental = false

    /// Whether the daemon is certainly BlueZ 5.`minor` or later.
    private func isSince(_ minor: Int) -> Bool { versions.first >= .v5(minor) }
    /// Whether the daemon is certainly older than BlueZ 5.`minor`.
    private func isBefore(_ minor: Int) -> Bool { versions.end.map { $0 <= .v5(minor) } ?? false }

    /// The version, if the adapter's `Modalias` has BlueZ's form and does not contradict what the daemon exports; unknown:
    /// `nil`. A build of BlueZ's repository has the version of the last release.
    package var version: DaemonVersion? { versions.onlyVersion }

    // MARK: Client role

    /// `SupportedMonitorTypes` of `AdvertisementMonitorManager1`, which exists only with `--experimental`; unknown: none.
    package private(set) var monitorTypes: [String] = []
    /// Whether `Device1` has the signal `Disconnected` with its reason; unknown: false.
    package var reportsDisconnectReasons: Bool { isSince(83) }
    /// Whether the adapter has `PowerState`: 5.73, experimental from 5.66; unknown: false.
    package private(set) var reportsPowerState = false
    /// Whether devices have `AdvertisingData` and `AdvertisingFlags`; unknown: false.
    package var reportsAdvertisingData: Bool { isExperimental || isSince(78) }
    /// Whether `SetDiscoveryFilter` may have `UUIDs`: not at 5.87, which crashes; unknown: false.
    package var acceptsServiceFilter: Bool { !versions.contains(.v5(87)) }
    /// Whether `RemoveDevice` may be called on a connected device: not at 5.87, which crashes; unknown: false.
    package var removesConnectedDevices: Bool { !versions.contains(.v5(87)) }
    /// Whether `AcquireNotify` gets a reply when the peripheral refuses the subscription; unknown: false.
    package var answersRefusedAcquireNotify: Bool { isSince(84) }

    /// Whether `Pair` on a link that is up uses the capability that the default agent had when the link was made; unknown: true.
    package var pairsWithCapabilityOfLink: Bool { !isBefore(81) }
    /// Whether an operation that BlueZ repeats after raising the link's security may get no reply, and may keep its attribute
    /// occupied until the device is removed; unknown: true.
    package var losesRetriedRequests: Bool { !isBefore(67) }

    // MARK: Server role

    /// How the sockets of a served characteristic's subscribers work; unknown: `unknown`.
    package var notificationSockets: NotificationSockets {
        if isBefore(69) { return .shared }
        if isSince(76) { return .perCentral }
        return isSince(69) && isBefore(76) ? .perCentralBroadcast : .unknown
    }
    /// Whether an update can be sent to one central alone, over its socket; unknown: false.
    package var directedUpdates: Bool { notificationSockets == .perCentral }
    /// Whether each notification socket is one central's, and ends with its link; unknown: false.
    package var opensSocketPerCentral: Bool {
        notificationSockets == .perCentral || notificationSockets == .perCentralBroadcast
    }
    /// Whether the confirmation of an indication that was written to a socket comes as a byte over it. Before that none
    /// comes with 5.76 to 5.79, and `Confirm` is called up to 5.75. Unknown: false.
    package var confirmsOverSocket: Bool { isSince(80) }
    /// Whether an application must have a `Handle` for each attribute: 5.74 and 5.75 refuse one that leaves it to BlueZ;
    /// unknown: false.
    package var needsExplicitHandles: Bool { isSince(74) && isBefore(76) }
    /// The longest value that a central can write in one request, in bytes; unknown: 510.
    package var maximumWrittenLength: Int { isSince(69) ? 512 : 510 }
    /// Whether a refusal can have an application's ATT error code, 0x80 to 0x9F; unknown: false.
    package var applicationErrorCodes: Bool { isSince(66) }
    /// Whether a characteristic may demand encryption for subscribing, `encrypt-notify` and its like. From 5.62 the flags
    /// are accepted and not enforced; before, BlueZ refuses the application. Unknown: false.
    package var securedSubscriptions: Bool { isSince(66) }
    /// Whether a characteristic may demand LE Secure Connections, `secure-read` and its like. Before 5.57 the flags are
    /// accepted and not enforced. Unknown: false.
    package var enforcesSecureConnections: Bool { isSince(57) }

    // MARK: Advertising

    /// Whether the controller and the kernel have extended advertising; unknown: false.
    package private(set) var extendedAdvertising = false
    /// `SupportedSecondaryChannels`; unknown: none.
    package private(set) var secondaryChannels: Set<SecondaryChannel> = []
    /// The longest data of an advertisement without a secondary channel, in bytes: 31, and with extended advertising up to
    /// 251 from 5.76 on; unknown: 31.
    package private(set) var maximumAdvertisingLength = 31
    /// The longest data of an advertisement with a secondary channel, in bytes; unknown: 31.
    package private(set) var maximumExtendedAdvertisingLength = 31
    /// The longest data of a scan response, in bytes; unknown: 31.
    package private(set) var maximumScanResponseLength = 31
    /// Whether `MinInterval` and `MaxInterval` of an advertisement are used: 5.77, experimental before; unknown: false.
    package private(set) var usesAdvertisingInterval = false
    /// Whether `TxPower` of an advertisement is used: 5.77, experimental before, and not with each controller; unknown: false.
    package private(set) var usesAdvertisingPower = false
    /// The powers of the controller in dBm; unknown: `nil`.
    package private(set) var advertisingPower: ClosedRange<Int>?
    /// Whether an advertisement may specify the contents of its scan response; unknown: false.
    package var scanResponseFields: Bool { isSince(80) }

    /// How the sockets work that BlueZ fetches with `AcquireNotify` from a served characteristic.
    package enum NotificationSockets: Hashable, Sendable, CaseIterable {
        /// Not known: a value that is sent as `PropertiesChanged` reaches each subscriber once, whatever the version.
        case unknown
        /// One for all subscribers: up to 5.68.
        case shared
        /// One for each central, and what is written to any of them goes to all subscribers: 5.69 to 5.75.
        case perCentralBroadcast
        /// One for each central, for that one alone: 5.76.
        case perCentral
    }

    /// Creates the capabilities of an unknown daemon.
    package init() {}

    /// Creates the capabilities of a daemon with this adapter.
    init(of adapter: Adapter1, _ hints: DaemonHints) {
        versions = DaemonVersionRange(of: adapter, hints)
        isExperimental = adapter.isDaemonExperimental
        monitorTypes = adapter.monitorTypes
        reportsPowerState = adapter.fields.contains(.powerState)
        let known = adapter.advertising
        // The property exists exactly if the kernel has extended advertising, at every version.
        extendedAdvertising = known.supportedSecondaryChannels != nil
        secondaryChannels = Set(
            known.supportedSecondaryChannels?.compactMap { SecondaryChannel(rawValue: $0) } ?? [])
        usesAdvertisingInterval = known.supportedFeatures != nil
        usesAdvertisingPower = known.supportedFeatures?.contains("CanSetTxPower") ?? false
        advertisingPower = known.powers
        // Up to 5.68 the daemon limits data to 31 bytes, whatever the kernel supports.
        guard extendedAdvertising, isSince(69) else { return }
        let length = Swift.max(31, known.maxAdvertisementLength ?? 31)
        maximumExtendedAdvertisingLength = length
        if isSince(76) { maximumAdvertisingLength = length }
        maximumScanResponseLength = Swift.max(31, known.maxScanResponseLength ?? 31)
    }
}

extension DaemonVersion {
    fileprivate static func v5(_ minor: Int) -> DaemonVersion { DaemonVersion(5, minor) }
}

// MARK: - Signs of the version on the bus

/// Signs of a daemon's version besides the properties of its adapters.
struct DaemonHints: Hashable, Sendable {
    /// The keys that `GetDiscoveryFilters` lists; `nil` until it was answered.
    var discoveryFilters: Set<String>?
    /// Whether a device has `CablePairing`, which every device has from 5.83 on.
    var hasCablePairing = false
    /// Whether a device has `Bearer.LE1`, which every device has from 5.84 on.
    var hasBearers = false
}

extension DaemonVersionRange {
    /// The versions that agree with what a daemon exports.
    init(of adapter: Adapter1, _ hints: DaemonHints) {
        self.init()
        let isStable = !adapter.isDaemonExperimental
        // What only later versions have; some of it earlier ones as well, with `--experimental`.
        let signs: [(isThere: Bool, from: Int)] = [
            (adapter.fields.contains(.manufacturer), 71),
            (isStable && adapter.fields.contains(.powerState), 73),
            (isStable && adapter.advertising.supportedFeatures != nil, 77),
            (adapter.fields.contains(.isConnectable), 79),
            (hints.discoveryFilters?.contains("AutoConnect") ?? false, 83),
            (hints.hasCablePairing, 83),
            (hints.hasBearers, 84),
        ]
        for sign in signs where sign.isThere { raise(to: .v5(sign.from)) }
        if let version = adapter.modalias.flatMap({ DaemonVersion(modalias: $0) }), contains(version) {
            self = DaemonVersionRange(version)
            return
        }
        // `main.conf` has another `DeviceID`. What every later version would have is not there:
        if !adapter.fields.contains(.manufacturer) { limit(below: .v5(71)) }
        if !adapter.fields.contains(.powerState) { limit(below: .v5(73)) }
        if !adapter.fields.contains(.isConnectable) { limit(below: .v5(79)) }
        if let keys = hints.discoveryFilters, !keys.contains("AutoConnect") { limit(below: .v5(83)) }
    }
}

extension Adapter1 {
    /// Whether `GetDiscoveryFilters` of this adapter would narrow down the version: it lists `AutoConnect` from 5.83 on.
    func isUnclear(_ hints: DaemonHints) -> Bool {
        let versions = DaemonVersionRange(of: self, hints)
        return hints.discoveryFilters == nil && versions.contains(.v5(82)) && versions.contains(.v5(83))
    }

    /// Whether the bus shows `--experimental`: from 5.56 on, by this interface alone.
    fileprivate var isDaemonExperimental: Bool { interfaces.contains(.advertisementMonitorManager) }
}

/// A version of BlueZ, such as 5.82.
package struct DaemonVersion: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let major: Int
    package let minor: Int

    package init(_ major: Int, _ minor: Int) {
        self.major = major
        self.minor = minor
    }

    /// The version in an adapter's `Modalias`: `usb:v1D6Bp0246d0542` is 5.66, at all versions (`init_defaults` in
    /// `src/main.c`). `nil` for another vendor or product, which `DeviceID` in `main.conf` can set.
    package init?(modalias: String) {
        let prefix = "usb:v1D6Bp0246d"
        guard modalias.hasPrefix(prefix) else { return nil }
        let digits = modalias.dropFirst(prefix.count)
        guard digits.utf8.count == 4, digits.allSatisfy(\.isHexDigit), let number = UInt16(digits, radix: 16) else {
            return nil
        }
        self.init(Int(number >> 8), Int(number & 0xFF))
    }

    package var description: String { "\(major).\(minor)" }

    package static func < (one: DaemonVersion, other: DaemonVersion) -> Bool {
        (one.major, one.minor) < (other.major, other.minor)
    }
}

/// The versions of BlueZ that a daemon can be, by what is known of it.
struct DaemonVersionRange: Hashable, Sendable {
    /// The lowest one.
    private(set) var first: DaemonVersion
    /// The lowest one above the range; `nil` if there is no limit.
    private(set) var end: DaemonVersion?

    /// Every version.
    init() { first = DaemonVersion(0, 0) }

    /// One version.
    init(_ version: DaemonVersion) {
        first = version
        end = DaemonVersion(version.major, version.minor + 1)
    }

    /// The version, if there is only one.
    var onlyVersion: DaemonVersion? { end == DaemonVersion(first.major, first.minor + 1) ? first : nil }

    mutating func raise(to version: DaemonVersion) { first = max(first, version) }

    /// Does nothing if that would leave no version: what is there counts more than what is not.
    mutating func limit(below version: DaemonVersion) {
        if version > first { end = min(end ?? version, version) }
    }

    func contains(_ version: DaemonVersion) -> Bool { version >= first && end.map { version < $0 } ?? true }
}

extension ObjectTree {
    /// Takes over another interface of an adapter: the reader stands at its `a{sv}`.
    /// - Returns: Whether the interface is new, and the adapter was reported before.
    mutating func extraAdded(
        _ extra: Adapter1.Interfaces, to key: ObjectKey, _ reader: inout MessageReader
    ) -> Bool {
        var adapter = adapters[key] ?? Adapter1()
        let isNew = adapter.interfaces.insert(extra).inserted
        adapter.take(extra, &reader)
        adapters[key] = adapter
        return isNew && adapter.isExported
    }

    /// Computes an adapter's capabilities again.
    /// - Parameter isNew: Whether the adapter is reported as added by the same message.
    mutating func settleCapabilities(of key: ObjectKey, isNew: Bool = false, into changes: inout [Change]) {
        guard let adapter = self[adapter: key] else { return }
        let capabilities = DaemonCapabilities(of: adapter, hints)
        guard capabilities != adapter.capabilities else { return }
        adapters[key]?.capabilities = capabilities
        if !isNew { changes.append(.adapterChanged(key, .capabilities)) }
    }

    /// Stores signs of the daemon's version.
    mutating func learn(into changes: inout [Change], _ change: (inout DaemonHints) -> Void) {
        let before = hints
        change(&hints)
        guard hints != before else { return }
        for key in adapterKeys { settleCapabilities(of: key, into: &changes) }
    }
}

extension Adapter1 {
    /// Takes over properties of another interface: the reader stands at an `a{sv}`.
    mutating func take(_ extra: Interfaces, _ reader: inout MessageReader) {
        switch extra {
        case .advertisingManager: advertising.take(&reader)
        case .advertisementMonitorManager:
            reader.dictionary { entry in
                guard entry.string() == "SupportedMonitorTypes" else { return }
                monitorTypes = entry.variant { $0.strings() } ?? monitorTypes
            }
        default: break
        }
    }

    mutating func keepExtras(of old: Adapter1?) {
        guard let old else { return }
        interfaces = old.interfaces
        advertising = old.advertising
        monitorTypes = old.monitorTypes
        capabilities = old.capabilities
    }

    mutating func remove(_ extra: Interfaces) {
        interfaces.remove(extra)
        if extra == .advertisingManager { advertising = AdvertisingCapabilities() }
        if extra == .advertisementMonitorManager { monitorTypes = [] }
    }
}
