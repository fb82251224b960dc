/// What a path below a device says: `…/service0028`, `…/service0028/char002a`, `…/service0028/char002a/desc002c`
/// (`src/gatt-client.c`: four hexadecimal digits, lower case).
struct AttributePath {
    let kind: AttributeKind
    let key: AttributeKey
    /// Of a service its own handle.
    let service: UInt16
    /// Of a descriptor; 0 for the others.
    let characteristic: UInt16

    init?(_ path: UnsafeBufferPointer<UInt8>) {
        var rest = path
        let descriptor = AttributePath.takeLast("/desc", from: &rest)
        let characteristic = AttributePath.takeLast("/char", from: &rest)
        guard let service = AttributePath.takeLast("/service", from: &rest), let device = ObjectKey(path: rest),
            device.isDevice, descriptor == nil || characteristic != nil
        else { return nil }
        kind = descriptor != nil ? .descriptor : characteristic != nil ? .characteristic : .service
        key = AttributeKey(device: device, handle: descriptor ?? characteristic ?? service)
        self.service = service
        self.characteristic = descriptor == nil ? 0 : characteristic ?? 0
    }

    /// Removes a name and the handle after it from the end of a path, and returns the handle.
    private static func takeLast(_ name: StaticString, from path: inout UnsafeBufferPointer<UInt8>) -> UInt16? {
        let start = path.count - name.utf8CodeUnitCount - 4
        guard start >= 0 else { return nil }
        let last = UnsafeBufferPointer(rebasing: path[start...])
        guard last.starts(with: name) else { return nil }
        var handle: UInt16 = 0
        for digit in last.suffix(4) {
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): handle = handle << 4 | UInt16(digit - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): handle = handle << 4 | UInt16(digit - UInt8(ascii: "a") + 10)
            default: return nil
            }
        }
        path = UnsafeBufferPointer(rebasing: path[..<start])
        return handle
    }
}

/// Writes a path for C, byte by byte, without a `String`.
struct PathWriter {
    /// More than any path of BlueZ's own form: `/org/bluez/hci16383/dev_AA_BB_CC_DD_EE_FF/service0028/char002a/desc002c`.
    static let capacity = 96

    private let bytes: UnsafeMutableBufferPointer<UInt8>
    private var count = 0

    private init(bytes: UnsafeMutableBufferPointer<UInt8>) { self.bytes = bytes }

    /// Calls `body` with what `write` writes, as C text, which takes no allocation.
    static func withText<R>(_ write: (inout PathWriter) -> Void, _ body: (UnsafePointer<CChar>) -> R) -> R? {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: capacity) { bytes in
            var writer = PathWriter(bytes: bytes)
            write(&writer)
            writer.append(0)
            return bytes.withMemoryRebound(to: CChar.self) { $0.baseAddress.map { body(UnsafePointer($0)) } }
        }
    }

    mutating func append(_ byte: UInt8) {
        bytes[count] = byte
        count += 1
    }

    mutating func append(_ text: StaticString) {
        for index in 0..<text.utf8CodeUnitCount { append(text.utf8Start[index]) }
    }

    mutating func append(_ name: StaticString, handle: UInt16) {
        append(name)
        append(hexadecimal(handle >> 12, "a"))
        append(hexadecimal(handle >> 8, "a"))
        append(hexadecimal(handle >> 4, "a"))
        append(hexadecimal(handle, "a"))
    }

    mutating func append(decimal number: UInt64) {
        if number >= 10 { append(decimal: number / 10) }
        append(UInt8(ascii: "0") + UInt8(number % 10))
    }

    /// `AA_BB_CC_DD_EE_FF`.
    mutating func append(address: UInt64) {
        for index in 0..<6 {
            if index > 0 { append(UInt8(ascii: "_")) }
            let byte = UInt16(truncatingIfNeeded: address >> UInt64(40 - 8 * index))
            append(hexadecimal(byte >> 4, "A"))
            append(hexadecimal(byte, "A"))
        }
    }

    private func hexadecimal(_ nibble: UInt16, _ ten: Unicode.Scalar) -> UInt8 {
        let digit = UInt8(nibble & 15)
        return digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: ten) + digit - 10
    }
}

/// Identifies an attribute of a remote device by the device and the attribute's ATT handle.
///
/// The handle is the number in the last part of a path such as `…/dev_XX/service0028/char002a/desc002c`: of a service
/// that of its first attribute, of a characteristic that of its declaration. The key is the same after a reconnection
/// and after a restart of the daemon as long as the peer's table of attributes is.
package struct AttributeKey: Hashable, Sendable {
    package let device: ObjectKey
    package let handle: UInt16

    package init(device: ObjectKey, handle: UInt16) {
        self.device = device
        self.handle = handle
    }
}

extension AttributeKey {
    /// Stands for the level of a battery that BlueZ does not export, and that has no object of its own: no attribute
    /// has this handle (Bluetooth Core Specification 5.4, volume 3, part F, 3.2.2).
    package static func battery(of device: ObjectKey) -> AttributeKey { AttributeKey(device: device, handle: 0) }

    /// Whether the key stands for something that has no object in BlueZ.
    package var isVirtual: Bool { handle == 0 }
}

/// The properties of the three interfaces of attributes, as a set. Each interface has some of them.
package struct AttributeFields: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let uuid = AttributeFields(rawValue: 1 << 0)
    package static let isPrimary = AttributeFields(rawValue: 1 << 1)
    package static let includes = AttributeFields(rawValue: 1 << 2)
    package static let flags = AttributeFields(rawValue: 1 << 3)
    /// A value was read, written, notified or indicated, by any process: BlueZ does not say which.
    package static let value = AttributeFields(rawValue: 1 << 4)
    package static let isNotifying = AttributeFields(rawValue: 1 << 5)
    package static let mtu = AttributeFields(rawValue: 1 << 6)
    package static let isNotifyAcquired = AttributeFields(rawValue: 1 << 7)
    package static let isWriteAcquired = AttributeFields(rawValue: 1 << 8)

    /// The properties of an attribute's declaration, which do not change with its value or its subscription.
    ///
    /// A constant, because another module creates an array for each literal of several fields.
    package static let ofDeclaration: AttributeFields = [.uuid, .flags, .includes]
}
