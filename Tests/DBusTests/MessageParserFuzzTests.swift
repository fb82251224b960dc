import CBlueCapDBusLibrary
import TestBasics
import XCTest

@testable import BlueCapDBus

/// Random messages, valid ones and others, are accepted and read as libdbus does, or refused as it does.
///
/// The differences: a header of more than 64 MiB is refused before it has arrived.
///
/// `make explore FILTER=DBusTests.MessageParserFuzzTests SEEDS=1000` plays ten million messages.
final class MessageParserFuzzTests: RandomTestCase {
    private static let messagesPerSeed = 10_000

    func testAnyBytesAreReadOrRefusedAsByLibdbus() {
        var random = TestRandom(self)
        for _ in 0..<Self.messagesPerSeed {
            var bytes = randomMessage(&random).bytes
            for _ in 0..<random.below(4) { mutate(&bytes, &random) }
            guard let difference = difference(bytes) else { continue }
            return XCTFail("\(difference): \(hexadecimal(bytes))")
        }
    }

    func testTheKeptMessagesAreReadOrRefusedAsBefore() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let lines = try String(contentsOf: folder.appendingPathComponent("WireCorpus.txt"), encoding: .utf8)
            .split(separator: "\n").filter { !$0.hasPrefix("#") }
        XCTAssertGreaterThan(lines.count, 50)
        for line in lines {
            let parts = line.split(separator: " ", maxSplits: 1)
            let digits = Array(parts[0].utf8)
            let bytes = try stride(from: 0, to: digits.count, by: 2).map { index in
                try XCTUnwrap(UInt8(String(decoding: digits[index..<index + 2], as: UTF8.self), radix: 16))
            }
            XCTAssertNil(difference(bytes), "\(line)")
            XCTAssertEqual(verdict(bytes), "\(parts[1])", "\(line)")
        }
    }

    // MARK: Making messages

    private func randomMessage(_ random: inout TestRandom) -> RawMessage {
        let isBig = random.below(3) == 0
        let types = (0..<random.below(4)).map { _ in randomType(0, &random) }.joined()
        var message = RawMessage(types.utf8.count < 256 ? types : "", isBig: isBig)
        if types.utf8.count < 256 {
            var rest = types[...]
            while !rest.isEmpty { message.body.value(of: &rest, &random) }
        }
        message.type = UInt8(random.below(10) == 0 ? random.below(256) : 1 + random.below(4))
        message.flags = UInt8(random.below(256))
        message.serial = UInt32(1 + random.below(1000))
        var fields = [
            RawMessage.text(4, "a.Error"), RawMessage.number(5, 9), RawMessage.text(6, ":1.5"),
            RawMessage.text(7, "org.bluez"), RawMessage.number(9, 0), RawMessage.text(10, "/c", type: "o"),
        ].filter { _ in random.below(3) > 0 }
        if random.below(4) == 0 {
            let type = randomType(0, &random)
            var seed = random.split()
            fields.append(
                RawMessage.Field(code: UInt8(11 + random.below(200)), type: type) { writer in
                    var rest = type[...]
                    writer.value(of: &rest, &seed)
                })
        }
        message.fields.insert(contentsOf: fields, at: random.below(message.fields.count + 1))
        if random.below(8) == 0 { message.fields.remove(at: random.below(message.fields.count)) }
        if random.below(8) == 0 { message.fields.append(message.fields[random.below(message.fields.count)]) }
        return message
    }

    /// Bytes that begin or end something.
    private static let special =
        Array("\0\u{1}/.:-_09azAZ(){}avsybogh \u{7F}".utf8) + [0x80, 0xC0, 0xE2, 0xED, 0xF4, 0xFF]

    private func mutate(_ bytes: inout [UInt8], _ random: inout TestRandom) {
        guard bytes.count > 16 else { return }
        let index = random.below(bytes.count)
        switch random.below(8) {
        case 0: bytes[index] ^= 1 << random.below(8)
        case 1: bytes[index] = UInt8(random.below(256))
        case 2, 3: bytes[index] = Self.special[random.below(Self.special.count)]
        case 4: bytes[index] &+= random.below(2) == 0 ? 1 : 255
        case 5: bytes.swapAt(index, random.below(bytes.count))
        case 6:
            // Bytes more or fewer, with the length of the body that belongs to them.
            let order = bytes[0]
            let count = 1 + random.below(8)
            let before = bytes.count
            if random.below(2) == 0 {
                bytes.insert(contentsOf: Array(repeating: 0, count: count), at: max(16, index))
            } else {
                bytes.removeSubrange(max(16, index)..<min(bytes.count, max(16, index) + count))
            }
            let place = order == UInt8(ascii: "B") ? 7 : 4
            bytes[place] = UInt8(truncatingIfNeeded: Int(bytes[place]) + bytes.count - before)
        default:
            let length = min(1 + random.below(12), bytes.count)
            let (from, to) = (random.below(bytes.count - length + 1), random.below(bytes.count - length + 1))
            bytes.replaceSubrange(to..<to + length, with: Array(bytes[from..<from + length]))
        }
    }

    private func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    // MARK: Comparing

    private func verdict(_ bytes: [UInt8]) -> String {
        do {
            guard let message = try parsed(bytes) else { return "incomplete" }
            return "valid: \(describe(message))"
        } catch {
            return "refused: \(error)"
        }
    }

    /// What this library and libdbus do not agree on; nil if there is nothing.
    private func difference(_ bytes: [UInt8]) -> String? {
        let ours = verdict(bytes)
        let characters = bytes.map { CChar(bitPattern: $0) }
        let needed = Int(dbus_message_demarshal_bytes_needed(characters, Int32(characters.count)))
        if needed > bytes.count || needed == 0 {
            return ours == "incomplete" || ours.contains("64 MiB") ? nil : "\(ours), but libdbus waits"
        }
        var theirs = "refused"
        if needed > 0, let message = dbus_message_demarshal(characters, Int32(needed), nil) {
            theirs = "valid: \(describe(message))"
            dbus_message_unref(message)
        }
        return ours == theirs || ours.hasPrefix("refused") && theirs == "refused"
            ? nil : "\(ours), but libdbus \(theirs)"
    }

    private func describe(_ message: Message) -> String {
        let header = message.header
        var reader = message.reader
        let texts = [
            header.path, header.interface, header.member, header.errorName, header.destination, header.sender,
            header.signature,
        ].map { String(decoding: $0, as: UTF8.self) }
        return "\(header.type) \(header.serial) \(header.replySerial) \(message.expectsNoReply) \(texts) "
            + reader.describeAll()
    }

    private func describe(_ message: OpaquePointer) -> String {
        let texts = [
            dbus_message_get_path(message), dbus_message_get_interface(message), dbus_message_get_member(message),
            dbus_message_get_error_name(message), dbus_message_get_destination(message),
            dbus_message_get_sender(message), dbus_message_get_signature(message),
        ].map { $0.map { String(cString: $0) } ?? "" }
        var iterator = DBusMessageIter()
        dbus_message_iter_init(message, &iterator)
        return "\(dbus_message_get_type(message)) \(dbus_message_get_serial(message)) "
            + "\(dbus_message_get_reply_serial(message)) \(dbus_message_get_no_reply(message) != 0) \(texts) "
            + describeAll(&iterator).joined(separator: ", ")
    }

    private func describeAll(_ iterator: inout DBusMessageIter) -> [String] {
        var values: [String] = []
        while dbus_message_iter_get_arg_type(&iterator) != 0 {
            values.append(describe(&iterator))
            dbus_message_iter_next(&iterator)
        }
        return values
    }

    private func describe(_ iterator: inout DBusMessageIter) -> String {
        func basic<T: BitwiseCopyable>(_ zero: T) -> T {
            var value = zero
            dbus_message_iter_get_basic(&iterator, &value)
            return value
        }
        func inside() -> [String] {
            var inside = DBusMessageIter()
            dbus_message_iter_recurse(&iterator, &inside)
            return describeAll(&inside)
        }
        func text() -> String { basic(nil as UnsafePointer<CChar>?).map { String(cString: $0) } ?? "" }
        let type = UInt8(truncatingIfNeeded: dbus_message_iter_get_arg_type(&iterator))
        switch type {
        case UInt8(ascii: "y"): return "\(basic(UInt8(0)))"
        case UInt8(ascii: "b"): return "\(basic(UInt32(0)) != 0)"
        case UInt8(ascii: "n"): return "\(basic(Int16(0)))"
        case UInt8(ascii: "q"): return "\(basic(UInt16(0)))"
        case UInt8(ascii: "i"): return "\(basic(Int32(0)))"
        case UInt8(ascii: "u"): return "\(basic(UInt32(0)))"
        case UInt8(ascii: "x"): return "\(basic(Int64(0)))"
        case UInt8(ascii: "t"): return "\(basic(UInt64(0)))"
        case UInt8(ascii: "d"): return "\(basic(Double(0)))"
        case UInt8(ascii: "s"): return "\"\(text())\""
        case UInt8(ascii: "o"), UInt8(ascii: "g"): return text()
        case UInt8(ascii: "h"): return "?"
        case UInt8(ascii: "v"): return "<" + inside().joined(separator: ", ") + ">"
        case UInt8(ascii: "r"): return "(" + inside().joined(separator: ", ") + ")"
        case UInt8(ascii: "e"): return inside().joined(separator: ": ")
        default:
            switch UInt8(truncatingIfNeeded: dbus_message_iter_get_element_type(&iterator)) {
            case UInt8(ascii: "y"):
                var inside = DBusMessageIter()
                dbus_message_iter_recurse(&iterator, &inside)
                var bytes: UnsafePointer<UInt8>?
                var count: Int32 = 0
                dbus_message_iter_get_fixed_array(&inside, &bytes, &count)
                return "0x" + hexadecimal(Array(UnsafeBufferPointer(start: bytes, count: Int(count)).prefix(256)))
            case UInt8(ascii: "e"): return "{" + inside().joined(separator: ", ") + "}"
            default: return "[" + inside().joined(separator: ", ") + "]"
            }
        }
    }
}
