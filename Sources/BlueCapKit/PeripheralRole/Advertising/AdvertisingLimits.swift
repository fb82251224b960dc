import BlueCapBlueZ

/// What an adapter can advertise, as BlueZ reports it.
public struct AdvertisingLimits: Hashable, Sendable {
    /// The number of present advertisements, including those of other programs; `nil` if BlueZ does not report it.
    public let active: Int?
    /// The number of advertisements that can be added; `nil` if BlueZ does not report it.
    public let available: Int?
    /// BlueZ's names of what it can add to an advertisement, such as `tx-power`; `nil` if it does not report them.
    public let includes: [String]?
    /// The secondary channels. Empty without extended advertising, which both the controller and the kernel must
    /// support.
    public let secondaryChannels: [AdvertisingData.SecondaryChannel]
    /// Whether ``AdvertisingData/interval`` and ``AdvertisingData/txPower`` are used: not before 5.77, unless BlueZ is
    /// experimental. A kernel older than Linux 5.11 ignores them, which BlueZ does not report.
    public let honoursIntervalAndPower: Bool
    /// The powers in dBm; `nil` if BlueZ does not report them.
    public let txPower: ClosedRange<Int>?
    /// The longest advertisement without ``AdvertisingData/secondaryChannel``, in bytes: 31, and from BlueZ 5.77 on
    /// what the controller supports, with extended advertising up to 251. Never `nil`.
    public let maximumLength: Int?
    /// The longest advertisement with ``AdvertisingData/secondaryChannel``, in bytes: the same as ``maximumLength``,
    /// but with `--experimental` already from BlueZ 5.69 on.
    public let maximumLengthOnSecondaryChannel: Int
    /// The longest scan response of an extended advertisement, in bytes; that of any other advertisement has 31.
    public let maximumScanResponseLength: Int
    /// Whether ``AdvertisingData/scanResponse-swift.property`` is used: from BlueZ 5.80 on.
    public let honoursScanResponse: Bool

    /// - Parameters:
    ///   - instances: What BlueZ reports now.
    ///   - adapter: The capabilities of the adapter.
    init(_ instances: AdvertisingCapabilities, of adapter: BluetoothCapabilities) {
        active = instances.activeInstances
        available = instances.supportedInstances
        includes = instances.supportedIncludes
        secondaryChannels = AdvertisingData.SecondaryChannel.allCases.filter(adapter.secondaryChannels.contains)
        honoursIntervalAndPower = adapter.advertisingInterval
        txPower = adapter.advertisingPowerRange
        maximumLength = adapter.maximumAdvertisingLength
        maximumLengthOnSecondaryChannel = adapter.maximumExtendedAdvertisingLength
        maximumScanResponseLength = adapter.maximumScanResponseLength
        honoursScanResponse = adapter.scanResponseFields
    }

    /// The number of advertisements that the adapter can have; `nil` if BlueZ does not report it.
    var capacity: Int? { active.flatMap { active in available.map { active + $0 } } }

    /// Returns why this cannot be advertised; `nil` if it can.
    func refusal(of data: AdvertisingData) -> PeripheralManagerError? {
        if available == 0 { return .tooManyAdvertisements(active ?? 0) }
        if data.includesTxPower, let includes, !includes.contains("tx-power") {
            return .invalidAdvertisement("The adapter cannot add its transmission power to an advertisement.")
        }
        if let channel = data.secondaryChannel, !secondaryChannels.contains(channel) {
            return .invalidAdvertisement(
                "The adapter has no secondary channel \(channel.rawValue), or BlueZ does not offer it.")
        }
        return data.excess(over: .init(self)).map { .advertisementTooLong(field: $0.field, by: $0.count) }
    }

    /// Returns which parts of the advertisement this BlueZ ignores or changes.
    func notes(on data: AdvertisingData) -> [AdvertisingNote] {
        var notes: [AdvertisingNote] = []
        if !honoursIntervalAndPower, data.interval != nil { notes.append(.intervalIgnored) }
        if !honoursIntervalAndPower, data.txPower != nil { notes.append(.txPowerIgnored) }
        if !honoursScanResponse, !data.scanResponse.isEmpty { notes.append(.scanResponseIgnored) }
        if data.isExtended, data.secondaryChannel == nil { notes.append(.extended) }
        return notes
    }
}

/// A part of an advertisement that differs from the request, although nothing failed.
public enum AdvertisingNote: Hashable, Sendable, CaseIterable, CustomStringConvertible {
    /// This BlueZ chooses the interval itself.
    case intervalIgnored
    /// This BlueZ chooses the power itself.
    case txPowerIgnored
    /// This BlueZ puts only the name into the scan response.
    case scanResponseIgnored
    /// It is longer than 31 bytes, so it uses extended advertising, which only scanners of Bluetooth 5 receive.
    case extended

    public var description: String {
        switch self {
        case .intervalIgnored:
            "bluetoothd ignores the interval: before 5.77 it takes one only when it is started with --experimental."
        case .txPowerIgnored:
            "bluetoothd ignores the power: before 5.77 it takes one only when it is started with --experimental."
        case .scanResponseIgnored:
            "bluetoothd ignores the fields of the scan response: 5.80 is the first that takes them."
        case .extended:
            "The advertisement is longer than 31 bytes: only scanners of Bluetooth 5 receive it."
        }
    }
}

/// How an advertisement has ended.
public enum AdvertisingEnd: Hashable, Sendable {
    /// The application ended it.
    case stopped
    /// Its ``AdvertisingData/timeout`` has passed.
    case timedOut
    /// It was never sent: `startAdvertising` has failed with the reason.
    case notStarted
    /// BlueZ has refused it.
    case refused(BusError)
    /// The manager has ended, or was reset.
    case managerEnded
}
