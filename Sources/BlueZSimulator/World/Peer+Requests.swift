/// How a peripheral's server judges requests, by the rules of the attribute protocol.
extension Peer {
    /// The error code for what is not allowed; nil for what is.
    func refusal(of request: AttributeRequest) -> AttributeAnswer? {
        switch request.kind {
        case .read(let handle, _):
            guard let target = table.targets[handle] else { return .error(ATTError.invalidHandle) }
            let flags = target.descriptor?.flags ?? target.characteristic.flags
            return flags.contains(.read) ? nil : .error(ATTError.readNotPermitted)
        case .write(let handle, _, let bytes, let type):
            guard let target = table.targets[handle] else { return .error(ATTError.invalidHandle) }
            guard bytes.count <= 512 else { return .error(ATTError.invalidLength) }
            let flags = target.descriptor?.flags ?? target.characteristic.flags
            let needed: CharacteristicFlag = type == .command ? .writeWithoutResponse : .write
            let isAllowed = flags.contains(needed) || (type == .reliable && flags.contains(.reliableWrite))
            return isAllowed ? nil : .error(ATTError.writeNotPermitted)
        case .configure(let characteristic, _):
            return table.targets[characteristic + 1] == nil ? .error(ATTError.invalidHandle) : nil
        }
    }

    /// What the client gets of bytes that a read was answered with.
    func result(of request: AttributeRequest, bytes: [UInt8]) -> AttributeResult {
        guard case .read(_, let offset) = request.kind else { return .bytes([]) }
        var bytes = bytes
        if faults.extraLength < 0 { bytes.removeLast(min(bytes.count, -faults.extraLength)) }
        if faults.extraLength > 0 { bytes += Array(repeating: 0xEE, count: faults.extraLength) }
        guard offset <= bytes.count else { return .error(ATTError.invalidOffset) }
        return .bytes(Array(bytes.dropFirst(offset)))
    }
}

extension AttributeRequest {
    /// How many requests and responses it takes.
    func packets(mtu: Int, answer: AttributeAnswer.Outcome) -> Int {
        switch kind {
        case .read(_, let offset):
            guard case .success(let bytes) = answer else { return 1 }
            return max(0, bytes.count - offset) / (mtu - 1) + 1
        case .write(_, let offset, let bytes, let type):
            guard offset > 0 || type == .reliable || bytes.count > mtu - 3 else { return 1 }
            // Prepared in pieces of the packet less opcode, handle and offset; then executed.
            return max(1, (bytes.count + mtu - 6) / (mtu - 5)) + 1
        case .configure:
            return 1
        }
    }
}

/// Error codes of the attribute protocol (core specification 5.3, volume 3, part F, 3.4.1.1).
enum ATTError {
    static let invalidHandle: UInt8 = 0x01
    static let readNotPermitted: UInt8 = 0x02
    static let writeNotPermitted: UInt8 = 0x03
    static let insufficientAuthentication: UInt8 = 0x05
    static let requestNotSupported: UInt8 = 0x06
    static let invalidOffset: UInt8 = 0x07
    static let insufficientAuthorization: UInt8 = 0x08
    static let insufficientKeySize: UInt8 = 0x0C
    static let invalidLength: UInt8 = 0x0D
    /// Also what BlueZ says of a request whose link has fallen.
    static let unlikely: UInt8 = 0x0E
    static let insufficientEncryption: UInt8 = 0x0F
}
