import Foundation

/// The form of numbers of one size: `u16`, or `f32be` with the most significant byte first. A longer value is a list of them.
struct NumberForm: Sendable {
    /// "a u8", "an i16".
    let article: String
    private let kind: Substring
    private let bits: Int
    private let isBigEndian: Bool

    init?(_ text: String) {
        guard let match = text.wholeMatch(of: /([uif])(\d+)(be)?/), let bits = Int(match.2) else { return nil }
        (kind, self.bits, isBigEndian) = (match.1, bits, match.3 != nil)
        article = (kind == "u" ? "a " : "an ") + text
    }

    /// In bytes.
    var size: Int { bits / 8 }

    /// Returns the numbers in decimal digits; `nil` if the bytes are not a whole number of them, or are none.
    func numbers(in data: Data) -> [String]? {
        guard !data.isEmpty, data.count.isMultiple(of: size) else { return nil }
        return stride(from: 0, to: data.count, by: size).map { start in
            let bytes = data.dropFirst(start).prefix(size)
            let pattern = (isBigEndian ? Array(bytes) : bytes.reversed()).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            return switch kind {
            case "u": "\(pattern)"
            case "i": "\(Int64(bitPattern: pattern << (64 - bits)) >> (64 - bits))"
            default: bits == 32 ? "\(Float(bitPattern: UInt32(pattern)))" : "\(Double(bitPattern: pattern))"
            }
        }
    }

    /// Returns the bytes of numbers that are separated by spaces or commas; none for an empty text.
    ///
    /// - Throws: ``ToolFailure`` with the numbers that the form takes.
    func data(of text: String) throws -> Data {
        let words = text.split { $0 == " " || $0 == "," }
        return Data(
            try (words.isEmpty && !text.isEmpty ? [text[...]] : words).flatMap { word in
                let pattern = try pattern(of: word)
                return (0..<size).map { UInt8(truncatingIfNeeded: pattern >> (8 * (isBigEndian ? size - 1 - $0 : $0))) }
            })
    }

    private func pattern(of word: Substring) throws -> UInt64 {
        if kind == "f" {
            let number = Double(decimal: word) ?? .nan
            if bits == 32, Float(number).isFinite { return UInt64(Float(number).bitPattern) }
            if bits == 64, number.isFinite { return number.bitPattern }
            throw ToolFailure("\(word) is not \(article): it takes a number, such as 21.5.")
        }
        let range: ClosedRange<Int128> =
            kind == "u" ? 0...(1 << bits) - 1 : -(1 << (bits - 1))...(1 << (bits - 1)) - 1
        let match = word.wholeMatch(of: /(-?)(0[xX])?([0-9a-fA-F]+)/)
        let number = match.flatMap { Int128($0.1 + $0.3, radix: $0.2 == nil ? 10 : 16) }
        if let number, range.contains(number) { return UInt64(truncatingIfNeeded: number) }
        throw ToolFailure("\(word) is not \(article): it takes \(range.lowerBound) to \(range.upperBound).")
    }
}
