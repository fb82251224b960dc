public import Foundation
public import BlueCapFutures
public import BlueCapGATT

/// A group of iBeacons, or a single one: what a ``PeripheralManager`` advertises, and what a ``CentralManager`` ranges.
///
/// ```swift
/// let region = BeaconRegion(proximityUUID: floor, identifier: "iBeacon", major: 1, minor: 1)
/// try await manager.startAdvertising(region)
/// ```
public final class BeaconRegion: Sendable {
    /// The proximity UUID, which all beacons of an owner share.
    public let proximityUUID: UUID
    /// The application's name for the region.
    public let identifier: String
    /// The group within the UUID's beacons; `nil` for any.
    public let major: UInt16?
    /// The beacon within the group; `nil` for any.
    public let minor: UInt16?
    /// The number of sightings that a stream keeps (``CentralManager/startRangingBeacons(in:model:smoothing:)``).
    public let capacity: Int
    /// The strength in dBm with which the advertised beacon is received at a distance of one metre.
    public let measuredPower: Int8

    private init(_ uuid: UUID, _ identifier: String, _ major: UInt16?, _ minor: UInt16?, _ capacity: Int, _ power: Int8)
    {
        proximityUUID = uuid
        self.identifier = identifier
        self.major = major
        self.minor = minor
        self.capacity = capacity
        measuredPower = power
    }

    /// Creates a region of all beacons with a proximity UUID.
    public convenience init(proximityUUID: UUID, identifier: String, capacity: Int = Int.max) {
        self.init(proximityUUID, identifier, nil, nil, capacity, -59)
    }

    /// Creates a region of all beacons of a group.
    public convenience init(proximityUUID: UUID, identifier: String, major: UInt16, capacity: Int = Int.max) {
        self.init(proximityUUID, identifier, major, nil, capacity, -59)
    }

    /// Creates a region of a single beacon, if the owner gives each beacon different numbers.
    ///
    /// - Parameters:
    ///   - proximityUUID: The UUID that all beacons of an owner share.
    ///   - identifier: The application's name for the region.
    ///   - major: The group within the UUID's beacons.
    ///   - minor: The beacon within the group.
    ///   - capacity: The number of sightings that a stream keeps.
    public convenience init(
        proximityUUID: UUID, identifier: String, major: UInt16, minor: UInt16, capacity: Int = Int.max
    ) {
        self.init(proximityUUID, identifier, major, minor, capacity, -59)
    }

    /// Creates a region with a measured power other than that of a telephone.
    /// - Parameters:
    ///   - proximityUUID: The UUID that all beacons of an owner share.
    ///   - identifier: The application's name for the region.
    ///   - major: The group within the UUID's beacons.
    ///   - minor: The beacon within the group.
    ///   - measuredPower: The strength at which the beacon is received at a distance of one metre, in dBm.
    ///   - capacity: The number of sightings that a stream keeps.
    public convenience init(
        proximityUUID: UUID, identifier: String, major: UInt16, minor: UInt16, measuredPower: Int8,
        capacity: Int = Int.max
    ) {
        self.init(proximityUUID, identifier, major, minor, capacity, measuredPower)
    }

    /// The beacon that is advertised for the region: a missing major or minor number is 0, as in Core Location.
    public var beacon: IBeacon {
        IBeacon(uuid: proximityUUID, major: major ?? 0, minor: minor ?? 0, measuredPower: measuredPower)
    }

    /// The filter that accepts the beacons of the region.
    public var filter: BeaconFilter { .iBeacon(proximityUUID, major: major, minor: minor) }
}

extension BeaconRegion: Hashable {
    public static func == (left: BeaconRegion, right: BeaconRegion) -> Bool {
        left.identifier == right.identifier && left.filter == right.filter
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(identifier)
        hasher.combine(filter)
    }
}

extension CentralManager {
    /// Ranges the beacons of a region: ``startRangingBeacons(_:model:smoothing:capacity:)`` with the region's filter
    /// and capacity. A capacity of `Int.max` keeps the newest 1 024 sightings.
    public func startRangingBeacons(
        in region: BeaconRegion, model: DistanceModel = DistanceModel(), smoothing: Duration = .seconds(2)
    ) -> FutureStream<BeaconSighting> {
        startRangingBeacons(
            [region.filter], model: model, smoothing: smoothing,
            capacity: region.capacity == .max ? 1_024 : region.capacity)
    }
}
