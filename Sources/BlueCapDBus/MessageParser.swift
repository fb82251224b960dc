/// The reason why bytes are not a message.
struct MalformedMessage: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// The header of a message, and where its body is. The texts are those of the wire, in place, with a zero byte after each.
struct MessageHeader {
    var type: UInt8 = 0
    var flags: UInt8 = 0
    var serial: UInt32 = 0
    var replySerial: UInt32 = 0
    /// The number of descriptors that came with the message.
    var descriptors: UInt32 = 0
    var path = WireText(start: nil, count: 0)
    var interface = WireText(start: nil, count: 0)
    var member = WireText(start: nil, count: 0)
    var errorName = WireText(start: nil, count: 0)
    var destination = WireText(start: nil, count: 0)
    var sender = WireText(start: nil, count: 0)
    var signature = WireText(start: nil, count: 0)
    var body = UnsafeRawBufferPointer(start: nil, count: 0)
}

/// Validates the bytes of one message, in one pass (D-Bus specification, "Message Protocol" and "Marshaling").
///
/// It accepts what libdbus accepts, because the bus, which uses libdbus, carries no other messages: with another rule, a peer
/// could end this process's connection. It reads both byte orders. The numbers of a message in the other byte order are
/// swapped in the same pass, so that every reader after it finds the order of this machine.
///
/// Every access is checked against the end of the message, also in optimized builds.
struct MessageParser {
    /// The maximum length of a message.
    static let longestMessage = 1 << 27
    /// The maximum length of an array.
    private static let longestArray = 1 << 26
    /// The maximum depth of containers with those inside variants.
    private static let deepestNesting = 64
    /// The length of the part of the header before the fields.
    static let fixedLength = 16

    private static let ownOrder = UInt8(ascii: 1.littleEndian == 1 ? "l" : "B")
    private static let otherOrder = UInt8(ascii: 1.littleEndian == 1 ? "B" : "l")

    private let start: UnsafeMutableRawPointer
    private let isSwapped: Bool
    private var position = 4
    /// The end of the bytes that may be read: of the message, or of the fields of its header.
    private var end: Int

    /// The length of the message that begins with these `fixedLength` bytes.
    static func length(of start: UnsafeRawPointer) throws(MalformedMessage) -> Int {
        let order = start.load(as: UInt8.self)
        guard order == ownOrder || order == otherOrder else {
            throw MalformedMessage("it begins with \(order), which is not a byte order")
        }
        func number(_ offset: Int) -> Int {
            let value = start.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
            return Int(order == ownOrder ? value : value.byteSwapped)
        }
        let (body, fields) = (number(4), number(12))
        let length = (fixedLength + fields + 7) & ~7 + body
        guard fields <= longestArray, length <= longestMessage else {
            throw MalformedMessage("it is longer than 128 MiB, or its header than 64 MiB")
        }
        return length
    }

    /// Parses the message of these bytes, of which there are as many as `length(of:)` returns.
    static func parse(_ bytes: UnsafeMutableRawBufferPointer) throws(MalformedMessage) -> MessageHeader {
        guard let start = bytes.baseAddress, bytes.count >= fixedLength else {
            throw MalformedMessage("it is shorter than its header")
        }
        var parser = MessageParser(start: start, isSwapped: bytes[0] != ownOrder, end: bytes.count)
        return try parser.message()
    }

    private init(start: UnsafeMutableRawPointer, isSwapped: Bool, end: Int) {
        (self.start, self.isSwapped, self.end) = (start, isSwapped, end)
    }

    // MARK: The header

    private mutating func message() throws(MalformedMessage) -> MessageHeader {
        let length = end
        var header = MessageHeader()
        header.type = start.load(fromByteOffset: 1, as: UInt8.self)
        header.flags = start.load(fromByteOffset: 2, as: UInt8.self)
        guard header.type != 0 else { throw MalformedMessage("its type is 0") }
        guard start.load(fromByteOffset: 3, as: UInt8.self) == 1 else {
            throw MalformedMessage("it has another version of the protocol than 1")
        }
        let bodyLength = Int(try uint32())
        header.serial = try uint32()
        guard header.serial != 0 else { throw MalformedMessage("its serial is 0") }
        let fieldsEnd = Int(try uint32()) + position
        guard fieldsEnd <= length else { throw MalformedMessage("its header is longer than the message") }
        end = fieldsEnd
        var seen: UInt32 = 0
        while position < end { try field(&header, &seen) }
        end = length
        try align(8)
        guard position + bodyLength == length else { throw MalformedMessage("its lengths contradict each other") }
        try requireFields(of: header)

        header.body = UnsafeRawBufferPointer(start: start + position, count: bodyLength)
        if var type = header.signature.baseAddress {
            let typesEnd = type + header.signature.count
            while type < typesEnd { try value(&type, depth: 0) }
        }
        guard position == length else { throw MalformedMessage("its body is longer than its signature") }
        if isSwapped { start.storeBytes(of: Self.ownOrder, as: UInt8.self) }
        return header
    }

    private mutating func field(_ header: inout MessageHeader, _ seen: inout UInt32) throws(MalformedMessage) {
        try align(8)
        let code = try byte()
        let type: Unicode.Scalar
        switch code {
        case 0: throw MalformedMessage("it has a header field of the code 0")
        case 1, 10: type = "o"
        case 2, 3, 4, 6, 7: type = "s"
        case 5, 9: type = "u"
        case 8: type = "g"
        default: return try variant(depth: 3)
        }
        guard try byte() == 1, try byte() == UInt8(ascii: type), try byte() == 0 else {
            throw MalformedMessage("its header field \(code) has another type than \(type)")
        }
        guard seen & 1 << code == 0 else { throw MalformedMessage("it has the header field \(code) twice") }
        seen |= 1 << code
        switch code {
        case 1:
            header.path = try path()
            try refuse(header.path, "/org/freedesktop/DBus/Local")
        case 2:
            header.interface = try name(code, Syntax.isInterface)
            try refuse(header.interface, "org.freedesktop.DBus.Local")
        case 3: header.member = try name(code, Syntax.isMember)
        case 4: header.errorName = try name(code, Syntax.isInterface)
        case 5:
            header.replySerial = try uint32()
            guard header.replySerial != 0 else { throw MalformedMessage("the serial of its call is 0") }
        case 6: header.destination = try name(code, Syntax.isBusName)
        case 7: header.sender = try name(code, Syntax.isBusName)
        case 8: header.signature = try signature()
        case 9: header.descriptors = try uint32()
        default: _ = try path()
        }
    }

    @inline(__always)
    private mutating func name(_ code: UInt8, _ check: (WireText) -> Bool) throws(MalformedMessage) -> WireText {
        let text = try text()
        guard check(text) else { throw MalformedMessage("its header field \(code) is not such a name") }
        return text
    }

    /// Refuses the names that are reserved for messages inside a process. As libdbus, refuses all that begin with them.
    private func refuse(_ text: WireText, _ reserved: StaticString) throws(MalformedMessage) {
        guard text.count < reserved.utf8CodeUnitCount || !text.starts(with: reserved.bytes) else {
            throw MalformedMessage("it has the reserved name \(reserved)")
        }
    }

    private func requireFields(of header: MessageHeader) throws(MalformedMessage) {
        let isComplete =
            switch header.type {
            case 1: !header.path.isEmpty && !header.member.isEmpty
            case 2: header.replySerial != 0
            case 3: header.replySerial != 0 && !header.errorName.isEmpty
            case 4: !header.path.isEmpty && !header.interface.isEmpty && !header.member.isEmpty
            default: true
            }
        guard isComplete else {
            throw MalformedMessage("it lacks a header field that its type \(header.type) requires")
        }
    }

    // MARK: Values

    /// Validates one value of the type that begins at `type`, which then is the type after it. The signature is well-formed.
    private mutating func value(_ type: inout UnsafePointer<UInt8>, depth: Int) throws(MalformedMessage) {
        guard depth <= Self.deepestNesting else { throw MalformedMessage("its values are nested too deeply") }
        let code = type.pointee
        type += 1
        switch code {
        case UInt8(ascii: "y"): _ = try byte()
        case UInt8(ascii: "n"), UInt8(ascii: "q"): _ = try number(UInt16.self)
        case UInt8(ascii: "b"): try bool()
        case UInt8(ascii: "i"), UInt8(ascii: "u"), UInt8(ascii: "h"): _ = try uint32()
        case UInt8(ascii: "x"), UInt8(ascii: "t"), UInt8(ascii: "d"): _ = try number(UInt64.self)
        case UInt8(ascii: "s"):
            guard Syntax.isString(try text()) else { throw MalformedMessage("it has a string that is not UTF-8") }
        case UInt8(ascii: "o"): _ = try path()
        case UInt8(ascii: "g"): _ = try signature()
        case UInt8(ascii: "v"): try variant(depth: depth + 1)
        case UInt8(ascii: "a"): try array(&type, depth: depth + 1)
        default:
            try align(8)
            while type.pointee != UInt8(ascii: ")"), type.pointee != UInt8(ascii: "}") {
                try value(&type, depth: depth + 1)
            }
            type += 1
        }
    }

    private mutating func array(_ type: inout UnsafePointer<UInt8>, depth: Int) throws(MalformedMessage) {
        let element = type
        type = typeEnd(element)
        let length = Int(try uint32())
        let alignment = alignment(of: element.pointee)
        try align(alignment)
        guard length <= end - position else {
            throw MalformedMessage("it has an array that is longer than the message")
        }
        guard length <= Self.longestArray else { throw MalformedMessage("it has an array that is longer than 64 MiB") }
        let arrayEnd = position + length
        switch element.pointee {
        case UInt8(ascii: "y"):
            position = arrayEnd
        case UInt8(ascii: "b"):
            while position < arrayEnd { try bool() }
        case UInt8(ascii: "n"), UInt8(ascii: "q"), UInt8(ascii: "i"), UInt8(ascii: "u"), UInt8(ascii: "h"),
            UInt8(ascii: "x"), UInt8(ascii: "t"), UInt8(ascii: "d"):
            guard isSwapped else {
                position += (length + alignment - 1) & -alignment
                break
            }
            while position < arrayEnd {
                var type = element
                try value(&type, depth: 0)
            }
        default:
            while position < arrayEnd {
                var type = element
                try value(&type, depth: depth)
            }
        }
        guard position == arrayEnd else { throw MalformedMessage("it has an array that ends inside an element") }
    }

    private mutating func variant(depth: Int) throws(MalformedMessage) {
        let signature = try signatureText()
        guard Syntax.isSingleType(signature), var type = signature.baseAddress else {
            throw MalformedMessage("it has a variant whose signature is not one complete type")
        }
        try value(&type, depth: depth)
    }

    private mutating func bool() throws(MalformedMessage) {
        guard try uint32() <= 1 else { throw MalformedMessage("it has a boolean that is neither 0 nor 1") }
    }

    private mutating func path() throws(MalformedMessage) -> WireText {
        let text = try text()
        guard Syntax.isPath(text) else { throw MalformedMessage("it has an object path that is not well-formed") }
        return text
    }

    private mutating func signature() throws(MalformedMessage) -> WireText {
        let text = try signatureText()
        guard Syntax.isSignature(text) else { throw MalformedMessage("it has a signature that is not well-formed") }
        return text
    }

    // MARK: Bytes

    @inline(__always)
    private mutating func byte() throws(MalformedMessage) -> UInt8 {
        guard position < end else { throw Self.tooShort }
        defer { position += 1 }
        return start.load(fromByteOffset: position, as: UInt8.self)
    }

    @inline(__always)
    private mutating func uint32() throws(MalformedMessage) -> UInt32 { try number(UInt32.self) }

    @inline(__always)
    private mutating func number<T: FixedWidthInteger>(_ type: T.Type) throws(MalformedMessage) -> T {
        try align(MemoryLayout<T>.size)
        guard end - position >= MemoryLayout<T>.size else { throw Self.tooShort }
        defer { position += MemoryLayout<T>.size }
        let value = start.loadUnaligned(fromByteOffset: position, as: T.self)
        guard isSwapped else { return value }
        start.storeBytes(of: value.byteSwapped, toByteOffset: position, as: T.self)
        return value.byteSwapped
    }

    /// Skips padding, which must be zero.
    @inline(__always)
    private mutating func align(_ size: Int) throws(MalformedMessage) {
        let aligned = (position + size - 1) & -size
        guard aligned <= end else { throw Self.tooShort }
        while position < aligned {
            guard start.load(fromByteOffset: position, as: UInt8.self) == 0 else {
                throw MalformedMessage("its padding is not zero")
            }
            position += 1
        }
    }

    @inline(__always)
    private mutating func text() throws(MalformedMessage) -> WireText { try bytes(Int(uint32())) }

    @inline(__always)
    private mutating func signatureText() throws(MalformedMessage) -> WireText { try bytes(Int(byte())) }

    /// So many bytes, and the zero after them.
    private mutating func bytes(_ count: Int) throws(MalformedMessage) -> WireText {
        guard count < end - position else { throw Self.tooShort }
        let text = UnsafeRawBufferPointer(start: start + position, count: count).assumingMemoryBound(to: UInt8.self)
        position += count
        guard try byte() == 0 else { throw MalformedMessage("it has a text without a zero byte after it") }
        return text
    }

    private static var tooShort: MalformedMessage { MalformedMessage("it ends inside a value") }
}

/// The alignment of a type. For numbers it is also the size.
func alignment(of code: UInt8) -> Int {
    switch code {
    case UInt8(ascii: "y"), UInt8(ascii: "g"), UInt8(ascii: "v"): 1
    case UInt8(ascii: "n"), UInt8(ascii: "q"): 2
    case UInt8(ascii: "x"), UInt8(ascii: "t"), UInt8(ascii: "d"), UInt8(ascii: "("), UInt8(ascii: "{"): 8
    default: 4
    }
}

/// The end of the complete type that begins at `start`, in a well-formed signature.
func typeEnd(_ start: UnsafePointer<UInt8>) -> UnsafePointer<UInt8> {
    var end = start
    while end.pointee == UInt8(ascii: "a") { end += 1 }
    var depth = 0
    repeat {
        switch end.pointee {
        case UInt8(ascii: "("), UInt8(ascii: "{"): depth += 1
        case UInt8(ascii: ")"), UInt8(ascii: "}"): depth -= 1
        default: break
        }
        end += 1
    } while depth > 0
    return end
}
