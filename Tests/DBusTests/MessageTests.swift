import BlueCapDBus
import Glibc
import XCTest

final class MessageTests: XCTestCase {
    private func signal(_ body: (inout MessageWriter) -> Void = { _ in }) -> Message {
        .signal(path: "/org/bluez/hci0", interface: "org.bluez.Test1", member: "Changed", body: body)
    }

    // MARK: Headers

    func testACallHasWhatItWasMadeWith() {
        let call = Message.call(
            destination: "org.bluez", path: "/org/bluez/hci0", interface: "org.bluez.Adapter1", member: "StartDiscovery"
        )

        XCTAssertEqual(call.kind, .call)
        XCTAssertEqual(call.destination, "org.bluez")
        XCTAssertEqual(call.path, "/org/bluez/hci0")
        XCTAssertEqual(call.interface, "org.bluez.Adapter1")
        XCTAssertEqual(call.member, "StartDiscovery")
        XCTAssertEqual(call.signature, "")
        XCTAssertNil(call.sender)
        XCTAssertNil(call.error)
        XCTAssertTrue(call.isCall(interface: "org.bluez.Adapter1", member: "StartDiscovery"))
        XCTAssertFalse(call.isSignal(interface: "org.bluez.Adapter1", member: "StartDiscovery"))
    }

    func testCallsOfATemplateDifferInPathAndBody() {
        let template = CallTemplate(
            destination: "org.bluez", interface: "org.bluez.GattCharacteristic1", member: "WriteValue")
        let paths = ["/", "/a", "/org/bluez/hci0/dev_AA_BB_CC_DD_EE_FF/service0028/char002a"]
        for (number, path) in zip(UInt8(0)..., paths) {
            let body: (inout MessageWriter) -> Void = { writer in
                writer.bytes([number])
                writer.options { $0.entry("offset", variant: "q") { $0.uint16(7) } }
            }
            let expected = Message.call(
                destination: "org.bluez", path: ObjectPath(stringLiteral: path),
                interface: "org.bluez.GattCharacteristic1", member: "WriteValue", body: body)
            let call = template.call(path, body: body)
            XCTAssertEqual("\(call)", "\(expected)")
            XCTAssertEqual(call.signature, "aya{sv}")
            XCTAssertEqual(call.serial, 0)
            XCTAssertFalse(call.expectsNoReply)
        }
    }

    func testCallsOfATemplateHaveItsBody() {
        let template = CallTemplate(
            destination: "org.bluez", interface: "org.bluez.GattCharacteristic1", member: "ReadValue"
        ) { $0.options { _ in } }
        for path in ["/a", "/b/c"] {
            let call = template.call(path)
            XCTAssertEqual(call.path?.rawValue, path)
            XCTAssertEqual(call.signature, "a{sv}")
            XCTAssertTrue(call.isCall(interface: "org.bluez.GattCharacteristic1", member: "ReadValue"))
        }
    }

    func testATemplateConfusesNoPathWithThoseOfItsLastCalls() {
        let template = CallTemplate(destination: "org.bluez", interface: "a.B", member: "C")
        // The same end; the start of another; more than a template keeps.
        let paths = ["/a/char002a", "/b/char002a", "/a/char002", "/a/char002a/desc002a"] + (0..<500).map { "/p\($0)" }
        for round in UInt8(0)..<3 {
            for path in paths {
                let call = template.call(path) { $0.byte(round) }
                XCTAssertEqual(call.path?.rawValue, path)
                var reader = call.reader
                XCTAssertEqual(reader.byte(), round)
                XCTAssertTrue(reader.isAtEnd)
            }
        }
    }

    func testHeadersAreComparedInPlace() {
        let message = signal()

        XCTAssertTrue(message.isSignal(interface: "org.bluez.Test1", member: "Changed"))
        XCTAssertFalse(message.isSignal(interface: "org.bluez.Test1", member: "Change"))
        XCTAssertEqual(message.path, "/org/bluez/hci0")
        XCTAssertFalse(message.hasSender("org.bluez"))
        XCTAssertEqual(message.withPath { String(decoding: $0, as: UTF8.self) }, "/org/bluez/hci0")
        XCTAssertNil(message.sender)
    }

    // MARK: Values

    func testNumbersComeBackAsTheyWereWritten() {
        let message = signal {
            $0.byte(0xFE)
            $0.bool(true)
            $0.bool(false)
            $0.int16(-32_768)
            $0.uint16(65_535)
            $0.int32(.min)
            $0.uint32(.max)
            $0.int64(.min)
            $0.uint64(.max)
            $0.double(-1.5e300)
        }
        XCTAssertEqual(message.signature, "ybbnqiuxtd")

        var reader = message.reader
        XCTAssertEqual(reader.byte(), 0xFE)
        XCTAssertEqual(reader.bool(), true)
        XCTAssertEqual(reader.bool(), false)
        XCTAssertEqual(reader.int16(), -32_768)
        XCTAssertEqual(reader.uint16(), 65_535)
        XCTAssertEqual(reader.int32(), .min)
        XCTAssertEqual(reader.uint32(), .max)
        XCTAssertEqual(reader.int64(), .min)
        XCTAssertEqual(reader.uint64(), .max)
        XCTAssertEqual(reader.double(), -1.5e300)
        XCTAssertTrue(reader.isAtEnd)
    }

    func testTextsComeBackAsTheyWereWritten() {
        let message = signal {
            $0.string("")
            $0.string("Wärmefühler 🌡️")
            $0.objectPath("/org/bluez/hci0/dev_00_11")
            $0.signature("a{sv}")
        }
        var reader = message.reader
        XCTAssertEqual(reader.string(), "")
        XCTAssertEqual(reader.withString { $0.count }, "Wärmefühler 🌡️".utf8.count)
        XCTAssertEqual(reader.objectPath(), "/org/bluez/hci0/dev_00_11")
        XCTAssertEqual(reader.signatureValue(), "a{sv}")
    }

    func testATextEndsAtAZeroByteWhichTheWireCannotCarry() {
        var reader = signal { $0.string("cut\u{0}here") }.reader
        XCTAssertEqual(reader.string(), "cut")
    }

    func testBytesComeBackInOnePiece() {
        let payload = Data((0..<244).map { UInt8(truncatingIfNeeded: $0 * 7) })
        let message = signal {
            $0.bytes(payload)
            $0.bytes([UInt8]())
        }
        XCTAssertEqual(message.signature, "ayay")

        var reader = message.reader
        XCTAssertEqual(reader.bytes(), Array(payload))
        XCTAssertEqual(reader.withBytes { $0.count }, 0)
        XCTAssertTrue(reader.isAtEnd)
    }

    func testContainersNest() {
        let message = signal { writer in
            writer.dictionary(key: "q", value: "v") { dictionary in
                dictionary.entry { entry in
                    entry.uint16(0x004C)
                    entry.variant("ay") { $0.bytes([2, 0x15]) }
                }
            }
            writer.array(of: "(on)") { array in
                for number in 1...3 {
                    array.structure { fields in
                        fields.objectPath("/x")
                        fields.int16(Int16(-number))
                    }
                }
            }
            writer.dictionary(key: "s", value: "v") { $0.entry("Connected", variant: "b") { $0.bool(true) } }
        }
        XCTAssertEqual(message.signature, "a{qv}a(on)a{sv}")

        var reader = message.reader
        var makers: [UInt16: [UInt8]] = [:]
        XCTAssertTrue(
            reader.dictionary { entry in
                guard let company = entry.uint16(), let data = entry.variant({ $0.bytes() }) else { return }
                makers[company] = data
            })
        XCTAssertEqual(makers, [0x004C: [2, 0x15]])
        var numbers: [Int16] = []
        XCTAssertTrue(
            reader.array { element in
                let number = element.structure { fields -> Int16? in
                    fields.skip()
                    return fields.int16()
                }
                if let number { numbers.append(number) }
            })
        XCTAssertEqual(numbers, [-1, -2, -3])
        var connected: Bool?
        reader.dictionary { entry in
            guard entry.skip(ifString: "Connected") else { return }
            connected = entry.variant { $0.bool() }
        }
        XCTAssertEqual(connected, true)
        XCTAssertTrue(reader.isAtEnd)
    }

    func testArraysOfTextsHaveAShortForm() {
        let message = signal {
            $0.strings(["180d", "180f"])
            $0.objectPaths(["/a", "/b"])
            $0.strings([String]())
        }
        var reader = message.reader
        XCTAssertNil(reader.objectPaths())
        XCTAssertEqual(reader.strings(), ["180d", "180f"])
        XCTAssertEqual(reader.objectPaths(), ["/a", "/b"])
        XCTAssertEqual(reader.strings(), [])
    }

    // MARK: What is of another type

    func testAValueOfAnotherTypeGivesNilAndIsNotConsumed() {
        let message = signal { $0.variant("s") { $0.string("text") } }
        var reader = message.reader

        XCTAssertNil(reader.byte())
        XCTAssertNil(reader.bool())
        XCTAssertNil(reader.string())
        XCTAssertNil(reader.objectPath())
        XCTAssertNil(reader.bytes())
        XCTAssertNil(reader.strings())
        XCTAssertNil(reader.descriptor())
        XCTAssertFalse(reader.array { _ in XCTFail("A variant is no array.") })
        XCTAssertFalse(reader.dictionary { _ in XCTFail("A variant is no dictionary.") })
        XCTAssertNil(reader.structure { $0.string() })
        XCTAssertEqual(reader.type, .variant)
        XCTAssertEqual(reader.variant { $0.string() }, "text")
    }

    func testAVariantOfAnotherContentGivesNilAndIsPassed() {
        let message = signal {
            $0.variant("s") { $0.string("not a number") }
            $0.byte(7)
        }
        var reader = message.reader
        XCTAssertNil(reader.variant { $0.int16() })
        XCTAssertEqual(reader.byte(), 7)
    }

    func testReadingPastTheEndGivesNil() {
        var reader = signal().reader
        XCTAssertTrue(reader.isAtEnd)
        XCTAssertEqual(reader.type, .end)
        XCTAssertEqual(reader.signature, "")
        XCTAssertNil(reader.string())
        XCTAssertNil(reader.variant { $0.string() })
        reader.skip()
        XCTAssertTrue(reader.isAtEnd)
    }

    func testWhereABodyLeavesTheReaderDoesNotMatter() {
        let message = signal { writer in
            writer.array(of: "u") { array in for number in UInt32(1)...4 { array.uint32(number) } }
            writer.string("behind")
        }
        var reader = message.reader
        var visits = 0
        reader.array { element in
            visits += 1
            // Nothing, one, or far too much.
            for _ in 0..<(visits * 3 - 3) { _ = element.uint32() }
        }
        XCTAssertEqual(visits, 4)
        XCTAssertEqual(reader.string(), "behind")
    }

    func testAnEmptyArrayIsStillAnArray() {
        let message = signal {
            $0.dictionary(key: "s", value: "v") { _ in }
            $0.array(of: "i") { _ in }
        }
        var reader = message.reader
        XCTAssertFalse(reader.array { _ in })
        XCTAssertTrue(reader.dictionary { _ in XCTFail("It is empty.") })
        XCTAssertEqual(reader.elementType, .int32)
        XCTAssertTrue(reader.array { _ in XCTFail("It is empty.") })
    }

    func testAnErrorThrownByABodyLeavesTheReaderBehindTheContainer() {
        struct Stop: Error {}
        let message = signal {
            $0.array(of: "u") { array in for number in UInt32(1)...4 { array.uint32(number) } }
            $0.string("behind")
        }
        var reader = message.reader
        XCTAssertThrowsError(try reader.array { _ in throw Stop() })
        XCTAssertEqual(reader.string(), "behind")
    }

    func testAReaderKeepsItsMessage() {
        func reader() -> MessageReader { signal { $0.string("still here") }.reader }
        var kept = reader()
        XCTAssertEqual(kept.string(), "still here")
    }

    // MARK: Descriptors

    func testADescriptorTravelsAsADuplicate() throws {
        var ends: [Int32] = [0, 0]
        XCTAssertEqual(pipe(&ends), 0)
        let (source, sink) = (OwnedDescriptor(owning: ends[0]), OwnedDescriptor(owning: ends[1]))
        let message = signal {
            $0.descriptor(ends[1])
            $0.uint16(23)
        }
        sink.close()

        var reader = message.reader
        let received = try XCTUnwrap(reader.descriptor())
        XCTAssertEqual(reader.uint16(), 23)
        var byte: UInt8 = 42
        XCTAssertEqual(write(try XCTUnwrap(received.rawValue), &byte, 1), 1)
        byte = 0
        XCTAssertEqual(read(try XCTUnwrap(source.rawValue), &byte, 1), 1)
        XCTAssertEqual(byte, 42)
    }

    func testAnOwnedDescriptorClosesItselfUnlessTaken() throws {
        var ends: [Int32] = [0, 0]
        XCTAssertEqual(pipe(&ends), 0)
        do { _ = OwnedDescriptor(owning: ends[0]) }
        XCTAssertEqual(fcntl(ends[0], F_GETFD), -1)

        do { XCTAssertEqual(OwnedDescriptor(owning: ends[1]).take(), ends[1]) }
        XCTAssertNotEqual(fcntl(ends[1], F_GETFD), -1)
        close(ends[1])
    }

    // MARK: Descriptions

    func testADescriptionShowsHeaderAndValues() {
        let message = signal {
            $0.string("org.bluez.Device1")
            $0.dictionary(key: "s", value: "v") { dictionary in
                dictionary.entry("RSSI", variant: "n") { $0.int16(-60) }
                dictionary.entry("Value", variant: "ay") { $0.bytes([1, 255]) }
            }
            $0.strings(["TxPower"])
        }
        XCTAssertEqual(
            "\(message)",
            """
            signal /org/bluez/hci0 org.bluez.Test1.Changed \
            ("org.bluez.Device1", {"RSSI": <-60>, "Value": <0x01ff>}, ["TxPower"])
            """)
    }
}
