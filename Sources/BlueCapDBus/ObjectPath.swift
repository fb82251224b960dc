import Glibc

/// The path of an object on the bus, known to be well-formed: "/org/bluez/hci0".
package struct ObjectPath: Hashable, Sendable, CustomStringConvertible {
    package let rawValue: String

    package static let root: ObjectPath = "/"

    /// Nil if the text is not a path by the D-Bus specification ("Valid Object Paths").
    package init?(validating text: String) {
        guard isValid(text, Syntax.isPath) else { return nil }
        rawValue = text
    }

    /// For a text that was validated.
    init(validated text: String) {
        rawValue = text
    }

    package var description: String { rawValue }

    /// The path one element up; nil for the root.
    package var parent: ObjectPath? {
        guard rawValue != "/", let slash = rawValue.utf8.lastIndex(of: UInt8(ascii: "/")) else { return nil }
        return slash == rawValue.startIndex ? .root : ObjectPath(validated: String(rawValue[..<slash]))
    }

    /// The last element; empty for the root.
    package var lastElement: Substring {
        guard let slash = rawValue.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "" }
        return rawValue[rawValue.utf8.index(after: slash)...]
    }

    /// The path of a child; traps if the element has other characters than `[A-Za-z0-9_]`.
    package func appending(_ element: String) -> ObjectPath {
        let text = self == .root ? "/" + element : rawValue + "/" + element
        guard !element.isEmpty, let path = ObjectPath(validating: text) else {
            preconditionFailure("\"\(element)\" cannot be part of an object path: use only letters, digits and _.")
        }
        return path
    }

    /// Whether this path is below the other, at any depth; no path is below itself.
    package func isBelow(_ ancestor: ObjectPath) -> Bool {
        guard ancestor != .root else { return self != .root }
        let text = rawValue.utf8
        let prefix = ancestor.rawValue.utf8
        guard text.count > prefix.count, text.starts(with: prefix) else { return false }
        return text[text.index(text.startIndex, offsetBy: prefix.count)] == UInt8(ascii: "/")
    }
}

extension ObjectPath: ExpressibleByStringLiteral {
    package init(stringLiteral text: String) {
        guard let path = ObjectPath(validating: text) else {
            preconditionFailure("\"\(text)\" is not an object path: it looks like /org/bluez/hci0.")
        }
        self = path
    }
}

// MARK: Texts

/// Whether a text passes one of the checks of ``Syntax``.
func isValid(_ text: String, _ check: (WireText) -> Bool) -> Bool {
    var text = text
    return text.withUTF8(check)
}

func equal(_ left: WireText, _ right: WireText) -> Bool {
    guard let start = left.baseAddress, let other = right.baseAddress else { return left.count == right.count }
    return left.count == right.count && memcmp(start, other, left.count) == 0
}

/// One word for a text. Texts with different marks differ; names of D-Bus with the same mark hardly ever do.
struct TextMark: Equatable {
    private let word: UInt64

    /// Made of the length and of the last eight bytes: the beginnings of most names are alike.
    init(_ text: WireText) {
        var last: UInt64 = 0
        let count = min(text.count, 8)
        if let start = text.baseAddress { memcpy(&last, start + text.count - count, count) }
        word = last &+ UInt64(text.count) &* 0x9E37_79B9_7F4A_7C15
    }
}

/// The bytes of a C string, without the zero at its end.
func bytes(of text: UnsafePointer<CChar>) -> WireText {
    WireText(start: UnsafeRawPointer(text).assumingMemoryBound(to: UInt8.self), count: strlen(text))
}

/// A copy of a text, for comparisons without Swift strings.
///
/// Unchecked: the bytes are written once, here, and then only read.
final class CopiedText: @unchecked Sendable {
    let bytes: WireText

    init(_ text: String) {
        let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: text.utf8.count)
        _ = copy.initialize(from: text.utf8)
        bytes = WireText(copy)
    }

    deinit {
        bytes.deallocate()
    }

    var string: String { String(decoding: bytes, as: UTF8.self) }
}

extension StaticString {
    /// The text for C: the compiler puts a zero byte after every literal.
    var cString: UnsafePointer<CChar> { UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self) }

    var bytes: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount) }
}
