import Foundation
import GATT

/// The objects of `bluetoothd` as values, kept current by its signals: ``apply(_:into:)`` returns the changes of a signal.
///
/// It has no socket, no clock and no lock, and cannot be copied by accident: one exists for each bus, on its loop. A device
/// takes one place in an array. A signal finds it by a number made from its path, and changes its fields in place.
package struct ObjectTree: ~Copyable {
    struct AdapterEntry {
        var adapter: Adapter1
        /// False while the object has only other interfaces.
        var isAdapter: Bool
    }

    struct DeviceEntry {
        var device: Device1
        var key: ObjectKey
        var generation: UInt32 = 0
        var isLive = false
    }

    var adapters: [ObjectKey: AdapterEntry] = [:]
    var devices: [DeviceEntry] = []
    private var freeSlots: [UInt32] = []
    private var removedSlots: [UInt32] = []
    private var slots = SlotTable()
    private var foreign = ForeignPaths()
    var lists = SharedLists()
    var attributes = AttributeStore()
    /// The newest values of attributes that were removed, until ``sweep()``.
    var removedValues: [AttributeKey: Data] = [:]
    /// The battery levels in percent, of the few devices that have one.
    var batteries: [ObjectKey: UInt8] = [:]
    /// Why the last link of a device ended, for devices that have not connected since.
    var linkEnds: [ObjectKey: LinkEnd] = [:]
    /// What was seen of bonds. They outlive the devices, and the daemon.
    var notes: [BondNote] = []
    /// The notes whose devices have another address since the store received them.
    var movedNotes: [(old: BondNote, new: BondNote)] = []
    /// Signs of the daemon's version, until it is gone.
    var hints = DaemonHints()

    /// Whether the reply with all objects was read. Earlier signals are skipped: the daemon sent them before the reply,
    /// which contains their changes, since one sender's messages arrive in order.
    package internal(set) var isLoaded = false
    /// The number of properties that were skipped because they had an unexpected type.
    package internal(set) var ignoredProperties = 0
    /// The number of attributes that were skipped because their path does not contain a device of the tree and a handle.
    package internal(set) var ignoredObjects = 0

    package init() {}

    // MARK: Adapters

    /// The adapters, by number.
    package var adapterKeys: [ObjectKey] {
        adapters.filter(\.value.isAdapter).map(\.key).sorted { $0.rawValue < $1.rawValue }
    }

    package subscript(adapter key: ObjectKey) -> Adapter1? {
        guard let entry = adapters[key], entry.isAdapter else { return nil }
        return entry.adapter
    }

    // MARK: Devices

    package var deviceCount: Int { slots.count }
    /// One more than the highest number a ``DeviceHandle/slot`` can have now.
    package var slotCount: Int { devices.count }

    package func handle(of key: ObjectKey) -> DeviceHandle? {
        slots.slot(of: key).map { handle(slot: $0) }
    }

    /// Whether the device is still there, or is just being reported as removed.
    package func contains(_ handle: DeviceHandle) -> Bool {
        Int(handle.slot) < devices.count && devices[Int(handle.slot)].generation == handle.generation
    }

    private func requireLife(of handle: DeviceHandle) {
        precondition(
            contains(handle),
            "A device was read after it was removed: forget a DeviceHandle when Change.deviceRemoved comes.")
    }

    /// The values of a device. Read single fields through this: it does not copy the whole.
    ///
    /// Traps when the device was removed: keep a handle no longer than until ``Change/deviceRemoved(_:)``.
    package subscript(handle: DeviceHandle) -> Device1 {
        _read {
            requireLife(of: handle)
            yield devices[Int(handle.slot)].device
        }
    }

    /// The adapter that found a device. Traps as the subscript does.
    package func adapter(of handle: DeviceHandle) -> ObjectKey {
        requireLife(of: handle)
        return devices[Int(handle.slot)].device.adapter
    }

    /// The adapter that found a device; `nil` if there is no such device.
    func adapter(of key: ObjectKey) -> ObjectKey? { slot(of: key).map { devices[$0].device.adapter } }

    /// Reads several fields of a device in place. Traps as the subscript does.
    package func read(_ handle: DeviceHandle, _ body: (borrowing Device1) -> Void) {
        requireLife(of: handle)
        devices.withUnsafeBufferPointer { body($0[Int(handle.slot)].device) }
    }

    /// Reads a device in place, also a removed one until ``sweep()``. `nil` if there is none.
    func read<R>(_ key: ObjectKey, _ body: (borrowing Device1) -> R?) -> R? {
        guard let slot = slot(of: key) ?? removedSlots.lazy.map({ Int($0) }).last(where: { devices[$0].key == key })
        else { return nil }
        return devices.withUnsafeBufferPointer { body($0[slot].device) }
    }

    /// Reads each device of an adapter in place.
    package func forEachDevice(on adapter: ObjectKey, _ body: (ObjectKey, borrowing Device1) -> Void) {
        devices.withUnsafeBufferPointer { devices in
            for index in devices.indices where devices[index].isLive && devices[index].device.adapter == adapter {
                body(devices[index].key, devices[index].device)
            }
        }
    }

    /// The key of a device, which outlives it: when it comes back, it has the same one.
    package func key(of handle: DeviceHandle) -> ObjectKey? {
        contains(handle) ? devices[Int(handle.slot)].key : nil
    }

    /// Calls `body` with each device.
    package func forEachDevice(_ body: (DeviceHandle) -> Void) {
        for slot in devices.indices where devices[slot].isLive { body(handle(slot: slot)) }
    }

    // MARK: Paths

    /// The object's path on the bus, for calls to it.
    package func path(of key: ObjectKey) -> String? { key.path ?? foreign.path(of: key) }

    /// The key of an object that is in the tree, or would have BlueZ's own form of path.
    package func key(ofPath path: UnsafeBufferPointer<UInt8>) -> ObjectKey? {
        ObjectKey(path: path) ?? foreign.key(of: path)
    }

    /// The key of an object that is about to enter the tree.
    mutating func makeKey(ofPath path: UnsafeBufferPointer<UInt8>) -> ObjectKey {
        ObjectKey(path: path) ?? foreign.makeKey(of: path)
    }

    // MARK: Places

    func handle(slot: Int) -> DeviceHandle {
        DeviceHandle(slot: UInt32(slot), generation: devices[slot].generation)
    }

    func slot(of key: ObjectKey) -> Int? { slots.slot(of: key) }

    mutating func insertDevice(_ key: ObjectKey, _ device: Device1) -> DeviceHandle {
        let slot: Int
        if let free = freeSlots.popLast() {
            slot = Int(free)
            devices[slot].device = device
            devices[slot].key = key
            devices[slot].isLive = true
        } else {
            slot = devices.count
            devices.append(DeviceEntry(device: device, key: key, isLive: true))
        }
        slots.insert(key, slot: slot)
        return handle(slot: slot)
    }

    /// The device can be read until ``sweep()``.
    mutating func removeDevice(slot: Int) {
        slots.remove(devices[slot].key)
        batteries[devices[slot].key] = nil
        linkEnds[devices[slot].key] = nil
        devices[slot].isLive = false
        removedSlots.append(UInt32(slot))
    }

    mutating func removeForeignPath(of key: ObjectKey) {
        if key.isForeign { foreign.remove(key) }
    }

    /// Frees the places of removed devices and the values of removed attributes. To be called after the changes were reported,
    /// before the next message.
    package mutating func sweep() {
        removedValues = [:]
        guard !removedSlots.isEmpty else { return }
        for slot in removedSlots {
            devices[Int(slot)].generation &+= 1
            devices[Int(slot)].device = Device1(address: BluetoothAddress(rawValue: 0), adapter: devices[Int(slot)].key)
            removeForeignPath(of: devices[Int(slot)].key)
        }
        freeSlots.append(contentsOf: removedSlots)
        removedSlots.removeAll(keepingCapacity: removedSlots.capacity <= 64)
    }
}

/// Numbers for paths that do not have BlueZ's form.
struct ForeignPaths {
    private var numbers: [String: UInt64] = [:]
    private var paths: [UInt64: String] = [:]
    private var next: UInt64 = 0

    func key(of path: UnsafeBufferPointer<UInt8>) -> ObjectKey? {
        guard !numbers.isEmpty else { return nil }
        return numbers[String(decoding: path, as: UTF8.self)].map { ObjectKey(foreign: $0) }
    }

    mutating func makeKey(of path: UnsafeBufferPointer<UInt8>) -> ObjectKey {
        if let key = key(of: path) { return key }
        let text = String(decoding: path, as: UTF8.self)
        defer { next += 1 }
        numbers[text] = next
        paths[next] = text
        return ObjectKey(foreign: next)
    }

    func path(of key: ObjectKey) -> String? { key.foreignNumber.flatMap { paths[$0] } }

    mutating func remove(_ key: ObjectKey) {
        guard let number = key.foreignNumber, let path = paths.removeValue(forKey: number) else { return }
        numbers[path] = nil
    }
}

/// One array for devices with the same services, since many devices are of the same few products.
struct SharedLists {
    private var lists = [[CBUUID]](repeating: [], count: 64)

    mutating func shared(_ list: [CBUUID]) -> [CBUUID] {
        guard let first = list.first else { return [] }
        let mixed = (first.high ^ first.low ^ UInt64(list.count)) &* 0x9E37_79B9_7F4A_7C15
        let place = Int(mixed >> 58)
        if lists[place] != list { lists[place] = list }
        return lists[place]
    }
}

/// A device's place in the tree, valid until the device is removed.
///
/// A small number, so that an observer can store its own values of devices in an array. Places are used again; the
/// generation distinguishes an earlier device from the present one.
package struct DeviceHandle: Hashable, Sendable {
    package let slot: UInt32
    package let generation: UInt32
}

/// A change of the tree.
package enum Change: Hashable, Sendable {
    case adapterAdded(ObjectKey)
    /// These properties were set or have gone.
    case adapterChanged(ObjectKey, Adapter1.Fields)
    case adapterRemoved(ObjectKey)
    /// `isAdvertised`: the device has an RSSI, so it advertises at this moment; otherwise BlueZ merely remembers it.
    case deviceAdded(DeviceHandle, isAdvertised: Bool)
    /// These properties were set or have gone. `isAdvertised`: the signal stems from an advertisement.
    case deviceChanged(DeviceHandle, Device1.Fields, isAdvertised: Bool)
    /// Its values can be read for the last time. Its attributes were reported as removed before.
    case deviceRemoved(DeviceHandle)
    /// The device and what contains the attribute are reported before it.
    case attributeAdded(AttributeKey, AttributeKind)
    /// These properties were set or have gone. Each value that arrives is one such change, never two in one.
    case attributeChanged(AttributeKey, AttributeFields)
    /// It cannot be read any more.
    case attributeRemoved(AttributeKey, AttributeKind)
}

/// The changes that a message brings: nearly always one, and then there is no array.
package struct ChangeBuffer {
    private var first: Change?
    private var others: [Change] = []

    package init() {}

    package var isEmpty: Bool { first == nil }

    package var changes: [Change] { first.map { [$0] + others } ?? [] }

    package mutating func append(_ change: Change) {
        if first == nil { first = change } else { others.append(change) }
    }

    /// Calls `body` with each change, in their order.
    func forEach(_ body: (Change) -> Void) {
        guard let first else { return }
        body(first)
        for change in others { body(change) }
    }

    package mutating func removeAll() { self = ChangeBuffer() }
}
