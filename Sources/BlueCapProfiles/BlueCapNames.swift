// BlueCap's names of the ready-made profiles. If this library has another name for the same thing, BlueCap's is deprecated
// and the compiler offers the replacement.

/// BlueCap's name of ``BluetoothSIG``.
@available(*, deprecated, renamed: "BluetoothSIG")
public typealias BLESIGGATT = BluetoothSIG

/// BlueCap's name of ``TISensorTag``.
@available(*, deprecated, renamed: "TISensorTag")
public typealias TiSensorTag = TISensorTag

extension Nordic {
    /// BlueCap's name of ``DeviceAddressService``.
    @available(*, deprecated, renamed: "DeviceAddressService")
    public typealias BLEAddressService = DeviceAddressService
}

/// Adds the profiles of ``BluetoothSIG`` to a profile manager, as BlueCap's type of this name does.
public enum BLESIGGATTProfiles {
    /// Adds every profile of ``BluetoothSIG/serviceProfiles``; one that the manager has for the same UUID is replaced.
    public static func create(profileManager: ProfileManager) { profileManager.add(BluetoothSIG.serviceProfiles) }
}

/// Adds the profiles of ``TISensorTag`` to a profile manager, as BlueCap's type of this name does.
public enum TISensorTagProfiles {
    /// Adds every profile of ``TISensorTag/serviceProfiles``; one that the manager has for the same UUID is replaced.
    public static func create(profileManager: ProfileManager) { profileManager.add(TISensorTag.serviceProfiles) }
}

/// Adds the profiles of ``Nordic`` to a profile manager, as BlueCap's type of this name does.
public enum NordicProfiles {
    /// Adds every profile of ``Nordic/serviceProfiles``; one that the manager has for the same UUID is replaced.
    public static func create(profileManager: ProfileManager) { profileManager.add(Nordic.serviceProfiles) }
}

/// Adds the profiles of ``Gnosus`` to a profile manager, as BlueCap's type of this name does.
public enum GnosusProfiles {
    /// Adds every profile of ``Gnosus/serviceProfiles``; one that the manager has for the same UUID is replaced.
    public static func create(profileManager: ProfileManager) { profileManager.add(Gnosus.serviceProfiles) }
}
