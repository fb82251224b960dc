import BlueCapDBus
import Glibc
import XCTest

/// Steps from value to value, after any part of the former value was read.
final class MessageReaderSteppingTests: XCTestCase {
    private func message(_ body: (inout MessageWriter) -> Void) -> Message {
        .signal(path: "/", interface: "org.example.Test", member: "Values", body: body)
    }

    func testAfterAnEmptyDictionaryComesTheNextValue() {
        let message = message {
            $0.string("first")
            $0.dictionary(key: "s", value: "v") { _ in }
            $0.strings(["a", "b"])
            $0.uint32(7)
        }
        var reader = message.reader
        reader.skip()
        XCTAssertTrue(reader.dictionary { _ in XCTFail("the dictionary is empty") })
        XCTAssertEqual(reader.elementType, .string)
        XCTAssertEqual(reader.strings(), ["a", "b"])
        XCTAssertFalse(reader.isAtEnd)
        XCTAssertEqual(reader.uint32(), 7)
        XCTAssertTrue(reader.isAtEnd)
    }

    func testAValueOfAnotherTypeIsNotSteppedOver() {
        let message = message {
            $0.uint16(5)
            $0.variant("as") { $0.strings(["x"]) }
            $0.bytes([1, 2])
        }
        var reader = message.reader
        XCTAssertNil(reader.string())
        XCTAssertFalse(reader.array { _ in })
        XCTAssertEqual(reader.uint16(), 5)
        XCTAssertNil(reader.bytes())
        XCTAssertNil(reader.variant { $0.uint32() })
        XCTAssertEqual(reader.signature, "ay")
        XCTAssertEqual(reader.bytes(), [1, 2])
        XCTAssertTrue(reader.isAtEnd)
        XCTAssertNil(reader.bytes())
        reader.skip()
        XCTAssertTrue(reader.isAtEnd)
    }

    func testDescriptorsAreDistinguishedInAnyPlace() throws {
        var ends: [[Int32]] = []
        for _ in 0..<3 {
            var pair: [Int32] = [-1, -1]
            XCTAssertEqual(pipe(&pair), 0)
            ends.append(pair)
        }
        defer { for pair in ends { for end in pair { close(end) } } }
        let message = message {
            $0.variant("h") { $0.descriptor(ends[0][1]) }
            $0.byte(1)
            $0.structure {
                $0.string("second")
                $0.descriptor(ends[1][1])
            }
            $0.descriptor(ends[2][1])
        }
        var reader = message.reader
        reader.skip()
        reader.skip()
        let second = try XCTUnwrap(
            reader.structure {
                $0.skip()
                return $0.descriptor()
            })
        let third = try XCTUnwrap(reader.descriptor())
        for (index, descriptor) in [(1, second), (2, third)] {
            XCTAssertEqual(write(try XCTUnwrap(descriptor.rawValue), [UInt8(index)], 1), 1)
            var byte: UInt8 = 0
            XCTAssertEqual(read(ends[index][0], &byte, 1), 1)
            XCTAssertEqual(byte, UInt8(index))
        }
        XCTAssertTrue(reader.isAtEnd)
    }

    func testABodyMayLeaveAContainerAnywhere() {
        let message = message {
            $0.structure {
                $0.byte(1)
                $0.string("rest")
            }
            $0.dictionary(key: "s", value: "v") { dictionary in
                for key in ["a", "b", "c"] { dictionary.entry(key, variant: "s") { $0.string(key + key) } }
            }
            $0.bool(true)
        }
        var reader = message.reader
        XCTAssertEqual(reader.structure { $0.byte() }, 1)
        var keys: [String] = []
        reader.dictionary { keys.append($0.string() ?? "?") }
        XCTAssertEqual(keys, ["a", "b", "c"])
        XCTAssertEqual(reader.bool(), true)
    }
}
