/// What an adapter can advertise, as BlueZ tells it.
public struct AdvertisingLimits: Hashable, Sendable {
    /// How many advertisements there are, those of all programs together; `nil` where BlueZ does not tell.
    public let active: Int?
    /// How many more there may be; `nil` where BlueZ does not tell.
    public let available: Int?
    /// What BlueZ can add by itself, by its names, such as `tx-power`; `nil` where it does not tell.
    public let includes: [String]?
    /// Empty where there is none, or BlueZ does not tell: 5.66 does so only as an experiment.
    public let secondaryChannels: [AdvertisingData.SecondaryChannel]
    /// Whether ``AdvertisingData/interval`` and ``AdvertisingData/txPower`` count: not before 5.77, unless BlueZ is
    /// experimental.
    public let honoursIntervalAndPower: Bool
    /// In dBm; `nil` where BlueZ does not tell.
    public let txPower: ClosedRange<Int>?
    /// In bytes; `nil` where BlueZ does not tell, which means 31.
    public let maximumLength: Int?

    /// Why this cannot be advertised; `nil` where it can.
    func refusal(of data: AdvertisingData) -> AdvertisingRegistry.Failure? {
        if available == 0 { return .tooMany(active ?? 0) }
        if data.includesTxPower, let includes, !includes.contains("tx-power") {
            return .invalid("The adapter cannot add its transmission power to an advertisement.")
        }
        if let channel = data.secondaryChannel, !secondaryChannels.contains(channel) {
            return .invalid("The adapter has no secondary channel \(channel.rawValue), or BlueZ does not offer it.")
        }
        return nil
    }

    /// What of this BlueZ is going to ignore.
    func notes(on data: AdvertisingData) -> [AdvertisingNote] {
        guard !honoursIntervalAndPower else { return [] }
        return (data.interval == nil ? [] : [.intervalIgnored]) + (data.txPower == nil ? [] : [.txPowerIgnored])
    }
}

/// What of an advertisement is not as it was asked for, though nothing failed.
public enum AdvertisingNote: Hashable, Sendable, CaseIterable, CustomStringConvertible {
    /// This BlueZ chooses the interval itself.
    case intervalIgnored
    /// This BlueZ chooses the power itself.
    case txPowerIgnored

    public var description: String {
        switch self {
        case .intervalIgnored:
            "bluetoothd ignores the interval: before 5.77 it takes one only when it is started with --experimental."
        case .txPowerIgnored:
            "bluetoothd ignores the power: before 5.77 it takes one only when it is started with --experimental."
        }
    }
}

/// How an advertisement has ended.
public enum AdvertisingEnd: Hashable, Sendable {
    /// The application has ended it.
    case stopped
    /// Its ``AdvertisingData/timeout`` has passed.
    case timedOut
    /// It was never on the air: `startAdvertising` has failed with the reason.
    case notStarted
    /// BlueZ does not want it (any more).
    case refused(BusFailure)
    /// The manager has ended, or was reset.
    case managerEnded
}
