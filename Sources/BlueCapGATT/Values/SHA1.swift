import Foundation

/// The Secure Hash Algorithm 1 (RFC 3174), only for name-based UUIDs: it is no longer secure.
///
/// Implemented here because neither Foundation on Linux nor the toolchain has one, and a cryptography package would be
/// this library's largest dependency.
enum SHA1 {
    /// Twenty bytes as five words.
    struct Digest {
        fileprivate var words: InlineArray<5, UInt32> = [
            0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0,
        ]

        subscript(byte index: Int) -> UInt8 {
            UInt8(truncatingIfNeeded: words[index / 4] >> UInt32(24 - index % 4 * 8))
        }
    }

    static func hash(_ message: UnsafeBufferPointer<UInt8>) -> Digest {
        var digest = Digest()
        // The message, the byte 0x80, zeros, and the length in bits as eight bytes: a whole number of 64 byte blocks.
        let length = UInt64(message.count) * 8
        let paddedCount = (message.count + 1 + 8 + 63) / 64 * 64
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 80) { words in
            for block in stride(from: 0, to: paddedCount, by: 64) {
                for index in 0..<16 {
                    words[index] = (0..<4).reduce(UInt32(0)) { word, byte in
                        let position = block + index * 4 + byte
                        return word << 8
                            | UInt32(paddedByte(of: message, at: position, of: paddedCount, bits: length))
                    }
                }
                mix(words, into: &digest)
            }
        }
        return digest
    }

    private static func paddedByte(
        of message: UnsafeBufferPointer<UInt8>, at position: Int, of count: Int, bits length: UInt64
    ) -> UInt8 {
        if position < message.count { return message[position] }
        if position == message.count { return 0x80 }
        let fromTheEnd = count - 1 - position
        return fromTheEnd < 8 ? UInt8(truncatingIfNeeded: length >> UInt64(fromTheEnd * 8)) : 0
    }

    private static func mix(_ words: UnsafeMutableBufferPointer<UInt32>, into digest: inout Digest) {
        for index in 16..<80 {
            words[index] = rotate(words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], by: 1)
        }
        let start = digest.words
        var (a, b, c, d, e) = (start[0], start[1], start[2], start[3], start[4])
        for index in 0..<80 {
            let (f, k): (UInt32, UInt32) =
                switch index {
                case 0..<20: (b & c | ~b & d, 0x5A82_7999)
                case 20..<40: (b ^ c ^ d, 0x6ED9_EBA1)
                case 40..<60: (b & c | b & d | c & d, 0x8F1B_BCDC)
                default: (b ^ c ^ d, 0xCA62_C1D6)
                }
            let next = rotate(a, by: 5) &+ f &+ e &+ k &+ words[index]
            (a, b, c, d, e) = (next, a, rotate(b, by: 30), c, d)
        }
        digest.words = [start[0] &+ a, start[1] &+ b, start[2] &+ c, start[3] &+ d, start[4] &+ e]
    }

    private static func rotate(_ word: UInt32, by count: UInt32) -> UInt32 { word << count | word >> (32 - count) }
}

extension UUID {
    /// Creates a UUID of version 5 from the SHA-1 of its namespace and name.
    init(nameHash hash: SHA1.Digest) {
        var bytes: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        withUnsafeMutableBytes(of: &bytes) { bytes in
            for index in 0..<16 { bytes[index] = hash[byte: index] }
            bytes[6] = bytes[6] & 0x0F | 0x50
            bytes[8] = bytes[8] & 0x3F | 0x80
        }
        self.init(uuid: bytes)
    }
}
