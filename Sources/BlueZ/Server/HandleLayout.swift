/// Chooses the handles of an application's attributes, for a BlueZ that does not.
///
/// BlueZ 5.74 and 5.75 refuse a characteristic whose `Handle` is 0 (`database_add_chrc`). With handles of our own a service must
/// have one as well, since they have to lie within it, and each descriptor, in the order in which BlueZ creates the attributes
/// of a service (`database_add_service`): its declaration, the included services, and for each characteristic its declaration,
/// its value, 0x2902 and 0x2900, which BlueZ adds by itself, and its descriptors.
///
/// Which handles are free is not on the bus. BlueZ gives its own services and those of other programs the handle after the
/// highest one, so ours begin far above, and far enough below 0xFFFF that others find room behind them. If they are taken
/// nevertheless, BlueZ refuses the registration and the next ones are tried.
struct HandleLayout {
    private static let first: UInt16 = 0x1000
    private static let last: UInt16 = 0xEFFF

    private var next = HandleLayout.first

    /// Handles for all attributes of a service, the same for the same services in the same order; none if it has more than there
    /// are. An attribute more gives all of its service new ones.
    mutating func place(_ service: ServerService, includes: Int) -> [ServerAttributeID: UInt16] {
        for first in [next, Self.first] {
            let (handles, end) = Self.place(service, includes: includes, from: Int(first))
            guard end <= Int(UInt16.max) else { continue }
            next = end < Int(Self.last) ? UInt16(end) : Self.first
            return handles.mapValues { UInt16($0) }
        }
        return [:]
    }

    /// - Returns: The handles, and the one after the last.
    private static func place(
        _ service: ServerService, includes: Int, from first: Int
    ) -> (handles: [ServerAttributeID: Int], end: Int) {
        var handles = [service.id: first]
        var handle = first + 1 + includes
        for characteristic in service.characteristics {
            handles[characteristic.id] = handle + 1
            handle += 2
            if characteristic.flags.canBeSubscribedTo { handle += 1 }
            if characteristic.flags.hasExtendedProperties { handle += 1 }
            for descriptor in characteristic.descriptors {
                handles[descriptor.id] = handle
                handle += 1
            }
        }
        return (handles, handle)
    }
}

extension ServerService {
    /// It, its characteristics and their descriptors.
    var attributes: [ServerAttributeID] { [id] + characteristics.flatMap { [$0.id] + $0.descriptors.map(\.id) } }
}

extension GattFlags {
    /// Whether BlueZ adds 0x2900.
    fileprivate var hasExtendedProperties: Bool { !isDisjoint(with: [.reliableWrite, .writableAuxiliaries]) }
}
