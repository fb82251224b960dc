/// The bytes of a text, without the zero at its end. No bytes stand for an absent text, since no name is empty.
typealias WireText = UnsafeBufferPointer<UInt8>

/// The syntax of names and signatures (D-Bus specification, "Valid Names" and "Type System").
enum Syntax {
    private static let longestName = 255
    private static let deepestNesting = 32

    static func isPath(_ text: WireText) -> Bool {
        guard text.first == slash else { return false }
        guard text.count > 1 else { return true }
        var last = slash
        for byte in text.dropFirst() {
            guard isNameByte(byte) || byte == slash && last != slash else { return false }
            last = byte
        }
        return last != slash
    }

    static func isMember(_ text: WireText) -> Bool {
        guard let first = text.first, text.count <= longestName, !isDigit(first) else { return false }
        return text.allSatisfy(isNameByte)
    }

    /// Whether the text is the name of an interface, or of an error, which has the same syntax.
    static func isInterface(_ text: WireText) -> Bool {
        text.count <= longestName && elements(of: text, allowingDigits: false) { isNameByte($0) } > 1
    }

    static func isBusName(_ text: WireText) -> Bool {
        guard let first = text.first, text.count <= longestName else { return false }
        guard first == UInt8(ascii: ":") else {
            return elements(of: text, allowingDigits: false) { isNameByte($0) || $0 == hyphen } > 1
        }
        // As libdbus, accepts ":" and ":.1" too.
        var name = text.dropFirst()
        if name.isEmpty { return true }
        if name.first == UInt8(ascii: ".") { name.removeFirst() }
        return elements(of: WireText(rebasing: name), allowingDigits: true) { isNameByte($0) || $0 == hyphen } > 0
    }

    /// The number of elements between dots; 0 if one of them is empty, contains another byte, or begins with a digit.
    @inline(__always)
    private static func elements(of text: WireText, allowingDigits: Bool, _ isAllowed: (UInt8) -> Bool) -> Int {
        var count = 1
        var isFirst = true
        for byte in text {
            if byte == UInt8(ascii: ".") {
                guard !isFirst else { return 0 }
                count += 1
                isFirst = true
            } else {
                guard isAllowed(byte), !isFirst || allowingDigits || !isDigit(byte) else { return 0 }
                isFirst = false
            }
        }
        return isFirst ? 0 : count
    }

    private static let slash = UInt8(ascii: "/")
    private static let hyphen = UInt8(ascii: "-")

    private static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        (byte | 0x20) &- UInt8(ascii: "a") < 26 || isDigit(byte) || byte == UInt8(ascii: "_")
    }

    // MARK: Signatures

    static func isSignature(_ text: WireText) -> Bool {
        guard text.count <= 255 else { return false }
        var rest = text[...]
        while !rest.isEmpty {
            guard skipType(&rest) else { return false }
        }
        return true
    }

    static func isSingleType(_ text: WireText) -> Bool {
        var rest = text[...]
        return text.count <= 255 && skipType(&rest) && rest.isEmpty
    }

    /// Skips one complete type; returns whether there was one.
    private static func skipType(_ types: inout Slice<WireText>, structures: Int = 0, entries: Int = 0) -> Bool {
        var arrays = 0
        while types.first == UInt8(ascii: "a") {
            arrays += 1
            types.removeFirst()
        }
        guard arrays <= deepestNesting, let code = types.popFirst() else { return false }
        switch code {
        case UInt8(ascii: "v"):
            return true
        case UInt8(ascii: "("):
            guard structures < deepestNesting else { return false }
            repeat {
                guard skipType(&types, structures: structures + 1, entries: entries) else { return false }
            } while types.first != UInt8(ascii: ")")
            types.removeFirst()
            return true
        case UInt8(ascii: "{"):
            guard arrays > 0, entries < deepestNesting, let key = types.popFirst(), isBasic(key),
                skipType(&types, structures: structures, entries: entries + 1)
            else { return false }
            return types.popFirst() == UInt8(ascii: "}")
        default:
            return isBasic(code)
        }
    }

    private static func isBasic(_ code: UInt8) -> Bool {
        switch code {
        case UInt8(ascii: "y"), UInt8(ascii: "b"), UInt8(ascii: "n"), UInt8(ascii: "q"), UInt8(ascii: "i"),
            UInt8(ascii: "u"), UInt8(ascii: "x"), UInt8(ascii: "t"), UInt8(ascii: "d"), UInt8(ascii: "s"),
            UInt8(ascii: "o"), UInt8(ascii: "g"), UInt8(ascii: "h"):
            true
        default:
            false
        }
    }

    // MARK: Strings

    /// Whether the text is UTF-8 without a zero byte, a surrogate, a longer form than necessary, or a value above U+10FFFF.
    static func isString(_ text: WireText) -> Bool {
        let bytes = UnsafeRawBufferPointer(text)
        var index = 0
        while index < bytes.count {
            // Eight bytes of ASCII at a time: none is zero, and none has the high bit.
            if index + 8 <= bytes.count {
                let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                if ((word &- 0x0101_0101_0101_0101) | word) & 0x8080_8080_8080_8080 == 0 {
                    index += 8
                    continue
                }
            }
            let length = scalarLength(bytes, index)
            guard length > 0 else { return false }
            index += length
        }
        return true
    }

    /// The number of bytes of the scalar (Unicode standard, table 3-7); 0 if there is none.
    private static func scalarLength(_ bytes: UnsafeRawBufferPointer, _ index: Int) -> Int {
        let first = bytes[index]
        guard first >= 0x80 else { return first == 0 ? 0 : 1 }
        let (length, low, high): (Int, UInt8, UInt8)
        switch first {
        case 0xC2...0xDF: (length, low, high) = (2, 0x80, 0xBF)
        case 0xE0: (length, low, high) = (3, 0xA0, 0xBF)
        case 0xED: (length, low, high) = (3, 0x80, 0x9F)
        case 0xE1...0xEF: (length, low, high) = (3, 0x80, 0xBF)
        case 0xF0: (length, low, high) = (4, 0x90, 0xBF)
        case 0xF1...0xF3: (length, low, high) = (4, 0x80, 0xBF)
        case 0xF4: (length, low, high) = (4, 0x80, 0x8F)
        default: return 0
        }
        guard index + length <= bytes.count, low <= bytes[index + 1], bytes[index + 1] <= high else { return 0 }
        for next in bytes[(index + 2)..<(index + length)] where next & 0xC0 != 0x80 { return 0 }
        return length
    }
}
