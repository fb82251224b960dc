import DBus

/// `org.bluez.Battery1` of a device: the level that BlueZ reads and follows for itself, whether it exports the
/// peripheral's battery service or not. The interface is there while the device is connected.
struct Battery1: PropertyOwner {
    struct Fields: OptionSet, Hashable, Sendable {
        let rawValue: UInt32

        static let percentage = Fields(rawValue: 1 << 0)
    }

    var fields: Fields = []
    var truths: Fields = []
    /// 0 to 100.
    var percentage: UInt8 = 0

    static let table = PropertyTable<Battery1>(
        "org.bluez.Battery1",
        [.value("Percentage", .percentage, "y") { $0.byte().set(&$1.percentage) }])
}

extension ObjectTree {
    /// The level of a device's battery in percent; `nil` where BlueZ knows none.
    package func batteryLevel(of device: ObjectKey) -> UInt8? { batteries[device]?.percentage }

    /// The reader stands at an `a{sv}`.
    mutating func batteryChanged(_ key: ObjectKey, _ reader: inout MessageReader, into changes: inout ChangeBuffer) {
        var battery = batteries[key] ?? Battery1()
        let fields = Battery1.Fields(
            rawValue: Battery1.table.read(&reader, into: &battery, ignored: &ignoredProperties))
        guard key.isDevice, fields.contains(.percentage) else { return }
        batteries[key] = battery
        tellOfBattery(key, into: &changes)
    }

    mutating func batteryRemoved(_ key: ObjectKey, into changes: inout ChangeBuffer) {
        if batteries.removeValue(forKey: key) != nil { tellOfBattery(key, into: &changes) }
    }

    private func tellOfBattery(_ key: ObjectKey, into changes: inout ChangeBuffer) {
        // The interfaces of an object come in any order: whoever hears of the device reads its battery then.
        guard let slot = slot(of: key) else { return }
        changes.append(.deviceChanged(handle(slot: slot), .battery, isHeard: false))
    }
}
