// How values lie in a message. What comes in here was validated by libdbus when it was received, and the signature tells
// truly what the bytes are; so nothing is checked again (but that debug builds check every access to stay in bounds).

extension MessageReader {
    /// A container that is being read: what stands behind it.
    @usableFromInline
    struct Container {
        let types: UnsafePointer<UInt8>
        let typesEnd: UnsafePointer<UInt8>
    }

    /// An array that is being read: where it ends, what its elements are, and what stands behind it.
    @usableFromInline
    struct Elements {
        let end: Int
        let types: UnsafePointer<UInt8>
        let typesEnd: UnsafePointer<UInt8>
        let areEntries: Bool
        let outside: Container
    }

    // MARK: Containers

    @usableFromInline
    mutating func enterStructure() -> Container? {
        guard isAt("(") else { return nil }
        return enterFields()
    }

    /// A structure and a dictionary entry lie the same way.
    private mutating func enterFields() -> Container {
        let end = typeEnd(types)
        defer {
            align(8)
            types += 1
            typesEnd = end - 1
        }
        return Container(types: end, typesEnd: typesEnd)
    }

    @usableFromInline
    mutating func enterVariant() -> Container? {
        guard isAt("v") else { return nil }
        let outside = Container(types: types + 1, typesEnd: typesEnd)
        let length = Int(take() as UInt8)
        let signature = slice(length + 1)
        position += signature.count
        if let start = signature.baseAddress {
            types = start
            typesEnd = start + length
        }
        return outside
    }

    /// Stands behind the container, wherever the inside was left.
    @usableFromInline
    mutating func leave(to outside: Container) {
        while !isAtEnd { step() }
        types = outside.types
        typesEnd = outside.typesEnd
    }

    @usableFromInline
    mutating func enterArray(ofEntries areEntries: Bool) -> Elements? {
        guard isAt("a"), (types[1] == UInt8(ascii: "{")) == areEntries else { return nil }
        let element = types + 1
        let elementEnd = typeEnd(element)
        let length = Int(take() as UInt32)
        align(alignment(of: element.pointee))
        let outside = Container(types: elementEnd, typesEnd: typesEnd)
        defer {
            // Nothing of an element is left yet.
            types = elementEnd
            typesEnd = elementEnd
        }
        return Elements(
            end: position + length, types: areEntries ? element + 1 : element,
            typesEnd: areEntries ? elementEnd - 1 : elementEnd, areEntries: areEntries, outside: outside)
    }

    /// Goes to the next element, wherever the one before was left. False where there is none.
    @usableFromInline
    mutating func goToNext(of elements: Elements) -> Bool {
        while !isAtEnd { step() }
        guard position < elements.end else { return false }
        if elements.areEntries { align(8) }
        types = elements.types
        typesEnd = elements.typesEnd
        return true
    }

    /// Stands behind the array, also when its elements were not all read.
    @usableFromInline
    mutating func leave(to elements: Elements) {
        position = elements.end
        types = elements.outside.types
        typesEnd = elements.outside.typesEnd
    }

    // MARK: Bytes

    @inline(__always)
    func isAt(_ code: Unicode.Scalar) -> Bool { types != typesEnd && types.pointee == UInt8(ascii: code) }

    @inline(__always)
    mutating func align(_ size: Int) { position = (position + size - 1) & -size }

    /// The number at the position, which goes behind it. Numbers are aligned to their own size.
    @inline(__always)
    mutating func take<T: BitwiseCopyable>() -> T {
        align(MemoryLayout<T>.size)
        defer { position += MemoryLayout<T>.size }
        return wire.loadUnaligned(fromByteOffset: position, as: T.self)
    }

    @inline(__always)
    func slice(_ length: Int) -> UnsafeBufferPointer<UInt8> {
        UnsafeRawBufferPointer(rebasing: wire[position..<position + length]).assumingMemoryBound(to: UInt8.self)
    }

    /// Steps over one value.
    mutating func step() {
        switch types.pointee {
        case UInt8(ascii: "s"), UInt8(ascii: "o"):
            _ = stringBytes()
        case UInt8(ascii: "v"):
            if let outside = enterVariant() { leave(to: outside) }
        case UInt8(ascii: "a"):
            let element = types + 1
            types = typeEnd(element)
            let length = Int(take() as UInt32)
            align(alignment(of: element.pointee))
            position += length
        case UInt8(ascii: "("), UInt8(ascii: "{"):
            let outside = enterFields()
            leave(to: outside)
        case UInt8(ascii: "g"):
            types += 1
            position += Int(take() as UInt8) + 1
        case let code:
            let size = alignment(of: code)
            align(size)
            position += size
            types += 1
        }
    }

    /// Of numbers it is their size too.
    private func alignment(of code: UInt8) -> Int {
        switch code {
        case UInt8(ascii: "y"), UInt8(ascii: "g"), UInt8(ascii: "v"): 1
        case UInt8(ascii: "n"), UInt8(ascii: "q"): 2
        case UInt8(ascii: "x"), UInt8(ascii: "t"), UInt8(ascii: "d"), UInt8(ascii: "("), UInt8(ascii: "{"): 8
        default: 4
        }
    }

    /// The end of the complete type that begins there.
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
}

extension ArgumentType {
    /// Signatures write containers with their brackets, everybody else with a letter.
    init(signatureCode: UInt8) {
        self =
            switch signatureCode {
            case UInt8(ascii: "("): .structure
            case UInt8(ascii: "{"): .dictionaryEntry
            default: ArgumentType(rawValue: signatureCode)
            }
    }
}
