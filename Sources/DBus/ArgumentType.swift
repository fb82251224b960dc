/// The type of one value in a message, as the code that signatures spell it with.
package struct ArgumentType: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    private init(_ scalar: Unicode.Scalar) {
        rawValue = UInt8(ascii: scalar)
    }

    /// Nothing is left to read.
    package static let end = ArgumentType(rawValue: 0)
    package static let byte = ArgumentType("y")
    package static let bool = ArgumentType("b")
    package static let int16 = ArgumentType("n")
    package static let uint16 = ArgumentType("q")
    package static let int32 = ArgumentType("i")
    package static let uint32 = ArgumentType("u")
    package static let int64 = ArgumentType("x")
    package static let uint64 = ArgumentType("t")
    package static let double = ArgumentType("d")
    package static let string = ArgumentType("s")
    package static let objectPath = ArgumentType("o")
    package static let signature = ArgumentType("g")
    package static let descriptor = ArgumentType("h")
    package static let array = ArgumentType("a")
    package static let variant = ArgumentType("v")
    package static let structure = ArgumentType("r")
    package static let dictionaryEntry = ArgumentType("e")

    package var description: String {
        self == .end ? "end" : String(Unicode.Scalar(rawValue))
    }

    var code: Int32 { Int32(rawValue) }
}
