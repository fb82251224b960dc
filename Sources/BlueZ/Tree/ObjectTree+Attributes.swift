import DBus
package import Foundation

// MARK: - Reading

extension ObjectTree {
    /// How many attributes all devices have together.
    package var attributeCount: Int { attributes.count }

    /// The attributes of a device, in the order of their handles; empty also if there is no such device.
    package func attributes(of device: ObjectKey) -> [(key: AttributeKey, kind: AttributeKind)] {
        guard let slot = slot(of: device) else { return [] }
        return attributes.handles(device: slot).compactMap { handle in
            attributes.index(of: handle, device: slot).map { index in
                (AttributeKey(device: device, handle: handle), attributes[index].kind)
            }
        }
    }

    package func kind(of key: AttributeKey) -> AttributeKind? { index(of: key).map { attributes[$0].kind } }

    package func service(_ key: AttributeKey) -> GattAttribute? { attribute(key, .service) }
    package func characteristic(_ key: AttributeKey) -> GattAttribute? { attribute(key, .characteristic) }
    package func descriptor(_ key: AttributeKey) -> GattAttribute? { attribute(key, .descriptor) }

    package func attribute(_ key: AttributeKey, _ kind: AttributeKind) -> GattAttribute? {
        guard let index = index(of: key), attributes[index].kind == kind else { return nil }
        return attributes[index]
    }

    /// The newest value of a characteristic or a descriptor, also of a removed one until ``sweep()``, without a copy of its
    /// other properties; `nil` before BlueZ has one. Of a virtual battery the level.
    package func value(of key: AttributeKey) -> Data? {
        if key.isVirtual { return batteryLevel(of: key.device).map { Data([$0]) } }
        guard let index = index(of: key) else { return removedValues[key] }
        return attributes[index].fields.contains(.value) ? attributes[index].value : nil
    }

    mutating func keepValue(_ value: Data, of key: AttributeKey) {
        guard let index = index(of: key) else { return }
        attributes[index].value = value
        attributes[index].fields.insert(.value)
    }

    private func index(of key: AttributeKey) -> Int? {
        slot(of: key.device).flatMap { attributes.index(of: key.handle, device: $0) }
    }
}

// MARK: - Paths

extension ObjectTree {
    /// The attribute's path on the bus.
    package func path(of key: AttributeKey) -> String? { withPath(of: key) { String(cString: $0) } }

    /// Calls `body` with the attribute's path as C text, which takes no allocation; `nil` if there is no such attribute.
    func withPath<R>(of key: AttributeKey, _ body: (UnsafePointer<CChar>) -> R) -> R? {
        guard let index = index(of: key) else { return nil }
        guard let device = key.device.isForeign ? path(of: key.device) : "" else { return nil }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: PathWriter.capacity + device.utf8.count) {
            bytes in
            var writer = PathWriter(bytes)
            if !key.device.write(to: &writer) { for byte in device.utf8 { writer.append(byte) } }
            writer.append("/service", handle: attributes[index].service)
            switch attributes[index].kind {
            case .service: break
            case .characteristic: writer.append("/char", handle: key.handle)
            case .descriptor:
                writer.append("/char", handle: attributes[index].characteristic)
                writer.append("/desc", handle: key.handle)
            }
            writer.append(0)
            return bytes.withMemoryRebound(to: CChar.self) { text in
                text.baseAddress.map { body(UnsafePointer($0)) }
            }
        } ?? nil
    }

    /// The key that a path names, also if the device has no such attribute; `nil` if there is no such device.
    package func attributeKey(ofPath path: UnsafeBufferPointer<UInt8>) -> AttributeKey? { locate(path)?.key }

    private func locate(_ path: UnsafeBufferPointer<UInt8>) -> Location? {
        guard let path = AttributePath(path), let device = key(ofPath: path.device), let slot = slot(of: device) else {
            return nil
        }
        return Location(
            kind: path.kind, key: AttributeKey(device: device, handle: path.handle), service: path.service,
            characteristic: path.characteristic, slot: slot)
    }

    /// The index of the attribute with that very path: not of another one that has got its handle.
    private func index(of location: Location) -> Int? {
        guard let index = attributes.index(of: location.key.handle, device: location.slot),
            attributes[index].kind == location.kind, attributes[index].service == location.service,
            attributes[index].characteristic == location.characteristic
        else { return nil }
        return index
    }

    /// The contents of a path below a device of the tree.
    private struct Location {
        let kind: AttributeKind
        let key: AttributeKey
        let service: UInt16
        let characteristic: UInt16
        let slot: Int
    }
}

// MARK: - Messages

extension ObjectTree {
    /// Reads the properties of `PropertiesChanged`, of which only the bytes of a new value are copied.
    mutating func attributeChanged(
        _ kind: AttributeKind, _ signal: Message, _ reader: inout MessageReader, into changes: inout ChangeBuffer
    ) {
        guard let location = signal.withPath({ locate($0) }) ?? nil, location.kind == kind,
            let index = index(of: location)
        else { return }
        let fields = attributes[index].change(&reader, kind.table, ignored: &ignoredProperties).all
        if !fields.isEmpty { changes.append(.attributeChanged(location.key, fields)) }
    }

    /// Adds an attribute with all its properties, or replaces one of the same path. An object below a device
    /// without a handle in its path, and an attribute of an unknown device, are skipped and counted.
    /// - Returns: Its key.
    mutating func attributeAdded(
        _ kind: AttributeKind, path: UnsafeBufferPointer<UInt8>, _ reader: inout MessageReader,
        into changes: inout ChangeBuffer
    ) -> AttributeKey? {
        guard let location = locate(path), location.kind == kind else {
            ignoredObjects += 1
            return nil
        }
        let key = location.key
        var value = GattAttribute(kind, service: location.service, characteristic: location.characteristic)
        value.read(&reader, kind.table, ignored: &ignoredProperties)
        // BlueZ exports an empty value before there is one.
        if value.value?.isEmpty == true { value.fields.remove(.value) }
        guard let index = index(of: location) else {
            // Another attribute may have had the handle, if BlueZ has not signalled its removal.
            removeAttribute(key, at: location.slot, into: &changes)
            attributes.insert(value, key.handle, device: location.slot)
            changes.append(.attributeAdded(key, kind))
            return key
        }
        let old = attributes[index]
        guard old != value else { return key }
        attributes[index] = value
        var fields = old.fields.union(value.fields)
        // A value that is as before has not been notified.
        if kind == .characteristic, old.value == value.value { fields.remove(.value) }
        if !fields.isEmpty { changes.append(.attributeChanged(key, fields)) }
        return key
    }

    /// Stores the daemon's reply with the size of packets, which is that of the link, for all characteristics of a device.
    mutating func mtuRead(_ mtu: UInt16, of device: ObjectKey, into changes: inout ChangeBuffer) {
        for (key, kind) in attributes(of: device) where kind == .characteristic {
            guard let index = index(of: key), attributes[index].mtu != Int(mtu) else { continue }
            attributes[index].rawMTU = mtu
            attributes[index].fields.insert(.mtu)
            changes.append(.attributeChanged(key, .mtu))
        }
    }

    mutating func attributeRemoved(
        _ kind: AttributeKind, path: UnsafeBufferPointer<UInt8>, into changes: inout ChangeBuffer
    ) {
        guard let location = locate(path), location.kind == kind, index(of: location) != nil else { return }
        removeAttribute(location.key, at: location.slot, into: &changes)
    }

    private mutating func removeAttribute(_ key: AttributeKey, at slot: Int, into changes: inout ChangeBuffer) {
        guard let index = attributes.index(of: key.handle, device: slot) else { return }
        let kind = attributes[index].kind
        removedValues[key] = value(of: key)
        attributes.remove(key.handle, device: slot)
        changes.append(.attributeRemoved(key, kind))
    }

    /// Removes the attributes of a device, each before the one that contains it.
    mutating func removeAttributes(
        ofDeviceAt slot: Int, where isGone: (AttributeKey) -> Bool = { _ in true }, into changes: inout ChangeBuffer
    ) {
        for handle in attributes.handles(device: slot).reversed() {
            let key = AttributeKey(device: devices[slot].key, handle: handle)
            if isGone(key) { removeAttribute(key, at: slot, into: &changes) }
        }
    }
}
