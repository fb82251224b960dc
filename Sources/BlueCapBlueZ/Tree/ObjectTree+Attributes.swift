import BlueCapDBus
package import Foundation

// MARK: - Reading

extension ObjectTree {
    /// How many attributes all devices have together.
    package var attributeCount: Int { devices.reduce(0) { $0 + $1.attributes.count } }

    /// The attributes of a device, in the order of their handles; empty also if there is no such device.
    package func attributes(of device: ObjectKey) -> [GattAttribute] {
        slot(of: device).map { devices[$0].attributes } ?? []
    }

    package func kind(of key: AttributeKey) -> AttributeKind? { place(of: key).map { self[$0].kind } }

    package func attribute(_ key: AttributeKey) -> GattAttribute? { place(of: key).map { self[$0] } }

    /// The newest value of a characteristic or a descriptor, also of a removed one until ``sweep()``, without a copy of its
    /// other properties; `nil` before BlueZ has one. Of a virtual battery the level.
    package func value(of key: AttributeKey) -> Data? {
        if key.isVirtual { return batteryLevel(of: key.device).map { Data([$0]) } }
        guard let place = place(of: key) else { return removedValues[key] }
        return self[place].fields.contains(.value) ? self[place].value : nil
    }

    mutating func keepValue(_ value: Data, of key: AttributeKey) {
        guard let place = place(of: key) else { return }
        self[place].value = value
        self[place].fields.insert(.value)
    }

    /// The attribute's path on the bus.
    package func path(of key: AttributeKey) -> String? { withPath(of: key) { path, _ in String(cString: path) } }

    /// Calls `body` with the attribute's path as C text, which takes no allocation, and its kind; `nil` if there is no such
    /// attribute.
    func withPath<R>(of key: AttributeKey, _ body: (UnsafePointer<CChar>, AttributeKind) -> R) -> R? {
        guard let place = place(of: key) else { return nil }
        let kind = self[place].kind
        return PathWriter.withText(
            { writer in
                key.device.write(to: &writer)
                writer.append("/service", handle: self[place].service)
                switch kind {
                case .service: break
                case .characteristic: writer.append("/char", handle: key.handle)
                case .descriptor:
                    writer.append("/char", handle: self[place].characteristic)
                    writer.append("/desc", handle: key.handle)
                }
            }, { body($0, kind) })
    }
}

// MARK: - Places

extension ObjectTree {
    /// The place of a device, and that of an attribute among those of the device.
    private typealias Place = (slot: Int, index: Int)

    private subscript(place: Place) -> GattAttribute {
        _read { yield devices[place.slot].attributes[place.index] }
        _modify { yield &devices[place.slot].attributes[place.index] }
    }

    private func place(of key: AttributeKey) -> Place? {
        guard let slot = slot(of: key.device) else { return nil }
        let index = devices[slot].attributes.position(of: key.handle)
        guard index < devices[slot].attributes.count, devices[slot].attributes[index].handle == key.handle else {
            return nil
        }
        return (slot, index)
    }

    /// The place of the attribute with that very path: not of another one that has got its handle.
    private func place(of path: AttributePath) -> Place? {
        place(of: path.key).flatMap { self[$0].isAt(path) ? $0 : nil }
    }
}

extension [GattAttribute] {
    /// The place of the attribute with that handle, or where it would be.
    fileprivate func position(of handle: UInt16) -> Int {
        withUnsafeBufferPointer { attributes in
            var (low, high) = (0, attributes.count)
            while low < high {
                let middle = (low + high) / 2
                if attributes[middle].handle < handle { low = middle + 1 } else { high = middle }
            }
            return low
        }
    }
}

// MARK: - Messages

extension ObjectTree {
    /// Reads the properties of `PropertiesChanged`, of which only the bytes of a new value are copied.
    mutating func attributeChanged(
        _ kind: AttributeKind, _ signal: Message, _ reader: inout MessageReader, into changes: inout [Change]
    ) {
        guard let path = signal.withPath({ AttributePath($0) }) ?? nil, path.kind == kind,
            let place = place(of: path)
        else { return }
        let fields = self[place].change(&reader, kind.table).all
        if !fields.isEmpty { changes.append(.attributeChanged(path.key, fields)) }
    }

    /// Adds an attribute with all its properties, or replaces one of the same path. An attribute of an unknown device is skipped.
    mutating func attributeAdded(
        _ path: AttributePath, _ reader: inout MessageReader, into changes: inout [Change]
    ) {
        guard let slot = slot(of: path.key.device) else { return }
        var value = GattAttribute(path)
        value.read(&reader, path.kind.table)
        // BlueZ exports an empty value before there is one.
        if value.value?.isEmpty == true { value.fields.remove(.value) }
        guard let place = place(of: path) else {
            // Another attribute may have had the handle, if BlueZ has not signalled its removal.
            removeAttribute(path.key, into: &changes)
            devices[slot].attributes.insert(value, at: devices[slot].attributes.position(of: value.handle))
            return changes.append(.attributeAdded(path.key, path.kind))
        }
        let old = self[place]
        guard old != value else { return }
        self[place] = value
        var fields = old.fields.union(value.fields)
        // A value that is as before has not been notified.
        if path.kind == .characteristic, old.value == value.value { fields.remove(.value) }
        if !fields.isEmpty { changes.append(.attributeChanged(path.key, fields)) }
    }

    /// Stores the daemon's reply with the size of packets, which is that of the link, for all characteristics of a device.
    mutating func mtuRead(_ mtu: UInt16, of device: ObjectKey, into changes: inout [Change]) {
        guard let slot = slot(of: device) else { return }
        for index in devices[slot].attributes.indices {
            let attribute = devices[slot].attributes[index]
            guard attribute.kind == .characteristic, attribute.mtu != Int(mtu) else { continue }
            devices[slot].attributes[index].rawMTU = mtu
            devices[slot].attributes[index].fields.insert(.mtu)
            changes.append(.attributeChanged(AttributeKey(device: device, handle: attribute.handle), .mtu))
        }
    }

    mutating func attributeRemoved(_ path: AttributePath, into changes: inout [Change]) {
        if place(of: path) != nil { removeAttribute(path.key, into: &changes) }
    }

    private mutating func removeAttribute(_ key: AttributeKey, into changes: inout [Change]) {
        guard let place = place(of: key) else { return }
        removedValues[key] = value(of: key)
        let kind = devices[place.slot].attributes.remove(at: place.index).kind
        changes.append(.attributeRemoved(key, kind))
    }

    /// Removes the attributes of a device, each before the one that contains it.
    mutating func removeAttributes(
        ofDeviceAt slot: Int, where isGone: (AttributeKey) -> Bool = { _ in true }, into changes: inout [Change]
    ) {
        for attribute in devices[slot].attributes.reversed() {
            let key = AttributeKey(device: devices[slot].key, handle: attribute.handle)
            if isGone(key) { removeAttribute(key, into: &changes) }
        }
    }
}
