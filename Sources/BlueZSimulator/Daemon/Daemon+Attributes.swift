import Foundation

/// Reading and writing (`src/gatt-client.c`).
extension Daemon {
    // MARK: Reading

    mutating func readValue(_ key: AttributeKey, offset: Int, call: CallID) throws(DaemonError) {
        guard links[key.device] != nil else { throw .notConnected }
        if let reading = reading(key) {
            // Who asks for the same gets the same answer.
            guard reading.offset == offset else { throw .underWay }
            return setReading(key) { $0?.calls.append(call) }
        }
        guard let handle = valueHandle(key) else { throw .failed("Failed to send read request") }
        let id = nextRequest()
        setReading(key) { $0 = ReadOperation(id: id, offset: offset, calls: [call]) }
        send(
            .read(handle: key.handle), AttributeRequest(id: id, kind: .read(handle: handle, offset: offset)), key.device
        )
    }

    private func reading(_ key: AttributeKey) -> ReadOperation? {
        tables[key.device]?.characteristics[key.handle]?.reading ?? tables[key.device]?.descriptors[key.handle]?.reading
    }

    private mutating func setReading(_ key: AttributeKey, _ body: (inout ReadOperation?) -> Void) {
        if tables[key.device]?.characteristics[key.handle] != nil {
            body(&tables[key.device]!.characteristics[key.handle]!.reading)
        } else if tables[key.device]?.descriptors[key.handle] != nil {
            body(&tables[key.device]!.descriptors[key.handle]!.reading)
        }
    }

    /// The number that the peer knows it by.
    private func valueHandle(_ key: AttributeKey) -> UInt16? {
        guard let table = tables[key.device] else { return nil }
        return table.characteristics[key.handle]?.laid.valueHandle ?? table.descriptors[key.handle]?.laid.handle
    }

    private mutating func readAnswered(_ key: AttributeKey, _ result: AttributeResult) {
        guard let operation = reading(key) else { return }
        setReading(key) { $0 = nil }
        switch result {
        case .bytes(let bytes):
            // Kept from the offset on and told as a whole, with what was known of the part before it.
            let known = value(of: key)
            var value = Array(known.prefix(operation.offset))
            value += Array(repeating: 0, count: operation.offset - value.count) + bytes
            setValue(value, of: key)
            for call in operation.calls { reply(call, .values([.bytes(bytes)])) }
        case .error(let code):
            // BlueZ stores what came before the end that it did not find.
            if code == ATTError.invalidOffset { setValue(value(of: key), of: key) }
            for call in operation.calls { fail(call, .attribute(code)) }
        }
    }

    private func value(of key: AttributeKey) -> [UInt8] {
        guard let table = tables[key.device] else { return [] }
        return table.characteristics[key.handle]?.value ?? table.descriptors[key.handle]?.value ?? []
    }

    /// A value that has come, by a read or by itself, is told at once, also when it is the same.
    mutating func setValue(_ value: [UInt8], of key: AttributeKey) {
        if let path = tables[key.device]?.characteristics[key.handle]?.path {
            tables[key.device]?.characteristics[key.handle]?.value = value
            say(value, of: key, at: path, InterfaceName.characteristic)
        } else if let path = tables[key.device]?.descriptors[key.handle]?.path {
            tables[key.device]?.descriptors[key.handle]?.value = value
            say(value, of: key, at: path, InterfaceName.descriptor)
        }
    }

    private mutating func say(_ value: [UInt8], of key: AttributeKey, at path: String, _ interface: String) {
        flush()
        emit(
            .propertiesChanged(
                path: path, interface: interface, changed: [NamedValue(name: "Value", value: .bytes(value))],
                invalidated: []))
    }

    // MARK: Writing

    mutating func writeValue(
        _ key: AttributeKey, _ bytes: [UInt8], offset: Int, type: String?, call: CallID
    ) throws(DaemonError) {
        guard !isClaimed(key) else { throw .notAuthorized }
        guard let link = links[key.device] else { throw .notConnected }
        if tables[key.device]?.descriptors[key.handle] != nil {
            return try writeDescriptor(key, bytes, offset: offset, call: call)
        }
        guard let characteristic = tables[key.device]?.characteristics[key.handle] else { throw .doesNotExist }
        guard characteristic.writeSocket == nil else { throw .notPermitted("Write acquired") }
        guard characteristic.writing == nil else { throw .underWay }
        let kind = try writeType(type, offset: offset, of: characteristic.laid)
        let id = nextRequest()
        let request = AttributeRequest(
            id: id,
            kind: .write(handle: characteristic.laid.valueHandle, offset: offset, bytes: bytes, type: kind))
        guard kind != .command else {
            guard bytes.count <= link.mtu - 3 else { throw .failed("Failed to initiate write") }
            order(.request(key.device, request))
            // It is queued: nobody will ever say more about it.
            return reply(call)
        }
        tables[key.device]?.characteristics[key.handle]?.writing = id
        send(.write(handle: key.handle, call: call), request, key.device)
    }

    /// Which kind of write it is; a kind that was asked for is not compared with the flags.
    private func writeType(
        _ type: String?, offset: Int, of characteristic: AttributeDatabase.Characteristic
    ) throws(DaemonError) -> VirtualWriteType {
        switch type?.lowercased() {
        case "reliable": return .reliable
        case "request": return .request
        case "command":
            guard offset == 0 else { throw .notSupported }
            return .command
        case nil:
            if characteristic.flags.contains(.reliableWrite) { return .reliable }
            if characteristic.flags.contains(.write) { return .request }
            guard characteristic.flags.contains(.writeWithoutResponse), offset == 0 else { throw .notSupported }
            return .command
        default: throw .notSupported
        }
    }

    private mutating func writeDescriptor(
        _ key: AttributeKey, _ bytes: [UInt8], offset: Int, call: CallID
    ) throws(DaemonError) {
        guard let descriptor = tables[key.device]?.descriptors[key.handle] else { throw .doesNotExist }
        guard descriptor.writing == nil else { throw .underWay }
        // Subscriptions are made by StartNotify alone.
        guard descriptor.laid.uuid != AttributeDatabase.configuration else {
            throw .notPermitted("Write not permitted")
        }
        let id = nextRequest()
        tables[key.device]?.descriptors[key.handle]?.writing = id
        send(
            .write(handle: key.handle, call: call),
            AttributeRequest(
                id: id,
                kind: .write(handle: descriptor.laid.handle, offset: offset, bytes: bytes, type: .request)), key.device)
    }

    private mutating func writeAnswered(_ key: AttributeKey, _ call: CallID, _ result: AttributeResult) {
        tables[key.device]?.characteristics[key.handle]?.writing = nil
        tables[key.device]?.descriptors[key.handle]?.writing = nil
        switch result {
        case .bytes: reply(call)
        case .error(let code): fail(call, .attribute(code))
        }
    }

    // MARK: Requests and responses

    mutating func send(_ purpose: HostRequest, _ request: AttributeRequest, _ key: DeviceKey) {
        if links[key]?.requests.isEmpty == true { alarms.set(.requestTimeout(key), to: now + Self.requestTimeout) }
        links[key]?.requests[request.id] = purpose
        order(.request(key, request))
    }

    /// After that long without a response the link is given up (core specification 5.3, volume 3, part F, 3.3.3).
    static let requestTimeout: TimeInterval = 30

    mutating func responded(_ key: DeviceKey, _ id: UInt64, _ result: AttributeResult) {
        guard id & Self.batteryRequest == 0 else {
            if id & Self.batterySubscription != Self.batterySubscription { batteryAnswered(result, of: key) }
            return
        }
        guard let purpose = links[key]?.requests.removeValue(forKey: id) else { return }
        alarms.remove(.requestTimeout(key))
        if links[key]?.requests.isEmpty == false { alarms.set(.requestTimeout(key), to: now + Self.requestTimeout) }
        conclude(purpose, result, of: key)
    }

    private mutating func conclude(_ purpose: HostRequest, _ result: AttributeResult, of key: DeviceKey) {
        switch purpose {
        case .read(let handle): readAnswered(AttributeKey(device: key, handle: handle), result)
        case .write(let handle, let call): writeAnswered(AttributeKey(device: key, handle: handle), call, result)
        case .subscribe(let handle, let owner, let call):
            subscribed(AttributeKey(device: key, handle: handle), owner: owner, call: call, result)
        case .acquire(let handle, let owner, let call):
            acquired(AttributeKey(device: key, handle: handle), owner: owner, call: call, result)
        case .unsubscribe: break
        }
    }

    /// With the link everything ends that was asked over it, in the order it was asked.
    mutating func failRequests(of link: HostLink, at key: DeviceKey) {
        for (_, purpose) in link.requests.sorted(by: { $0.key < $1.key }) {
            conclude(purpose, .error(ATTError.unlikely), of: key)
        }
    }

    mutating func nextRequest() -> UInt64 {
        requestNumber += 1
        return requestNumber
    }
}
