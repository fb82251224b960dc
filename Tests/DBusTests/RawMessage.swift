import Glibc
import TestBasics

@testable import BlueCapDBus

/// Writes values in wire form, in either byte order, right or wrong.
struct RawWriter {
    var isBig = false
    var bytes: [UInt8] = []

    mutating func align(_ size: Int) {
        while bytes.count % size != 0 { bytes.append(0) }
    }

    mutating func number<T: FixedWidthInteger>(_ value: T) {
        align(MemoryLayout<T>.size)
        withUnsafeBytes(of: isBig ? value.bigEndian : value.littleEndian) { bytes += $0 }
    }

    mutating func text(_ text: String) { self.text(Array(text.utf8)) }

    mutating func text(_ text: [UInt8]) {
        number(UInt32(text.count))
        bytes += text + [0]
    }

    mutating func signature(_ text: String) { bytes += [UInt8(text.utf8.count)] + Array(text.utf8) + [0] }

    /// Writes an array: its length, padding for elements of this alignment, and what `body` writes.
    mutating func array(alignment: Int, _ body: (inout RawWriter) -> Void) {
        number(UInt32(0))
        let length = bytes.count - 4
        align(alignment)
        let start = bytes.count
        body(&self)
        let count = UInt32(bytes.count - start)
        withUnsafeBytes(of: isBig ? count.bigEndian : count.littleEndian) {
            bytes.replaceSubrange(length..<length + 4, with: $0)
        }
    }

    /// Writes a random value of the first type of `types`, which is removed.
    mutating func value(of types: inout Substring, _ random: inout TestRandom) {
        switch types.removeFirst() {
        case "y": number(UInt8(random.below(256)))
        case "b": number(UInt32(random.below(2)))
        case "n", "q": number(UInt16(random.below(1 << 16)))
        case "i", "u", "h": number(UInt32(truncatingIfNeeded: random.next()))
        case "x", "t", "d": number(random.next())
        case "s":
            text(String((0..<random.below(20)).map { _ in "abé€😀\u{FFFF} .".randomElement(using: &random) ?? "a" }))
        case "o": text(["/", "/a", "/org/bluez/hci0/dev_00_11", "/_/0/Z"][random.below(4)])
        case "g": signature(["", "s", "a{sv}", "(ii)ay", "aaav"][random.below(5)])
        case "v":
            let type = randomType(2, &random)
            signature(type)
            var inner = type[...]
            value(of: &inner, &random)
        case "a":
            let element = types
            let count = random.below(4)
            array(alignment: alignment(of: element.utf8.first ?? 0)) { writer in
                for _ in 0..<count {
                    var type = element
                    writer.value(of: &type, &random)
                }
            }
            var discarded = RawWriter()
            discarded.value(of: &types, &random)
        default:
            align(8)
            while !")}".contains(types.first ?? ")") { value(of: &types, &random) }
            types.removeFirst()
        }
    }
}

/// A random complete type.
func randomType(_ depth: Int = 0, _ random: inout TestRandom) -> String {
    let basic = ["y", "b", "n", "q", "i", "u", "x", "t", "d", "s", "o", "g", "h"]
    switch random.below(depth < 3 ? 18 : 13) {
    case 13: return "a" + randomType(depth + 1, &random)
    case 14: return "v"
    case 15:
        return "(" + (0...random.below(3)).map { _ in randomType(depth + 1, &random) }.joined() + ")"
    case 16: return "a{" + basic[random.below(13)] + randomType(depth + 1, &random) + "}"
    case 17: return "ay"
    case let index: return basic[index]
    }
}

/// The parts of a message, each of which a test can make wrong. As it is, a signal without arguments.
struct RawMessage {
    struct Field {
        var code: UInt8
        var type: String
        var write: (inout RawWriter) -> Void
    }

    var isBig = false
    var type: UInt8 = 4
    var flags: UInt8 = 0
    var version: UInt8 = 1
    var serial: UInt32 = 1
    var fields = [
        RawMessage.text(1, "/a", type: "o"), RawMessage.text(2, "a.b"), RawMessage.text(3, "C"),
    ]
    var body = RawWriter()

    static func text(_ code: UInt8, _ text: String, type: String = "s") -> Field {
        Field(code: code, type: type) { $0.text(text) }
    }

    static func number(_ code: UInt8, _ number: UInt32) -> Field {
        Field(code: code, type: "u") { $0.number(number) }
    }

    /// A signal with these arguments.
    init(_ signature: String = "", isBig: Bool = false, body: (inout RawWriter) -> Void = { _ in }) {
        self.isBig = isBig
        self.body.isBig = isBig
        if !signature.isEmpty { fields.append(Field(code: 8, type: "g") { $0.signature(signature) }) }
        body(&self.body)
    }

    /// The message without the field of that code, and with this one.
    func with(_ field: Field?, for code: UInt8) -> RawMessage {
        var message = self
        message.fields.removeAll { $0.code == code }
        if let field { message.fields.append(field) }
        return message
    }

    var bytes: [UInt8] {
        var writer = RawWriter(isBig: isBig, bytes: [UInt8(ascii: isBig ? "B" : "l"), type, flags, version])
        writer.number(UInt32(body.bytes.count))
        writer.number(serial)
        writer.array(alignment: 8) { writer in
            for field in fields {
                writer.align(8)
                writer.bytes.append(field.code)
                writer.signature(field.type)
                field.write(&writer)
            }
        }
        writer.align(8)
        return writer.bytes + body.bytes
    }
}

/// The message of these bytes, in memory of exactly their size; nil if they are not a whole one.
func parsed(_ bytes: [UInt8]) throws -> Message? {
    guard bytes.count >= MessageParser.fixedLength else { return nil }
    let length = try bytes.withUnsafeBytes { bytes -> Int in
        guard let start = bytes.baseAddress else { return 0 }
        return try MessageParser.length(of: start)
    }
    guard length <= bytes.count else { return nil }
    let slab = Slab(capacity: length)
    memcpy(slab.start, bytes, length)
    return Message(
        try ReceivedMessage(slab.start, length, of: slab) { count throws(MalformedMessage) in
            throw MalformedMessage("\(count) of its file descriptors have not arrived")
        })
}
