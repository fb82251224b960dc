/// Bytes as hexadecimal text and back.
enum Hexadecimal {
    static func bytes(_ text: String) -> [UInt8]? {
        let digits = Array(text.filter { $0 != " " })
        guard digits.count.isMultiple(of: 2), isDigits(digits) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) }
    }

    static func text(_ bytes: [UInt8]) -> String {
        bytes.map { byte in
            let digits = String(byte, radix: 16)
            return digits.utf8.count == 1 ? "0" + digits : digits
        }.joined()
    }

    /// In ASCII: `isHexDigit` alone accepts the full-width digits of East Asian fonts as well.
    static func isDigits(_ text: some Sequence<Character>) -> Bool { text.allSatisfy { $0.isASCII && $0.isHexDigit } }
}

/// UUIDs as BlueZ writes them on the bus: all 128 bits, lower case.
enum ServiceUUID {
    /// Returns the long form of `180D`, `0x180D`, `0000180d` or a long one; nil for what is no UUID.
    static func long(_ text: String) -> String? {
        var digits = text.lowercased()
        if digits.hasPrefix("0x") { digits.removeFirst(2) }
        switch digits.utf8.count {
        case 4 where Hexadecimal.isDigits(digits):
            return "0000\(digits)\(base)"
        case 8 where Hexadecimal.isDigits(digits):
            return digits + base
        case 36:
            let groups = digits.split(separator: "-", omittingEmptySubsequences: false)
            return groups.map(\.utf8.count) == [8, 4, 4, 4, 12] && Hexadecimal.isDigits(groups.joined()) ? digits : nil
        default:
            return nil
        }
    }

    /// Returns the least number of bytes that a long form can be sent in: 2 or 4 if it is made of the Bluetooth base
    /// UUID and as many bytes, else 16.
    static func size(_ long: String) -> Int { long.hasSuffix(base) ? long.hasPrefix("0000") ? 2 : 4 : 16 }

    /// Returns the bytes that are sent for a UUID, the lowest first; nil for what is no UUID. One made of the Bluetooth base UUID
    /// and 16 bits has two bytes, any other sixteen; `bt_string_to_uuid` uses four only for what is written with eight digits.
    static func sent(_ text: String) -> [UInt8]? {
        guard let long = long(text), let all = Hexadecimal.bytes(long.filter { $0 != "-" }) else { return nil }
        if text.utf8.count == 8 || text.utf8.count == 10 { return all[0..<4].reversed() }
        return size(long) == 2 ? [all[3], all[2]] : all.reversed()
    }

    private static let base = "-0000-1000-8000-00805f9b34fb"
}
