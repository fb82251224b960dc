/// What BlueZ reports of a device's link and bond.
package struct LinkStatus: Equatable, Sendable {
    /// The device's object; `nil` while BlueZ has none: before it is received, and after it was removed.
    package var device: ObjectKey?
    package var isConnected = false
    package var areServicesResolved = false
    package var isPaired = false
    /// Whether BlueZ stores the keys.
    package var isBonded = false
    /// How many successive links to the bonded device have ended before they were encrypted.
    package var shortLinks = 0
    /// Why its last link ended, if BlueZ has reported it.
    package var linkEnd: LinkEnd?

    package init(
        device: ObjectKey? = nil, isConnected: Bool = false, isPaired: Bool = false, isBonded: Bool = false
    ) {
        self.device = device
        self.isConnected = isConnected
        self.isPaired = isPaired
        self.isBonded = isBonded
    }

    package init(of source: ObjectKey, _ device: borrowing Device1) {
        self.device = source
        isConnected = device.hasLink
        areServicesResolved = device.areServicesResolved
        isPaired = device.hasPaired
        isBonded = device.keepsKeys
    }

    /// Whether there is a link that is encrypted with the keys of a bond: BlueZ encrypts it before it discovers services.
    package var isLinkSecure: Bool { isConnected && areServicesResolved && isBonded }

    /// Whether there is more to know than that the device exists.
    package var isNotable: Bool { isConnected || isPaired }
}
