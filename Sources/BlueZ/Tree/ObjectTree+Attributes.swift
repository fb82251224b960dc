import DBus
package import Foundation

// MARK: - Reading

extension ObjectTree {
    /// How many attributes all devices have together.
    package var attributeCount: Int { attributes.count }

    /// The services of a device, in the order of their handles; empty also where there is no such device.
    package func services(of device: ObjectKey) -> [AttributeKey] {
        keys(of: device) { $0.kind == .service }
    }

    /// The characteristics of a service, in the order of their handles.
    package func characteristics(of service: AttributeKey) -> [AttributeKey] {
        keys(of: service.device) {
            $0.kind == .characteristic && attributes.characteristics[$0.index].service == service.handle
        }
    }

    /// The descriptors of a characteristic, in the order of their handles.
    package func descriptors(of characteristic: AttributeKey) -> [AttributeKey] {
        keys(of: characteristic.device) {
            $0.kind == .descriptor && attributes.descriptors[$0.index].characteristic == characteristic.handle
        }
    }

    /// All attributes of a device with their kinds, in the order of their handles.
    package func attributes(of device: ObjectKey) -> [(key: AttributeKey, kind: AttributeKind)] {
        guard let slot = slot(of: device) else { return [] }
        return attributes.handles(device: slot).compactMap { handle in
            attributes.place(of: handle, device: slot).map {
                (AttributeKey(device: device, handle: handle), $0.kind)
            }
        }
    }

    private func keys(of device: ObjectKey, where isWanted: (AttributeStore.Place) -> Bool) -> [AttributeKey] {
        guard let slot = slot(of: device) else { return [] }
        return attributes.handles(device: slot).compactMap { handle in
            guard let place = attributes.place(of: handle, device: slot), isWanted(place) else { return nil }
            return AttributeKey(device: device, handle: handle)
        }
    }

    package func kind(of key: AttributeKey) -> AttributeKind? { place(of: key)?.kind }

    package func service(_ key: AttributeKey) -> GattService1? {
        guard let place = place(of: key), place.kind == .service else { return nil }
        return attributes.services[place.index]
    }

    package func characteristic(_ key: AttributeKey) -> GattCharacteristic1? {
        guard let place = place(of: key), place.kind == .characteristic else { return nil }
        return attributes.characteristics[place.index]
    }

    package func descriptor(_ key: AttributeKey) -> GattDescriptor1? {
        guard let place = place(of: key), place.kind == .descriptor else { return nil }
        return attributes.descriptors[place.index]
    }

    /// The newest value of a characteristic or a descriptor, without a copy of what else is known of it.
    package func value(of key: AttributeKey) -> Data? {
        guard let place = place(of: key) else { return nil }
        switch place.kind {
        case .service: return nil
        case .characteristic: return attributes.characteristics[place.index].value
        case .descriptor: return attributes.descriptors[place.index].value
        }
    }

    func place(of key: AttributeKey) -> AttributeStore.Place? {
        slot(of: key.device).flatMap { attributes.place(of: key.handle, device: $0) }
    }
}

// MARK: - Paths

extension ObjectTree {
    /// The attribute's path on the bus.
    package func path(of key: AttributeKey) -> String? { withPath(of: key) { String(cString: $0) } }

    /// The attribute's path as C text, written where no memory must be asked for; `nil` where there is no such attribute.
    func withPath<R>(of key: AttributeKey, _ body: (UnsafePointer<CChar>) -> R) -> R? {
        guard let place = place(of: key) else { return nil }
        guard let device = key.device.isForeign ? path(of: key.device) : "" else { return nil }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: PathWriter.capacity + device.utf8.count) {
            bytes in
            var writer = PathWriter(bytes)
            if !key.device.write(to: &writer) { for byte in device.utf8 { writer.append(byte) } }
            switch place.kind {
            case .service:
                writer.append("/service", handle: key.handle)
            case .characteristic:
                writer.append("/service", handle: attributes.characteristics[place.index].service)
                writer.append("/char", handle: key.handle)
            case .descriptor:
                writer.append("/service", handle: attributes.descriptors[place.index].service)
                writer.append("/char", handle: attributes.descriptors[place.index].characteristic)
                writer.append("/desc", handle: key.handle)
            }
            writer.append(0)
            return bytes.withMemoryRebound(to: CChar.self) { text in
                text.baseAddress.map { body(UnsafePointer($0)) }
            }
        } ?? nil
    }

    /// The key of an attribute by its path, whether there is such an attribute or not; its device must be there.
    package func attributeKey(ofPath path: UnsafeBufferPointer<UInt8>) -> AttributeKey? { locate(path)?.key }

    private func locate(_ path: UnsafeBufferPointer<UInt8>) -> Location? {
        guard let path = AttributePath(path), let device = key(ofPath: path.device), let slot = slot(of: device) else {
            return nil
        }
        return Location(
            kind: path.kind, key: AttributeKey(device: device, handle: path.handle), service: path.service,
            characteristic: path.characteristic, slot: slot)
    }

    /// Where that very path's attribute lies: not another one that has got its handle.
    private func place(of location: Location) -> AttributeStore.Place? {
        guard let place = attributes.place(of: location.key.handle, device: location.slot), place.kind == location.kind
        else { return nil }
        switch place.kind {
        case .service: return place
        case .characteristic:
            return attributes.characteristics[place.index].service == location.service ? place : nil
        case .descriptor:
            let descriptor = attributes.descriptors[place.index]
            let isSame = descriptor.service == location.service && descriptor.characteristic == location.characteristic
            return isSame ? place : nil
        }
    }

    /// What a path says, once its device was found.
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
    /// The reader stands at the properties of `PropertiesChanged`. Nothing but the new value's bytes is copied on this way.
    mutating func attributeChanged(
        _ kind: AttributeKind, _ signal: Message, _ reader: inout MessageReader, into changes: inout ChangeBuffer
    ) {
        guard let location = signal.withPath({ locate($0) }) ?? nil, location.kind == kind,
            let place = place(of: location)
        else { return }
        let fields =
            switch kind {
            case .service: attributes.services[place.index].change(&reader, ignored: &ignoredProperties)
            case .characteristic: attributes.characteristics[place.index].change(&reader, ignored: &ignoredProperties)
            case .descriptor: attributes.descriptors[place.index].change(&reader, ignored: &ignoredProperties)
            }
        if !fields.isEmpty { changes.append(.attributeChanged(location.key, fields)) }
    }

    /// An attribute with all its properties, of which there may be one already. Objects below a device whose paths do not
    /// say handles, and attributes of devices that nobody told of, are passed over and counted.
    /// - Returns: Its key.
    @discardableResult
    mutating func attributeAdded(
        _ kind: AttributeKind, path: UnsafeBufferPointer<UInt8>, _ reader: inout MessageReader,
        into changes: inout ChangeBuffer
    ) -> AttributeKey? {
        guard let location = locate(path), location.kind == kind else {
            ignoredObjects += 1
            return nil
        }
        switch kind {
        case .service:
            let (value, fields) = GattService1().reading(&reader, ignored: &ignoredProperties)
            add(location, fields, into: &changes, insert: { $0.services.insert(value) }) {
                replace(&$0.services[$1], with: value)
            }
        case .characteristic:
            let (value, fields) = GattCharacteristic1(service: location.service)
                .reading(&reader, ignored: &ignoredProperties)
            add(location, fields, into: &changes, insert: { $0.characteristics.insert(value) }) {
                // A value that is as before has not been notified.
                let isOldValue = $0.characteristics[$1].value == value.value
                return replace(&$0.characteristics[$1], with: value).subtracting(isOldValue ? .value : [])
            }
        case .descriptor:
            let (value, fields) = GattDescriptor1(service: location.service, characteristic: location.characteristic)
                .reading(&reader, ignored: &ignoredProperties)
            add(location, fields, into: &changes, insert: { $0.descriptors.insert(value) }) {
                replace(&$0.descriptors[$1], with: value)
            }
        }
        return location.key
    }

    private mutating func add(
        _ location: Location, _ fields: AttributeFields, into changes: inout ChangeBuffer,
        insert: (inout AttributeStore) -> Int, replace: (inout AttributeStore, Int) -> AttributeFields
    ) {
        let key = location.key
        if let place = place(of: location) {
            let changed = replace(&attributes, place.index)
            if !changed.isEmpty { changes.append(.attributeChanged(key, changed)) }
            return
        }
        // Another one may have had the handle, if its removal was not told.
        removeAttribute(key, at: location.slot, into: &changes)
        attributes.insert(
            key.handle, device: location.slot, at: AttributeStore.Place(location.kind, insert(&attributes)))
        changes.append(.attributeAdded(key, location.kind))
    }

    mutating func attributeRemoved(
        _ kind: AttributeKind, path: UnsafeBufferPointer<UInt8>, into changes: inout ChangeBuffer
    ) {
        guard let location = locate(path), location.kind == kind, place(of: location) != nil else { return }
        removeAttribute(location.key, at: location.slot, into: &changes)
    }

    private mutating func removeAttribute(_ key: AttributeKey, at slot: Int, into changes: inout ChangeBuffer) {
        guard let place = attributes.place(of: key.handle, device: slot) else { return }
        attributes.remove(key.handle, device: slot)
        changes.append(.attributeRemoved(key, place.kind))
    }

    /// Removes the attributes of a device, what contains others last.
    mutating func removeAttributes(
        ofDeviceAt slot: Int, where isGone: (AttributeKey) -> Bool = { _ in true }, into changes: inout ChangeBuffer
    ) {
        for handle in attributes.handles(device: slot).reversed() {
            let key = AttributeKey(device: devices[slot].key, handle: handle)
            if isGone(key) { removeAttribute(key, at: slot, into: &changes) }
        }
    }
}

/// - Returns: What was there and what is there now; nothing where both are the same.
private func replace<A: Attribute & Equatable>(_ place: inout A, with value: A) -> AttributeFields {
    guard place != value else { return [] }
    defer { place = value }
    return place.fields.union(value.fields)
}
