import BlueCapFutures
import Foundation
import BlueCapGATT

/// The objects of `bluetoothd` as values, kept current by its signals: ``apply(_:into:)`` returns the changes of a signal.
///
/// It has no socket, no clock and no lock, and cannot be copied by accident: one exists for each bus, on its loop. A device
/// takes one place in an array. A signal finds it by a number made from its path, and changes its fields in place.
package struct ObjectTree: ~Copyable {
    struct DeviceEntry {
        var device: Device1
        // In the space that the alignment of the device leaves.
        var isLive = true
        let key: ObjectKey
        /// In the order of their handles.
        var attributes: [GattAttribute] = []
    }

    var adapters: [ObjectKey: Adapter1] = [:]
    var devices: [DeviceEntry] = []
    private var freeSlots: [Int] = []
    private var removedSlots: [Int] = []
    private var slots = SlotTable()
    var lists = SharedLists()
    /// The newest values of attributes that were removed, until ``sweep()``.
    var removedValues: [AttributeKey: Data] = [:]
    /// The battery levels in percent, of the few devices that have one.
    var batteries: [ObjectKey: UInt8] = [:]
    /// Why the last link of a device ended, for devices that have not connected since.
    var linkEnds: [ObjectKey: LinkEnd] = [:]
    /// What was seen of bonds. They outlive the devices, and the daemon.
    var notes: [BondNote] = []
    /// The changes that the store has not received.
    var changedNotes: [(old: BondNote, new: BondNote)] = []
    /// Signs of the daemon's version, until it is gone.
    var hints = DaemonHints()

    /// Whether the reply with all objects was read. Earlier signals are skipped: the daemon sent them before the reply,
    /// which contains their changes, since one sender's messages arrive in order.
    package internal(set) var isLoaded = false

    package init() {}

    // MARK: Adapters

    /// The adapters, by number.
    package var adapterKeys: [ObjectKey] {
        adapters.filter(\.value.isExported).map(\.key).ordered { $0.rawValue < $1.rawValue }
    }

    package subscript(adapter key: ObjectKey) -> Adapter1? {
        adapters[key].flatMap { $0.isExported ? $0 : nil }
    }

    // MARK: Devices

    package var deviceCount: Int { slots.count - removedSlots.count }
    package var deviceKeys: [ObjectKey] { devices.filter(\.isLive).map(\.key) }

    /// Whether BlueZ has the device. One that is just being reported as removed is not meant.
    package func contains(_ key: ObjectKey) -> Bool { slot(of: key) != nil }

    /// A copy of the values of a device; `nil` if BlueZ does not have it.
    package subscript(key: ObjectKey) -> Device1? { slot(of: key).map { devices[$0].device } }

    /// Reads a device in place, also a removed one until ``sweep()``. `nil` if there is none.
    // Inlinable, so that it is compiled with the type of the result.
    @inlinable @discardableResult
    package func read<R>(_ key: ObjectKey, _ body: (borrowing Device1) -> R?) -> R? {
        var result: R?
        withDevice(key) { result = body($0) }
        return result
    }

    @usableFromInline
    func withDevice(_ key: ObjectKey, _ body: (borrowing Device1) -> Void) {
        guard let slot = place(of: key) else { return }
        devices.withUnsafeBufferPointer { body($0[slot].device) }
    }

    /// Reads each device of an adapter in place.
    package func forEachDevice(on adapter: ObjectKey, _ body: (ObjectKey, borrowing Device1) -> Void) {
        devices.withUnsafeBufferPointer { devices in
            for index in devices.indices where devices[index].isLive && devices[index].key.adapter == adapter {
                body(devices[index].key, devices[index].device)
            }
        }
    }

    // MARK: Places

    func slot(of key: ObjectKey) -> Int? { place(of: key).flatMap { devices[$0].isLive ? $0 : nil } }

    /// The place of a device, also of a removed one until ``sweep()``.
    private func place(of key: ObjectKey) -> Int? { slots.slot(of: key.rawValue) { devices[$0].key.rawValue } }

    /// - Returns: The device's place.
    mutating func insertDevice(_ key: ObjectKey, _ device: Device1) -> Int {
        let entry = DeviceEntry(device: device, key: key)
        // The place of a device that has returned before it was swept, or a free one.
        let slot = place(of: key) ?? freeSlots.popLast() ?? devices.count
        if slot < devices.count { devices[slot] = entry } else { devices.append(entry) }
        removedSlots.removeAll { $0 == slot }
        slots.insert(key.rawValue, slot: slot) { devices[$0].key.rawValue }
        return slot
    }

    /// The device can be read until ``sweep()``.
    mutating func removeDevice(slot: Int) {
        batteries[devices[slot].key] = nil
        linkEnds[devices[slot].key] = nil
        devices[slot].isLive = false
        devices[slot].attributes = []
        removedSlots.append(slot)
    }

    /// Frees the places of removed devices and the values of removed attributes. To be called after the changes were reported,
    /// before the next message.
    package mutating func sweep() {
        removedValues = [:]
        for slot in removedSlots {
            slots.remove(devices[slot].key.rawValue) { devices[$0].key.rawValue }
            devices[slot].device = Device1(address: BluetoothAddress(rawValue: 0))
        }
        freeSlots += removedSlots
        removedSlots.removeAll(keepingCapacity: removedSlots.capacity <= 64)
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

/// A change of the tree.
package enum Change: Hashable, Sendable {
    case adapterAdded(ObjectKey)
    /// These properties were set or have gone.
    case adapterChanged(ObjectKey, Adapter1.Fields)
    case adapterRemoved(ObjectKey)
    /// `isAdvertised`: the device has an RSSI, so it advertises at this moment; otherwise BlueZ merely remembers it.
    case deviceAdded(ObjectKey, isAdvertised: Bool)
    /// These properties were set or have gone. `isAdvertised`: the signal stems from an advertisement.
    case deviceChanged(ObjectKey, Device1.Fields, isAdvertised: Bool)
    /// Its values can be read for the last time. Its attributes were reported as removed before.
    case deviceRemoved(ObjectKey)
    /// The device and what contains the attribute are reported before it.
    case attributeAdded(AttributeKey, AttributeKind)
    /// These properties were set or have gone. Each value that arrives is one such change, never two in one.
    case attributeChanged(AttributeKey, AttributeFields)
    /// It cannot be read any more.
    case attributeRemoved(AttributeKey, AttributeKind)
}
