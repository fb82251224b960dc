import BlueCapDBus
import TestBasics
import XCTest

/// Random messages, read in wrong ways: nothing may trap, loop, or be lost.
final class MessageFuzzTests: RandomTestCase {
    private lazy var random = TestRandom(self)

    func testRandomMessagesAreReadAsTheyWereWritten() {
        for _ in 0..<2_000 {
            let types = (0..<Int.random(in: 0...4, using: &random)).map { _ in randomType(depth: 0) }
            var expected: [String] = []
            let message = Message.signal(path: "/", interface: "a.b", member: "C") { writer in
                for type in types { expected.append(write(type, to: &writer)) }
            }
            XCTAssertEqual(message.signature, types.joined())
            var reader = message.reader
            XCTAssertEqual(reader.describeAll(), expected.joined(separator: ", "))
        }
    }

    func testRandomMessagesReadInWrongWaysNeverTrapNorRunForEver() {
        for _ in 0..<2_000 {
            let message = Message.signal(path: "/", interface: "a.b", member: "C") { writer in
                for _ in 0..<Int.random(in: 0...4, using: &random) { _ = write(randomType(depth: 0), to: &writer) }
            }
            var reader = message.reader
            var steps = 0
            misread(&reader, depth: 0, steps: &steps)
            XCTAssertLessThan(steps, 1_000_000)
            var count = 0
            var skipper = message.reader
            while !skipper.isAtEnd {
                skipper.skip()
                count += 1
            }
            XCTAssertLessThanOrEqual(count, 4)
        }
    }

    /// Reads values of random types, which may not be present, and steps at random.
    private func misread(_ reader: inout MessageReader, depth: Int, steps: inout Int) {
        for _ in 0..<8 where depth < 4 {
            steps += 1
            switch Int.random(in: 0..<16, using: &random) {
            case 0: _ = reader.byte()
            case 1: _ = reader.bool()
            case 2: _ = reader.int16()
            case 3: _ = reader.uint64()
            case 4: _ = reader.double()
            case 5: _ = reader.string()
            case 6: _ = reader.objectPath()
            case 7: _ = reader.signatureValue()
            case 8: _ = reader.bytes()
            case 9: _ = reader.strings()
            case 10: reader.array { self.misread(&$0, depth: depth + 1, steps: &steps) }
            case 11: reader.dictionary { self.misread(&$0, depth: depth + 1, steps: &steps) }
            case 12: reader.structure { self.misread(&$0, depth: depth + 1, steps: &steps) }
            case 13: reader.variant { self.misread(&$0, depth: depth + 1, steps: &steps) }
            case 14: _ = reader.signature
            default: reader.skip()
            }
        }
    }

    private func randomType(depth: Int) -> String {
        let basic = ["y", "b", "n", "q", "i", "u", "x", "t", "d", "s", "o", "g"]
        switch Int.random(in: 0..<(depth < 3 ? 16 : 12), using: &random) {
        case 12: return "a" + randomType(depth: depth + 1)
        case 13: return "v"
        case 14:
            let fields = (0..<Int.random(in: 1...3, using: &random)).map { _ in randomType(depth: depth + 1) }
            return "(" + fields.joined() + ")"
        case 15:
            return "a{" + basic[Int.random(in: 0..<basic.count, using: &random)] + randomType(depth: depth + 1) + "}"
        case let index: return basic[index % basic.count]
        }
    }

    /// Writes a random value of the type, and returns its description.
    private func write(_ type: String, to writer: inout MessageWriter) -> String {
        func number<T: FixedWidthInteger>(_ write: (T) -> Void) -> String {
            let value = T.random(in: .min ... .max, using: &random)
            write(value)
            return "\(value)"
        }
        switch type.first {
        case "y": return number { writer.byte($0) }
        case "n": return number { writer.int16($0) }
        case "q": return number { writer.uint16($0) }
        case "i": return number { writer.int32($0) }
        case "u": return number { writer.uint32($0) }
        case "x": return number { writer.int64($0) }
        case "t": return number { writer.uint64($0) }
        case "b":
            let value = Bool.random(using: &random)
            writer.bool(value)
            return "\(value)"
        case "d":
            let value = Double.random(in: -1e9...1e9, using: &random)
            writer.double(value)
            return "\(value)"
        case "s":
            let value = String(
                (0..<Int.random(in: 0...20, using: &random)).map { _ in "aé€😀 '\"".randomElement(using: &random) ?? "a"
                })
            writer.string(value)
            return "\"\(value)\""
        case "o":
            let value = ObjectPath.root.appending("n\(UInt16.random(in: .min ... .max, using: &random))")
            writer.objectPath(value)
            return value.rawValue
        case "g":
            writer.signature("a{sv}")
            return "a{sv}"
        case "v":
            let inner = randomType(depth: 3)
            var text = ""
            writer.variant(inner) { text = write(inner, to: &$0) }
            return "<" + text + ">"
        case "(":
            var texts: [String] = []
            writer.structure { fields in
                for field in Self.split(String(type.dropFirst().dropLast())) { texts.append(write(field, to: &fields)) }
            }
            return "(" + texts.joined(separator: ", ") + ")"
        default:
            return writeArray(String(type.dropFirst()), to: &writer)
        }
    }

    private func writeArray(_ element: String, to writer: inout MessageWriter) -> String {
        let count = Int.random(in: 0...3, using: &random)
        if element == "y" {
            let bytes = random.bytes(count)
            writer.bytes(bytes)
            return "0x" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
        var texts: [String] = []
        guard element.hasPrefix("{") else {
            writer.array(of: element) { array in for _ in 0..<count { texts.append(write(element, to: &array)) } }
            return "[" + texts.joined(separator: ", ") + "]"
        }
        let parts = Self.split(String(element.dropFirst().dropLast()))
        writer.dictionary(key: parts[0], value: parts[1]) { dictionary in
            for _ in 0..<count {
                dictionary.entry { texts.append(write(parts[0], to: &$0) + ": " + write(parts[1], to: &$0)) }
            }
        }
        return "{" + texts.joined(separator: ", ") + "}"
    }

    /// The complete types of a signature, one by one.
    private static func split(_ signature: String) -> [String] {
        var types: [String] = []
        var current = ""
        var depth = 0
        for character in signature {
            current.append(character)
            if character == "(" || character == "{" { depth += 1 }
            if character == ")" || character == "}" { depth -= 1 }
            if depth == 0, character != "a" {
                types.append(current)
                current = ""
            }
        }
        return types
    }
}
