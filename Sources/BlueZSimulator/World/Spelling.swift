/// Bytes as hexadecimal text and back.
enum Hexadecimal {
    static func bytes(_ text: String) -> [UInt8]? {
        let digits = Array(text.utf8.filter { $0 != UInt8(ascii: " ") })
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 2)
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = value(of: digits[index]), let low = value(of: digits[index + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    static func text(_ bytes: [UInt8]) -> String {
        bytes.map { byte in
            let digits = String(byte, radix: 16)
            return digits.utf8.count == 1 ? "0" + digits : digits
        }.joined()
    }

    private static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

/// UUIDs as BlueZ writes them on the bus: all 128 bits, lower case.
enum ServiceUUID {
    /// Returns the long form of `180D`, `0x180D`, `0000180d` or a long one; nil for what is no UUID.
    static func long(_ text: String) -> String? {
        var digits = text.lowercased()
        if digits.hasPrefix("0x") { digits.removeFirst(2) }
        switch digits.utf8.count {
        case 4 where isHexadecimal(digits):
            return "0000\(digits)\(base)"
        case 8 where isHexadecimal(digits):
            return digits + base
        case 36:
            let groups = digits.split(separator: "-", omittingEmptySubsequences: false)
            guard groups.map(\.utf8.count) == [8, 4, 4, 4, 12], isHexadecimal(groups.joined()) else {
                return nil
            }
            return digits
        default:
            return nil
        }
    }

    /// In ASCII: `isHexDigit` alone accepts the full-width digits of East Asian fonts as well.
    private static func isHexadecimal(_ text: String) -> Bool { text.allSatisfy { $0.isASCII && $0.isHexDigit } }

    /// Returns the least number of bytes that a long form can be sent in: 2 or 4 if it is made of the Bluetooth base
    /// UUID and as many bytes, else 16.
    static func size(_ long: String) -> Int { long.hasSuffix(base) ? long.hasPrefix("0000") ? 2 : 4 : 16 }

    private static let base = "-0000-1000-8000-00805f9b34fb"
}
