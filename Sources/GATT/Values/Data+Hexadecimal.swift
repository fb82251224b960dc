package import Foundation

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

    /// Bytes from pairs of hexadecimal digits of either case, or `nil` when the text is anything else.
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
