import CDBus

/// The path of an object on the bus, known to be well-formed: "/org/bluez/hci0".
package struct ObjectPath: Hashable, Sendable, CustomStringConvertible {
    package let rawValue: String

    package static let root: ObjectPath = "/"

    /// Nil where the text is not a path by the D-Bus specification ("Valid Object Paths").
    package init?(validating text: String) {
        guard isValid(text, cdbus_is_path) else { return nil }
        rawValue = text
    }

    /// For text that libdbus has validated.
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

    /// The path of a child; traps where the element has other characters than `[A-Za-z0-9_]`.
    package func appending(_ element: String) -> ObjectPath {
        let text = self == .root ? "/" + element : rawValue + "/" + element
        guard !element.isEmpty, let path = ObjectPath(validating: text) else {
            preconditionFailure("\"\(element)\" cannot be part of an object path: use only letters, digits and _.")
        }
        return path
    }

    /// Whether this path lies below the other, at any depth; no path lies below itself.
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

/// Whether a text without a zero byte passes one of libdbus's checks.
func isValid(_ text: String, _ check: (UnsafePointer<CChar>) -> Bool) -> Bool {
    text.withCString { check($0) } && !text.utf8.contains(0)
}
