package import BlueCapDBus
import BlueCapFutures
import BlueCapGATT

/// The interfaces that the tree follows.
private enum Interface {
    case adapter
    case device
    /// Another interface of an adapter, of which only the presence counts.
    case adapterExtra(Adapter1.Interfaces)
    case attribute(AttributeKind)
    /// Another interface of a device.
    case battery
    /// Likewise, of which only the presence counts.
    case bearer

    /// Those with the most signals first, since they are found first.
    private static let all: [(name: StaticString, interface: Interface)] = [
        (Device1.table.interface, .device),
        (AttributeKind.characteristic.table.interface, .attribute(.characteristic)),
        (AttributeKind.descriptor.table.interface, .attribute(.descriptor)),
        (AttributeKind.service.table.interface, .attribute(.service)),
        (Adapter1.table.interface, .adapter),
        ("org.bluez.Battery1", .battery),
        ("org.bluez.Bearer.LE1", .bearer),
        ("org.bluez.GattManager1", .adapterExtra(.gattManager)),
        ("org.bluez.LEAdvertisingManager1", .adapterExtra(.advertisingManager)),
        ("org.bluez.AdvertisementMonitorManager1", .adapterExtra(.advertisementMonitorManager)),
    ]

    init?(name: UnsafeBufferPointer<UInt8>) {
        guard let known = Interface.all.first(where: { name.equals($0.name) }) else { return nil }
        self = known.interface
    }
}

extension ObjectTree {
    /// Applies a signal of the daemon, and appends the changes.
    package mutating func apply(_ signal: Message, into changes: inout [Change]) {
        guard isLoaded else { return }
        if signal.isSignal(interface: "org.freedesktop.DBus.Properties", member: "PropertiesChanged") {
            propertiesChanged(signal, into: &changes)
        } else if signal.isSignal(interface: "org.freedesktop.DBus.ObjectManager", member: "InterfacesAdded") {
            var reader = signal.reader
            var attributes: [UnreadAttribute] = []
            object(&reader, into: &changes, later: &attributes)
            read(attributes, into: &changes)
        } else if signal.isSignal(interface: "org.freedesktop.DBus.ObjectManager", member: "InterfacesRemoved") {
            interfacesRemoved(signal, into: &changes)
        } else if signal.isSignal(interface: "org.bluez.Device1", member: "Disconnected") {
            linkEnded(signal)
        }
    }

    /// Applies the daemon's reply to `GetManagedObjects`. Objects that it does not contain are removed.
    package mutating func load(_ reply: Message, into changes: inout [Change]) {
        var reader = reply.reader
        var listed = Set<ObjectKey>()
        var attributes: [UnreadAttribute] = []
        reader.dictionary { entry in
            if let key = object(&entry, into: &changes, later: &attributes) { listed.insert(key) }
        }
        read(attributes, into: &changes)
        if isLoaded {
            let listedAttributes = Set(attributes.map(\.path.key))
            for slot in devices.indices where devices[slot].isLive {
                if !listed.contains(devices[slot].key) {
                    removeDevice(at: slot, into: &changes)
                } else {
                    removeAttributes(ofDeviceAt: slot, where: { !listedAttributes.contains($0) }, into: &changes)
                }
            }
            removeAdapters(adapterKeys.filter { !listed.contains($0) }, into: &changes)
        }
        isLoaded = true
    }

    /// Removes every object, because the daemon is gone.
    package mutating func clear(into changes: inout [Change]) {
        for slot in devices.indices where devices[slot].isLive { removeDevice(at: slot, into: &changes) }
        removeAdapters(adapterKeys, into: &changes)
        adapters.removeAll()
        hints = DaemonHints()
        isLoaded = false
    }
}

// MARK: - PropertiesChanged

extension ObjectTree {
    /// `s a{sv} as`: the interface, properties with their new values, properties that have lost their value.
    private mutating func propertiesChanged(_ signal: Message, into changes: inout [Change]) {
        var reader = signal.reader
        guard let interface = reader.withString({ Interface(name: $0) }) ?? nil else { return }
        if case .attribute(let kind) = interface { return attributeChanged(kind, signal, &reader, into: &changes) }
        guard let key = signal.withPath({ ObjectKey(path: $0) }) ?? nil else { return }
        switch interface {
        case .device: deviceChanged(key, &reader, into: &changes)
        case .adapter: adapterChanged(key, &reader, into: &changes)
        case .battery:
            batteryChanged(key, &reader, into: &changes)
        case .adapterExtra(let extra):
            adapters[key]?.take(extra, &reader)
            settleCapabilities(of: key, into: &changes)
        case .bearer, .attribute:
            return
        }
    }

    private mutating func deviceChanged(
        _ key: ObjectKey, _ reader: inout MessageReader, into changes: inout [Change]
    ) {
        guard let slot = slot(of: key) else { return }
        let (set, all) = devices[slot].device.change(&reader, Device1.table)
        guard !all.isEmpty else { return }
        settle(slot, all)
        if !set.isDisjoint(with: [.isConnected, .areServicesResolved]) { forgetOldLink(at: slot, set) }
        changes.append(.deviceChanged(key, all, isAdvertised: !set.isDisjoint(with: .ofAdvertisements)))
    }

    /// Stores the daemon's reply whether a device is connected. The change is reported also if the value is as before.
    mutating func connectionRead(_ isConnected: Bool, of key: ObjectKey, into changes: inout [Change]) {
        guard let slot = slot(of: key) else { return }
        devices[slot].device.fields.insert(.isConnected)
        if isConnected {
            devices[slot].device.truths.insert(.isConnected)
            forgetOldLink(at: slot, .isConnected)
        } else {
            devices[slot].device.truths.remove(.isConnected)
        }
        changes.append(.deviceChanged(key, .isConnected, isAdvertised: false))
    }

    private mutating func adapterChanged(
        _ key: ObjectKey, _ reader: inout MessageReader, into changes: inout [Change]
    ) {
        let fields = adapters[key]?.change(&reader, Adapter1.table).all ?? []
        guard !fields.isEmpty else { return }
        changes.append(.adapterChanged(key, fields))
        settleCapabilities(of: key, into: &changes)
    }

    /// Stores values in their smallest form after some fields were set.
    private mutating func settle(_ slot: Int, _ fields: Device1.Fields) {
        if fields.contains(.uuids) { devices[slot].device.uuids = lists.shared(devices[slot].device.uuids) }
        if !fields.isDisjoint(with: [.address, .addressType]) { settleNote(ofDeviceAt: slot) }
    }
}

// MARK: - New objects

extension ObjectTree {
    /// `o a{sa{sv}}`: an object with its interfaces and all their properties, as `InterfacesAdded` and each entry of
    /// `GetManagedObjects` have it. An object that is there already is replaced.
    /// - Parameter later: Receives the object if it is an attribute, to be read when all devices are known.
    /// - Returns: Its key, if it is an adapter or a device.
    @discardableResult
    private mutating func object(
        _ reader: inout MessageReader, into changes: inout [Change], later: inout [UnreadAttribute]
    ) -> ObjectKey? {
        let pathReader = reader
        reader.skip()
        var known: ObjectKey?
        var isNewAdapter = false
        var hasNewExtra = false
        reader.dictionary { entry in
            guard let interface = entry.withString({ Interface(name: $0) }) ?? nil else { return }
            if case .attribute(let kind) = interface {
                guard let path = pathReader.peekString({ AttributePath($0) }) ?? nil, path.kind == kind else { return }
                return later.append(UnreadAttribute(path: path, properties: entry))
            }
            guard let key = pathReader.peekString({ ObjectKey(path: $0) }) ?? nil else { return }
            switch interface {
            case .device: deviceAdded(key, &entry, into: &changes)
            case .adapter: isNewAdapter = adapterAdded(key, &entry, into: &changes)
            case .adapterExtra(let extra):
                if extraAdded(extra, to: key, &entry) { hasNewExtra = true }
            case .battery: batteryChanged(key, &entry, into: &changes)
            case .bearer: learn(into: &changes) { $0.hasBearers = true }
            case .attribute: break
            }
            known = key
        }
        guard let known else { return nil }
        if hasNewExtra, !isNewAdapter { changes.append(.adapterChanged(known, .interfaces)) }
        if !known.isDevice { settleCapabilities(of: known, isNew: isNewAdapter, into: &changes) }
        return known
    }

    /// Adds attributes, each after the one that contains it, which has a lower handle: `GetManagedObjects` has no order.
    private mutating func read(_ unread: [UnreadAttribute], into changes: inout [Change]) {
        for attribute in unread.ordered(by: { $0.path.key.handle < $1.path.key.handle }) {
            var properties = attribute.properties
            attributeAdded(attribute.path, &properties, into: &changes)
        }
    }

    private mutating func deviceAdded(
        _ key: ObjectKey, _ reader: inout MessageReader, into changes: inout [Change]
    ) {
        var device = Device1(address: key.address ?? BluetoothAddress(rawValue: 0))
        device.read(&reader, Device1.table)
        let isAdvertised = device.fields.contains(.rssi)
        if device.fields.contains(.hasCablePairing) { learn(into: &changes) { $0.hasCablePairing = true } }
        if let slot = slot(of: key) {
            device.isRefused = devices[slot].device.isRefused
            // All objects were read once more: an unchanged device is not reported.
            guard devices[slot].device != device else { return }
            let fields = devices[slot].device.fields.union(device.fields)
            devices[slot].device = device
            settle(slot, fields)
            changes.append(.deviceChanged(key, fields, isAdvertised: isAdvertised))
        } else {
            settle(insertDevice(key, device), device.fields)
            changes.append(.deviceAdded(key, isAdvertised: isAdvertised))
        }
    }

    /// - Returns: Whether the adapter is new.
    private mutating func adapterAdded(
        _ key: ObjectKey, _ reader: inout MessageReader, into changes: inout [Change]
    ) -> Bool {
        var adapter = Adapter1()
        adapter.read(&reader, Adapter1.table)
        let old = adapters[key]
        // The interfaces of an object come in any order: the others may have come before Adapter1 itself.
        adapter.keepExtras(of: old)
        adapter.isExported = true
        adapters[key] = adapter
        guard let old, old.isExported else {
            changes.append(.adapterAdded(key))
            return true
        }
        changes.append(.adapterChanged(key, old.fields.union(adapter.fields)))
        return false
    }
}

// MARK: - Removed objects

extension ObjectTree {
    /// `o as`: the object and its removed interfaces.
    private mutating func interfacesRemoved(_ signal: Message, into changes: inout [Change]) {
        var reader = signal.reader
        let pathReader = reader
        reader.skip()
        reader.array { element in
            guard let interface = element.withString({ Interface(name: $0) }) ?? nil else { return }
            if case .attribute(let kind) = interface {
                guard let path = pathReader.peekString({ AttributePath($0) }) ?? nil, path.kind == kind else { return }
                return attributeRemoved(path, into: &changes)
            }
            guard let key = pathReader.peekString({ ObjectKey(path: $0) }) ?? nil else { return }
            switch interface {
            case .device:
                if let slot = slot(of: key) { removeDevice(at: slot, into: &changes) }
            case .adapter:
                if self[adapter: key] != nil { removeAdapters([key], into: &changes) }
            case .adapterExtra(let extra):
                guard adapters[key] != nil else { return }
                adapters[key]?.remove(extra)
                changes.append(.adapterChanged(key, .interfaces))
                settleCapabilities(of: key, into: &changes)
            case .battery:
                if batteries.removeValue(forKey: key) != nil { reportBattery(key, into: &changes) }
            case .bearer, .attribute:
                return
            }
        }
    }

    private mutating func removeDevice(at slot: Int, into changes: inout [Change]) {
        removeAttributes(ofDeviceAt: slot, into: &changes)
        changes.append(.deviceRemoved(devices[slot].key))
        removeDevice(slot: slot)
    }

    /// Removes adapters, after their devices, whether the daemon signals the removal of each device or not.
    private mutating func removeAdapters(_ keys: [ObjectKey], into changes: inout [Change]) {
        for key in keys {
            for slot in devices.indices where devices[slot].isLive && devices[slot].key.adapter == key {
                removeDevice(at: slot, into: &changes)
            }
            adapters[key] = nil
            changes.append(.adapterRemoved(key))
        }
    }
}

// MARK: - Batteries and ends of links

extension ObjectTree {
    /// The level of a device's battery in percent; `nil` if BlueZ has not exported one.
    package func batteryLevel(of device: ObjectKey) -> UInt8? { batteries[device] }

    /// Reads the properties of `org.bluez.Battery1` of a device. BlueZ reads and follows the level itself, whether it
    /// exports the peripheral's battery service or not. The interface is there while the device is connected.
    private mutating func batteryChanged(
        _ key: ObjectKey, _ reader: inout MessageReader, into changes: inout [Change]
    ) {
        var level: UInt8?
        reader.dictionary { entry in
            guard entry.withString({ $0.equals("Percentage") }) == true else { return entry.skip() }
            level = entry.variant { $0.byte() }
        }
        guard key.isDevice, let level else { return }
        batteries[key] = level
        reportBattery(key, into: &changes)
    }

    private func reportBattery(_ key: ObjectKey, into changes: inout [Change]) {
        // The interfaces of an object have no order: the battery may be read before its device is added.
        if contains(key) { changes.append(.deviceChanged(key, .battery, isAdvertised: false)) }
    }

    /// The reason for which the last link of a device ended; `nil` if the daemon has not signalled one, and while there is
    /// a link.
    package func linkEnd(of device: ObjectKey) -> LinkEnd? { linkEnds[device] }

    /// Reads the signal `Device1.Disconnected`, `s s`: a reason and its text.
    private mutating func linkEnded(_ signal: Message) {
        guard let key = signal.withPath({ ObjectKey(path: $0) }) ?? nil, contains(key) else { return }
        var reader = signal.reader
        guard let name = reader.string() else { return }
        linkEnds[key] = LinkEnd(name: name, message: reader.string() ?? "")
    }

    /// Removes what belongs to an earlier link if there is another link: the reason for its end, and its size of packets.
    /// Attributes that appear later contain that of their link.
    private mutating func forgetOldLink(at slot: Int, _ set: Device1.Fields) {
        let device = devices[slot].device
        guard device.isConnected || device.areServicesResolved else { return }
        if !linkEnds.isEmpty { linkEnds[devices[slot].key] = nil }
        guard set.contains(.isConnected), device.isConnected else { return }
        for index in devices[slot].attributes.indices { devices[slot].attributes[index].fields.remove(.mtu) }
    }
}

/// The reason for which a link ended, as the signal `Device1.Disconnected` contains it: from 5.83 on, between
/// `ServicesResolved` false and `Connected` false, when the last bearer of the device is down (`device_disconnected` in
/// `src/device.c`).
package struct LinkEnd: Hashable, Sendable {
    /// The D-Bus name, such as `org.bluez.Reason.Remote`.
    package let name: String
    package let message: String
}

/// An attribute of a message, with values that are not yet read.
private struct UnreadAttribute {
    let path: AttributePath
    let properties: MessageReader
}

extension MessageReader {
    /// Reads a text without moving past it.
    fileprivate func peekString<R>(_ body: (UnsafeBufferPointer<UInt8>) -> R) -> R? {
        var copy = self
        return copy.withString(body)
    }
}
