package import Foundation

/// Reads and writes hexadecimal digits in a buffer.
enum Hexadecimal {
    /// Returns the number of at most sixteen digits of either case, or `nil` if one of them is no digit.
    static func value(_ digits: Slice<UnsafeBufferPointer<UInt8>>) -> UInt64? {
        var value: UInt64 = 0
        for character in digits {
            let digit: UInt8
            switch character {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = character - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = character - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = character - UInt8(ascii: "A") + 10
            default: return nil
            }
            value = value << 4 | UInt64(digit)
        }
        return value
    }

    /// Returns the ASCII digit for the four bits `position` nibbles from the right.
    static func upperDigit(_ value: UInt64, nibblesFromTheRight position: Int) -> UInt8 {
        let nibble = UInt8(truncatingIfNeeded: value >> (UInt64(position) * 4)) & 0xF
        return nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "A") + nibble - 10
    }
}

extension Data {
    /// The bytes as pairs of lower case hexadecimal digits, without anything between them.
    package var hexadecimal: String {
        String(unsafeUninitializedCapacity: count * 2) { text in
            let digits: StaticString = "0123456789abcdef"
            var position = 0
            for byte in self {
                text[position] = digits.utf8Start[Int(byte >> 4)]
                text[position + 1] = digits.utf8Start[Int(byte & 0xF)]
                position += 2
            }
            return position
        }
    }

    /// Creates the bytes from pairs of hexadecimal digits of either case; `nil` if the text is anything else.
    package init?(hexadecimal text: String) {
        var text = text
        let bytes: [UInt8]? = text.withUTF8 { text in
            guard text.count.isMultiple(of: 2) else { return nil }
            var bytes: [UInt8] = []
            bytes.reserveCapacity(text.count / 2)
            for start in stride(from: 0, to: text.count, by: 2) {
                guard let byte = Hexadecimal.value(text[start..<start + 2]) else { return nil }
                bytes.append(UInt8(truncatingIfNeeded: byte))
            }
            return bytes
        }
        guard let bytes else { return nil }
        self.init(bytes)
    }
}
