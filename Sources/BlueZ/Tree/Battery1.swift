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

/// Why a link ended, as the signal `Device1.Disconnected` says: from 5.83 on, between `ServicesResolved` false and `Connected`
/// false, when the last bearer of the device is down (`device_disconnected` in `src/device.c`).
package struct LinkEnd: Hashable, Sendable {
    /// The D-Bus name, such as `org.bluez.Reason.Remote`.
    package let name: String
    package let message: String

    package init(name: String, message: String) {
        self.name = name
        self.message = message
    }
}

extension ObjectTree {
    /// Why the last link of a device ended; `nil` if the daemon has not said so, and while there is a link.
    package func linkEnd(of handle: DeviceHandle) -> LinkEnd? {
        guard !linkEnds.isEmpty else { return nil }
        return key(of: handle).flatMap { linkEnds[$0] }
    }

    /// `s s`: a reason and its text.
    mutating func linkEnded(_ signal: Message) {
        guard let key = signal.withPath({ key(ofPath: $0) }) ?? nil, slot(of: key) != nil else { return }
        var reader = signal.reader
        guard let name = reader.string() else { return }
        linkEnds[key] = LinkEnd(name: name, message: reader.string() ?? "")
    }

    /// Of an earlier link, since there is another.
    mutating func forgetOldLinkEnd(at slot: Int) {
        guard !linkEnds.isEmpty else { return }
        let device = devices[slot].device
        if device.isConnected || device.areServicesResolved { linkEnds[devices[slot].key] = nil }
    }
}
