package import DBus
import GATT

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

    init?(name: UnsafeBufferPointer<UInt8>) {
        if name.equals(Device1.table.interface) {
            self = .device
        } else if name.equals(AttributeKind.characteristic.table.interface) {
            self = .attribute(.characteristic)
        } else if name.equals(AttributeKind.descriptor.table.interface) {
            self = .attribute(.descriptor)
        } else if name.equals(AttributeKind.service.table.interface) {
            self = .attribute(.service)
        } else if name.equals(Adapter1.table.interface) {
            self = .adapter
        } else if name.equals("org.bluez.Battery1") {
            self = .battery
        } else if name.equals("org.bluez.Bearer.LE1") {
            self = .bearer
        } else {
            let extra = Adapter1.Interfaces(name: name)
            guard !extra.isEmpty else { return nil }
            self = .adapterExtra(extra)
        }
    }
}

extension ObjectTree {
    /// Applies a signal of the daemon, and appends the changes.
    package mutating func apply(_ signal: Message, into changes: inout ChangeBuffer) {
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
    package mutating func load(_ reply: Message, into changes: inout ChangeBuffer) {
        var reader = reply.reader
        var listed = Set<ObjectKey>()
        var attributes: [UnreadAttribute] = []
        reader.dictionary { entry in
            if let key = object(&entry, into: &changes, later: &attributes) { listed.insert(key) }
        }
        let listedAttributes = read(attributes, into: &changes)
        if isLoaded {
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
    package mutating func clear(into changes: inout ChangeBuffer) {
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
    private mutating func propertiesChanged(_ signal: Message, into changes: inout ChangeBuffer) {
        var reader = signal.reader
        guard let interface = reader.withString({ Interface(name: $0) }) ?? nil else { return }
        if case .attribute(let kind) = interface { return attributeChanged(kind, signal, &reader, into: &changes) }
        guard let key = signal.withPath({ key(ofPath: $0) }) ?? nil else { return }
        switch interface {
        case .device:
            guard let slot = slot(of: key) else { return }
            deviceChanged(at: slot, &reader, into: &changes)
        case .adapter:
            guard let place = adapters.index(forKey: key) else { return }
            adapterChanged(at: place, &reader, into: &changes)
        case .battery:
            batteryChanged(key, &reader, into: &changes)
        case .adapterExtra(let extra):
            guard let place = adapters.index(forKey: key) else { return }
            adapters.values[place].adapter.take(extra, &reader)
            settleCapabilities(of: key, into: &changes)
        case .bearer, .attribute:
            return
        }
    }

    private mutating func deviceChanged(at slot: Int, _ reader: inout MessageReader, into changes: inout ChangeBuffer) {
        let (set, all) = devices[slot].device.change(&reader, Device1.table, ignored: &ignoredProperties)
        guard !all.isEmpty else { return }
        settle(slot, all)
        if !set.isDisjoint(with: [.isConnected, .areServicesResolved]) { forgetOldLinkEnd(at: slot) }
        changes.append(.deviceChanged(handle(slot: slot), all, isAdvertised: !set.isDisjoint(with: .ofAdvertisements)))
    }

    /// Stores the daemon's reply whether a device is connected. The change is reported also if the value is as before.
    mutating func connectionRead(_ isConnected: Bool, of key: ObjectKey, into changes: inout ChangeBuffer) {
        guard let slot = slot(of: key) else { return }
        devices[slot].device.fields.insert(.isConnected)
        if isConnected {
            devices[slot].device.truths.insert(.isConnected)
            forgetOldLinkEnd(at: slot)
        } else {
            devices[slot].device.truths.remove(.isConnected)
        }
        changes.append(.deviceChanged(handle(slot: slot), .isConnected, isAdvertised: false))
    }

    private mutating func adapterChanged(
        at place: Dictionary<ObjectKey, AdapterEntry>.Index, _ reader: inout MessageReader,
        into changes: inout ChangeBuffer
    ) {
        let fields = adapters.values[place].adapter.change(&reader, Adapter1.table, ignored: &ignoredProperties).all
        guard !fields.isEmpty else { return }
        let key = adapters[place].key
        changes.append(.adapterChanged(key, fields))
        settleCapabilities(of: key, into: &changes)
    }

    /// Stores values in their smallest form after some fields were set.
    private mutating func settle(_ slot: Int, _ fields: Device1.Fields) {
        if !fields.isDisjoint(with: [.name, .alias, .address]) { devices[slot].device.settleAlias() }
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
        _ reader: inout MessageReader, into changes: inout ChangeBuffer, later: inout [UnreadAttribute]
    ) -> ObjectKey? {
        let pathReader = reader
        reader.skip()
        var known: ObjectKey?
        var isNewAdapter = false
        var hasNewExtra = false
        reader.dictionary { entry in
            guard let interface = entry.withString({ Interface(name: $0) }) ?? nil else { return }
            if case .attribute(let kind) = interface {
                return later.append(UnreadAttribute(kind: kind, path: pathReader, properties: entry))
            }
            guard let key = pathReader.peekString({ makeKey(ofPath: $0) }) else { return }
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

    /// Adds attributes, each after the one that contains it: `GetManagedObjects` has no order.
    /// - Returns: Their keys.
    @discardableResult
    private mutating func read(_ unread: [UnreadAttribute], into changes: inout ChangeBuffer) -> Set<AttributeKey> {
        var keys = Set<AttributeKey>()
        let sorted = unread.count > 1 ? unread.sorted { $0.handle < $1.handle } : unread
        for attribute in sorted {
            var properties = attribute.properties
            let key = attribute.path.peekString {
                attributeAdded(attribute.kind, path: $0, &properties, into: &changes)
            }
            if let key = key ?? nil, unread.count > 1 { keys.insert(key) }
        }
        return keys
    }

    private mutating func deviceAdded(
        _ key: ObjectKey, _ reader: inout MessageReader, into changes: inout ChangeBuffer
    ) {
        var device = Device1(address: key.address ?? BluetoothAddress(rawValue: 0), adapter: adapter(above: key))
        device.read(&reader, Device1.table, ignored: &ignoredProperties)
        let isAdvertised = device.fields.contains(.rssi)
        if device.fields.contains(.hasCablePairing) { learn(into: &changes) { $0.hasCablePairing = true } }
        if let slot = slot(of: key) {
            device.isRefused = devices[slot].device.isRefused
            // All objects were read once more: an unchanged device is not reported.
            guard devices[slot].device != device else { return }
            let fields = devices[slot].device.fields.union(device.fields)
            devices[slot].device = device
            settle(slot, fields)
            changes.append(.deviceChanged(handle(slot: slot), fields, isAdvertised: isAdvertised))
        } else {
            let handle = insertDevice(key, device)
            settle(Int(handle.slot), device.fields)
            changes.append(.deviceAdded(handle, isAdvertised: isAdvertised))
        }
    }

    /// The adapter that a device belongs to if it has no property `Adapter`.
    private func adapter(above key: ObjectKey) -> ObjectKey {
        if let adapter = key.adapter { return adapter }
        guard var path = path(of: key) else { return key }
        while let slash = path.lastIndex(of: "/"), slash != path.startIndex {
            path = String(path[..<slash])
            if let above = path.withUTF8({ self.key(ofPath: $0) }), adapters[above] != nil { return above }
        }
        return key
    }

    /// - Returns: Whether the adapter is new.
    private mutating func adapterAdded(
        _ key: ObjectKey, _ reader: inout MessageReader, into changes: inout ChangeBuffer
    ) -> Bool {
        var adapter = Adapter1()
        adapter.read(&reader, Adapter1.table, ignored: &ignoredProperties)
        let old = adapters[key]
        // The interfaces of an object come in any order: the others may have come before Adapter1 itself.
        adapter.keepExtras(of: old?.adapter)
        adapters[key] = AdapterEntry(adapter: adapter, isAdapter: true)
        guard let old, old.isAdapter else {
            changes.append(.adapterAdded(key))
            return true
        }
        changes.append(.adapterChanged(key, old.adapter.fields.union(adapter.fields)))
        return false
    }
}

// MARK: - Removed objects

extension ObjectTree {
    /// `o as`: the object and its removed interfaces.
    private mutating func interfacesRemoved(_ signal: Message, into changes: inout ChangeBuffer) {
        var reader = signal.reader
        let pathReader = reader
        reader.skip()
        reader.array { element in
            guard let interface = element.withString({ Interface(name: $0) }) ?? nil else { return }
            if case .attribute(let kind) = interface {
                pathReader.peekString { attributeRemoved(kind, path: $0, into: &changes) }
                return
            }
            guard let key = pathReader.peekString({ key(ofPath: $0) }) ?? nil else { return }
            switch interface {
            case .device:
                if let slot = slot(of: key) { removeDevice(at: slot, into: &changes) }
            case .adapter:
                if adapters[key]?.isAdapter == true { removeAdapters([key], into: &changes) }
            case .adapterExtra(let extra):
                guard let place = adapters.index(forKey: key) else { return }
                adapters.values[place].adapter.remove(extra)
                changes.append(.adapterChanged(key, .interfaces))
                settleCapabilities(of: key, into: &changes)
            case .battery:
                if batteries.removeValue(forKey: key) != nil { reportBattery(key, into: &changes) }
            case .bearer, .attribute:
                return
            }
        }
    }

    private mutating func removeDevice(at slot: Int, into changes: inout ChangeBuffer) {
        removeAttributes(ofDeviceAt: slot, into: &changes)
        changes.append(.deviceRemoved(handle(slot: slot)))
        removeDevice(slot: slot)
    }

    /// Removes adapters, after their devices, whether the daemon signals the removal of each device or not.
    private mutating func removeAdapters(_ keys: [ObjectKey], into changes: inout ChangeBuffer) {
        guard !keys.isEmpty else { return }
        var slots: [ObjectKey: [Int]] = [:]
        if deviceCount > 0 {
            let gone = Set(keys)
            for slot in devices.indices where devices[slot].isLive && gone.contains(devices[slot].device.adapter) {
                slots[devices[slot].device.adapter, default: []].append(slot)
            }
        }
        for key in keys {
            for slot in slots[key] ?? [] { removeDevice(at: slot, into: &changes) }
            adapters[key] = nil
            changes.append(.adapterRemoved(key))
            removeForeignPath(of: key)
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
        _ key: ObjectKey, _ reader: inout MessageReader, into changes: inout ChangeBuffer
    ) {
        var level: UInt8?
        reader.dictionary { entry in
            guard entry.withString({ $0.equals("Percentage") }) == true else { return entry.skip() }
            level = entry.variant { $0.byte() }
            if level == nil { ignoredProperties += 1 }
        }
        guard key.isDevice, let level else { return }
        batteries[key] = level
        reportBattery(key, into: &changes)
    }

    private func reportBattery(_ key: ObjectKey, into changes: inout ChangeBuffer) {
        // The interfaces of an object have no order: the battery may be read before its device is added.
        guard let slot = slot(of: key) else { return }
        changes.append(.deviceChanged(handle(slot: slot), .battery, isAdvertised: false))
    }

    /// The reason for which the last link of a device ended; `nil` if the daemon has not signalled one, and while there is
    /// a link.
    package func linkEnd(of handle: DeviceHandle) -> LinkEnd? {
        guard !linkEnds.isEmpty else { return nil }
        return key(of: handle).flatMap { linkEnds[$0] }
    }

    /// Reads the signal `Device1.Disconnected`, `s s`: a reason and its text.
    private mutating func linkEnded(_ signal: Message) {
        guard let key = signal.withPath({ key(ofPath: $0) }) ?? nil, slot(of: key) != nil else { return }
        var reader = signal.reader
        guard let name = reader.string() else { return }
        linkEnds[key] = LinkEnd(name: name, message: reader.string() ?? "")
    }

    /// Removes the reason of an earlier link if there is another link.
    private mutating func forgetOldLinkEnd(at slot: Int) {
        guard !linkEnds.isEmpty else { return }
        let device = devices[slot].device
        if device.isConnected || device.areServicesResolved { linkEnds[devices[slot].key] = nil }
    }
}

/// The reason for which a link ended, as the signal `Device1.Disconnected` contains it: from 5.83 on, between
/// `ServicesResolved` false and `Connected` false, when the last bearer of the device is down (`device_disconnected` in
/// `src/device.c`).
package struct LinkEnd: Hashable, Sendable {
    /// The D-Bus name, such as `org.bluez.Reason.Remote`.
    package let name: String
    package let message: String

    package init(name: String, message: String) {
        self.name = name
        self.message = message
    }
}

/// An attribute of a message, with values that are not yet read.
private struct UnreadAttribute {
    let kind: AttributeKind
    let path: MessageReader
    let properties: MessageReader

    /// An attribute that contains others has a lower handle than they.
    var handle: UInt16 { path.peekString { AttributePath($0)?.handle } as? UInt16 ?? 0 }
}

extension MessageReader {
    /// Reads a text without moving past it.
    @discardableResult
    fileprivate func peekString<R>(_ body: (UnsafeBufferPointer<UInt8>) -> R) -> R? {
        var copy = self
        return copy.withString(body)
    }
}
