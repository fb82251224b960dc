/// Chooses the handles of an application's attributes, for a BlueZ that does not.
///
/// BlueZ 5.74 and 5.75 refuse a characteristic with the `Handle` 0 (`database_add_chrc`). With chosen handles a service
/// must have one as well, since they have to lie within it, and each descriptor, in the order in which BlueZ creates
/// the attributes of a service (`database_add_service`): its declaration, the included services, and for each
/// characteristic its declaration, its value, 0x2902 and 0x2900, which BlueZ adds, and its descriptors.
///
/// Which handles are free is not on the bus. BlueZ gives its own services and those of other programs the handle after
/// the highest one, so ours begin far above, and far enough below 0xFFFF that others fit behind them. If they are taken
/// nevertheless, BlueZ refuses the registration and the next ones are tried.
struct HandleLayout {
    private static let first: UInt16 = 0x1000
    private static let last: UInt16 = 0xEFFF

    private var next = HandleLayout.first

    /// The first of this many handles in a row, after those that were given before, or else from the beginning; `nil` if
    /// there are not so many.
    mutating func reserve(_ count: Int) -> UInt16? {
        for first in [next, Self.first] where Int(first) + count <= Int(UInt16.max) {
            let end = first + UInt16(count)
            next = end < Self.last ? end : Self.first
            return first
        }
        return nil
    }
}
