import BlueCapBlueZ

/// What `bluetoothd` and the adapter in use can do: the type of `CentralManager.capabilities` and
/// `PeripheralManager.capabilities`.
///
/// The value is read from what BlueZ exports, and derived from BlueZ's version only if nothing else shows it. A
/// property that is unknown has the value that holds for every version: false, `nil`, an empty set, or the smaller
/// number. Properties are unknown
///
/// - before the first state other than `unknown`, without an adapter, and while `bluetoothd` is away;
/// - if they depend on the version alone, and `DeviceID` in `main.conf` hides the version. The version is then narrowed
///   down by what the adapter exports, by the reply to one further call, and by the first device that BlueZ reports.
///
/// The value is complete when the state becomes ``ManagerState/poweredOn``, except in the last case, in which
/// `whenCapabilitiesChange()` reports what is found out later. Nothing waits for it. If `bluetoothd` restarts, perhaps
/// as another version, the value is replaced before the state becomes `poweredOn` again.
public struct BluetoothCapabilities: Hashable, Sendable, Codable {
    /// A version of BlueZ.
    public struct Version: Hashable, Sendable, Codable, Comparable, CustomStringConvertible {
        /// The number before the dot: 5 in 5.82.
        public let major: Int
        /// The number after the dot: 82 in 5.82. Versions are compared by number: 5.9 is before 5.66.
        public let minor: Int

        /// Creates a version.
        ///
        /// - Parameters:
        ///   - major: The number before the dot.
        ///   - minor: The number after the dot.
        public init(_ major: Int, _ minor: Int) {
            self.major = major
            self.minor = minor
        }

        public var description: String { "\(major).\(minor)" }

        public static func < (one: Version, other: Version) -> Bool {
            (one.major, one.minor) < (other.major, other.minor)
        }
    }

    // MARK: BlueZ

    /// The version of `bluetoothd`; unknown: `nil`. Distributions correct defects without changing the number, and a
    /// build of BlueZ's repository has the number of the last release.
    public var version: Version?
    /// Whether `bluetoothd` runs with `--experimental`; unknown: false.
    public var experimental = false
    /// Whether the adapter reports `PowerState`, so that ``CentralManager/stateExplanation`` distinguishes an adapter
    /// that rfkill blocks from one that is off: from 5.73, with `--experimental` from 5.66. Unknown: false.
    public var powerState = false

    // MARK: Central role

    /// The types of advertisement monitors by BlueZ's names, such as `or_patterns`: with `--experimental` only. Unknown: none.
    public var advertisementMonitors: Set<String> = []
    /// Whether BlueZ exports the flags and the remaining fields of what devices advertise: from 5.78, with
    /// `--experimental` before. Unknown: false.
    public var advertisingData = false
    /// Whether BlueZ reports why a link ended (``Peripheral/disconnectDetail``): from 5.83. Unknown: false.
    public var disconnectReasons = false
    /// Whether `bluetoothd` filters by services while it scans: not with 5.87, which then ends itself, and not if the
    /// version may be 5.87. A scan for services finds the same peripherals without it, at the cost of more messages.
    /// Unknown: false.
    public var serviceFilter = false
    /// Whether a peripheral's refusal of a subscription over ``NotificationTransport/socket`` is reported: from 5.84. Unknown:
    /// false.
    public var refusedSocketsAnswered = false

    // MARK: Peripheral role

    /// Whether a value can be sent to a single subscribed central: from 5.76. Unknown: false.
    public var directedUpdates = false
    /// The longest value that a central can write with one request, in bytes: 512, and 510 up to 5.68. Unknown: 510.
    public var maximumWriteLength = 510
    /// Whether a request can be refused with an application's own ATT error, 0x80 to 0x9F: from 5.66. Unknown: false.
    public var applicationErrors = false
    /// Whether a subscription can demand an encrypted link: from 5.66. Unknown: false.
    public var encryptedSubscriptions = false

    // MARK: Advertising

    /// Whether the controller and the kernel have extended advertising; unknown: false.
    public var extendedAdvertising = false
    /// The secondary PHYs of extended advertising; unknown: none.
    public var secondaryChannels: Set<AdvertisingData.SecondaryChannel> = []
    /// The longest advertising data of an advertisement without a secondary channel, in bytes: 31, and from 5.77 on
    /// what the controller and the kernel support. Unknown: 31.
    public var maximumAdvertisingLength = 31
    /// The longest advertising data of an advertisement with a secondary channel, in bytes: up to 5.76 more than 31
    /// only with `--experimental`, and never up to 5.68. Unknown: 31.
    public var maximumExtendedAdvertisingLength = 31
    /// The longest data of a scan response in bytes; unknown: 31.
    public var maximumScanResponseLength = 31
    /// Whether ``AdvertisingData/interval`` is used: from 5.77, with `--experimental` before. It also needs a kernel
    /// with the management command Add Extended Advertising Parameters (Linux 5.11), which BlueZ does not show on the bus:
    /// with an older kernel the interval is ignored. Unknown: false.
    public var advertisingInterval = false
    /// Whether ``AdvertisingData/txPower`` is used: under the same conditions as the interval, and if the kernel and
    /// the controller support it. Unknown: false.
    public var advertisingPower = false
    /// The powers at which the controller can advertise, in dBm; unknown: `nil`.
    public var advertisingPowerRange: ClosedRange<Int>?
    /// Whether a program can choose the contents of the scan response: from 5.80. Unknown: false.
    public var scanResponseFields = false

    /// Creates a value in which everything is unknown.
    public init() {}
}

extension BluetoothCapabilities {
    init(_ known: DaemonCapabilities) {
        version = known.version.map { Version($0.major, $0.minor) }
        experimental = known.isExperimental
        powerState = known.reportsPowerState

        advertisementMonitors = Set(known.monitorTypes)
        advertisingData = known.reportsAdvertisingData
        disconnectReasons = known.reportsDisconnectReasons
        serviceFilter = known.acceptsServiceFilter
        refusedSocketsAnswered = known.answersRefusedAcquireNotify

        directedUpdates = known.directedUpdates
        maximumWriteLength = known.maximumWrittenLength
        applicationErrors = known.applicationErrorCodes
        encryptedSubscriptions = known.securedSubscriptions

        extendedAdvertising = known.extendedAdvertising
        secondaryChannels = Set(
            known.secondaryChannels.compactMap { AdvertisingData.SecondaryChannel(rawValue: $0.rawValue) })
        maximumAdvertisingLength = known.maximumAdvertisingLength
        maximumExtendedAdvertisingLength = known.maximumExtendedAdvertisingLength
        maximumScanResponseLength = known.maximumScanResponseLength
        advertisingInterval = known.usesAdvertisingInterval
        advertisingPower = known.usesAdvertisingPower
        advertisingPowerRange = known.advertisingPower
        scanResponseFields = known.scanResponseFields
    }
}
