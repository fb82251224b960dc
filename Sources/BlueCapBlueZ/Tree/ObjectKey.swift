package import BlueCapGATT
import Glibc

/// An object of BlueZ in one word: what its path says, without the path.
///
/// `bluetoothd` names its objects by rule: `/org/bluez/hci0`, and `/org/bluez/hci0/dev_AA_BB_CC_DD_EE_FF` below it. Such a
/// path is turned into a number where it lies in the message, which is cheaper than hashing its 37 bytes, and no path need
/// be stored.
///
/// The key of an object is the same after a restart of the daemon, as its path is.
package struct ObjectKey: Hashable, Sendable {
    /// Bit 62: whether it is a device; 48–61: the adapter's number; 0–47: the device's address.
    package let rawValue: UInt64

    private static let device: UInt64 = 1 << 62
    private static let adapters: UInt64 = 0x3FFF << 48

    init(rawValue: UInt64) { self.rawValue = rawValue }

    /// The adapter `hciN`.
    package init?(adapter number: Int) {
        guard (0...0x3FFF).contains(number) else { return nil }
        rawValue = UInt64(number) << 48
    }

    /// A device below an adapter.
    package init(device address: BluetoothAddress, on adapter: ObjectKey) {
        rawValue = ObjectKey.device | adapter.rawValue | address.rawValue
    }

    package var isDevice: Bool { rawValue & ObjectKey.device != 0 }

    /// The address that the path of a device names. The device itself may have another one since it was bonded.
    package var address: BluetoothAddress? { isDevice ? BluetoothAddress(rawValue: rawValue) : nil }

    /// The adapter of a device; an adapter's own key.
    package var adapter: ObjectKey { ObjectKey(rawValue: rawValue & ObjectKey.adapters) }
}

// MARK: - Paths

extension ObjectKey {
    private static let prefix: StaticString = "/org/bluez/hci"
    private static let devicePrefix: StaticString = "/dev_"

    /// The object that a path of BlueZ's own form names; `nil` for any other path, also for those below a device.
    package init?(path: UnsafeBufferPointer<UInt8>) {
        let prefix = ObjectKey.prefix
        guard path.count > prefix.utf8CodeUnitCount, path.starts(with: prefix) else { return nil }
        var position = prefix.utf8CodeUnitCount
        var number: UInt64 = 0
        let firstDigit = position
        while position < path.count, path[position] != UInt8(ascii: "/") {
            let digit = path[position] &- UInt8(ascii: "0")
            // "hci00" is not "hci0": two paths must never share a key.
            guard digit < 10, position == firstDigit || number > 0 else { return nil }
            number = number * 10 + UInt64(digit)
            guard number <= 0x3FFF else { return nil }
            position += 1
        }
        guard position > firstDigit else { return nil }
        guard position < path.count else {
            rawValue = number << 48
            return
        }
        let rest = UnsafeBufferPointer(rebasing: path[position...])
        guard rest.count == 5 + 17, rest.starts(with: ObjectKey.devicePrefix),
            let address = ObjectKey.address(UnsafeBufferPointer(rebasing: rest[5...]))
        else { return nil }
        rawValue = ObjectKey.device | number << 48 | address
    }

    /// The twelve upper case digits of `AA_BB_CC_DD_EE_FF`. Lower case would be another path.
    private static func address(_ text: UnsafeBufferPointer<UInt8>) -> UInt64? {
        var value: UInt64 = 0
        for index in 0..<17 {
            let character = text[index]
            guard index % 3 != 2 else {
                guard character == UInt8(ascii: "_") else { return nil }
                continue
            }
            switch character {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                value = value << 4 | UInt64(character - UInt8(ascii: "0"))
            case UInt8(ascii: "A")...UInt8(ascii: "F"):
                value = value << 4 | UInt64(character - UInt8(ascii: "A") + 10)
            default: return nil
            }
        }
        return value
    }

    package var path: String { PathWriter.withText({ write(to: &$0) }, { String(cString: $0) }) ?? "" }

    func write(to writer: inout PathWriter) {
        writer.append(ObjectKey.prefix)
        writer.append(decimal: rawValue >> 48 & 0x3FFF)
        guard isDevice else { return }
        writer.append(ObjectKey.devicePrefix)
        writer.append(address: rawValue & 0xFFFF_FFFF_FFFF)
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Whether the bytes begin with those of a literal.
    func starts(with literal: StaticString) -> Bool {
        let length = literal.utf8CodeUnitCount
        guard count >= length, let baseAddress else { return length == 0 }
        return memcmp(baseAddress, literal.utf8Start, length) == 0
    }

    /// Whether the bytes are those of a text.
    func equals(_ text: String) -> Bool {
        let text = text.utf8
        return count == text.count && elementsEqual(text)
    }

    /// Whether the bytes are those of a literal.
    func equals(_ literal: StaticString) -> Bool { count == literal.utf8CodeUnitCount && starts(with: literal) }
}
