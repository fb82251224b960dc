/// Digits of base sixteen, read and written in place.
enum Hexadecimal {
    /// The number that at most sixteen digits of either case spell, or `nil` when one of them is no digit.
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

    /// The ASCII digit for the four bits that stand `position` nibbles from the right.
    static func upperDigit(_ value: UInt64, nibblesFromTheRight position: Int) -> UInt8 {
        let nibble = UInt8(truncatingIfNeeded: value >> (UInt64(position) * 4)) & 0xF
        return nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "A") + nibble - 10
    }
}
