import BlueCapKit
import Foundation
import XCTest

@testable import bluecap

final class ExplorerStateTests: XCTestCase {
    private typealias Effect = ExplorerState.Effect

    private let strap = Samples.strap.identifier
    private let rate = AttributeTree.Characteristic(
        handle: 0x29, uuid: CBUUID(string: "2A37"), name: "Heart Rate Measurement", properties: [.notify],
        isDecoded: true,
        descriptors: [.init(handle: 0x2B, uuid: CBUUID(string: "2902"), reading: .value(AttributeValue(Data([1, 0]))))])
    private let location = AttributeTree.Characteristic(
        handle: 0x2C, uuid: CBUUID(string: "2A38"), name: "Body Sensor Location", properties: [.read],
        reading: .value(AttributeValue(Data([1]))))
    private let control = AttributeTree.Characteristic(
        handle: 0x2E, uuid: CBUUID(string: "2A39"), properties: [.write])

    /// A table of three peripherals, of which the strap is the strongest.
    private func table() -> ExplorerState {
        var state = ExplorerState()
        for sighting in [
            Samples.strap, Samples.sighting(3, name: "Garden", rssi: -80),
            Samples.sighting(4, name: "Attic", rssi: -90),
        ] {
            _ = state.board.see(sighting, at: 0)
        }
        _ = state.visibleRows()
        return state
    }

    /// The tree of the strap, with a service of three characteristics.
    private func tree() -> ExplorerState {
        var state = table()
        XCTAssertEqual(state.press(.enter), .connect(strap))
        state.devices[strap]?.link = .connected
        state.devices[strap]?.tree = AttributeTree(
            identifier: strap, address: Samples.strap.address, addressType: "random", name: "Pulse Strap 7F",
            services: [
                .init(
                    handle: 0x28, uuid: CBUUID(string: "180D"), name: "Heart Rate",
                    characteristics: [rate, location, control])
            ])
        return state
    }

    private func select(_ handle: UInt32, in state: inout ExplorerState) {
        _ = state.press(.home)
        for _ in 0..<10 where state.devices[strap]?.selected != handle { _ = state.press(.down) }
        XCTAssertEqual(state.devices[strap]?.selected, handle)
    }

    /// The effects of keys, in their order.
    private func press(_ keys: Key..., in state: inout ExplorerState) -> [Effect] {
        keys.compactMap { state.press($0) }
    }

    private func write(_ text: String, in state: inout ExplorerState) {
        for character in text { XCTAssertNil(state.press(.character(character))) }
    }

    // MARK: The table

    func testTheSelectionMovesAndStaysAtTheEnds() {
        var state = table()
        let names: () -> String? = { state.selected.flatMap { state.board[$0]?.sighting.name } }
        XCTAssertEqual(names(), "Pulse Strap 7F")
        for (key, name) in [
            (Key.up, "Pulse Strap 7F"), (.down, "Garden"), (.character("j"), "Attic"), (.down, "Attic"),
            (.character("k"), "Garden"), (.home, "Pulse Strap 7F"), (.end, "Attic"), (.pageUp, "Pulse Strap 7F"),
            (.wheelDown, "Attic"), (.character("g"), "Pulse Strap 7F"), (.click(row: 2), "Garden"),
            (.click(row: 9), "Garden"), (.click(row: 0), "Garden"),
        ] {
            XCTAssertNil(state.press(key), "\(key)")
            XCTAssertEqual(names(), name, "\(key)")
        }
    }

    func testTheSelectionFollowsItsPeripheralWhenTheOrderChanges() {
        var state = table()
        _ = press(.down, .character("s"), in: &state)
        XCTAssertEqual(state.board.order, .name)
        XCTAssertEqual(state.visibleRows().rows.map(\.sighting.nameText), ["Attic", "Garden", "Pulse Strap 7F"])
        XCTAssertEqual(state.selected.flatMap { state.board[$0]?.sighting.name }, "Garden")
        _ = press(.character("s"), .character("s"), in: &state)
        XCTAssertEqual(state.board.order, .strength)
    }

    func testAFilterIsTypedAndRemoved() {
        var state = table()
        let count: () -> Int = { state.visibleRows().count }
        _ = press(.character("/"), in: &state)
        write("GAR", in: &state)
        XCTAssertEqual(count(), 1)
        XCTAssertEqual(press(.enter, .character("q"), in: &state), [.quit], "q is a key again")
        _ = press(.escape, in: &state)
        XCTAssertEqual(count(), 3, "Escape removes the filter before it quits")
        XCTAssertEqual(press(.escape, in: &state), [.quit])
        _ = press(.character("/"), in: &state)
        write("q", in: &state)
        XCTAssertEqual(count(), 0)
        _ = press(.escape, in: &state)
        XCTAssertEqual(count(), 3)
    }

    func testAFilterFindsAddressesServicesAndMakers() {
        var state = table()
        for (text, count) in [("c0:5a", 3), ("heart", 1), ("polar", 1), ("18:04", 1), ("nothing", 0)] {
            state.board.filter = text
            XCTAssertEqual(state.visibleRows().count, count, text)
        }
    }

    func testEnterConnectsOnce() {
        var state = tree()
        XCTAssertEqual(press(.escape, .enter, in: &state), [], "it is connected already")
        XCTAssertEqual(press(.character("d"), in: &state), [.disconnect(strap)])
        state.devices[strap]?.link = .ended
        XCTAssertEqual(press(.character("c"), in: &state), [.connect(strap)])
    }

    func testTabGoesThroughTheConnectedPeripherals() {
        var state = tree()
        let other = Samples.sighting(3, name: "Garden", rssi: -80).identifier
        state.devices[other] = .init(link: .connected)
        XCTAssertEqual(state.place, .tree(strap))
        _ = state.press(.tab)
        XCTAssertEqual(state.place, .tree(other))
        _ = state.press(.tab)
        XCTAssertEqual(state.place, .table)
        _ = state.press(.tab)
        XCTAssertEqual(state.place, .tree(strap))
    }

    // MARK: A tree

    func testKeysOfATree() {
        var state = tree()
        for (handle, key, effect) in [
            (0x2C, Key.character("r"), Effect.read(strap, [0x2C])), (0x2C, .enter, .read(strap, [0x2C])),
            (0x28, .character("r"), .read(strap, [0x2C])), (0x2B, .character("r"), .read(strap, [0x2B])),
            (0x28, .character("R"), .read(strap, [0x2B, 0x2C])), (0x29, .character("n"), .notify(strap, 0x29, true)),
            (0x2B, .character("n"), .notify(strap, 0x29, true)), (0x28, .character("p"), .pair(strap)),
            (0x2C, .character("y"), .copy("01")), (0x2E, .character("y"), .copy("2A39")),
        ] as [(UInt32, Key, Effect)] {
            select(handle, in: &state)
            XCTAssertEqual(state.press(key), effect, "\(handle) \(key)")
        }
        state.devices[strap]?.live = [0x29]
        select(0x29, in: &state)
        XCTAssertEqual(state.press(.character("n")), .notify(strap, 0x29, false))
    }

    func testWhatACharacteristicCannotDoHasItsReason() {
        var state = tree()
        for (handle, key, text) in [
            (0x29, Key.character("r"), "Heart Rate Measurement cannot be read: n receives its values."),
            (0x29, .character("w"), "Heart Rate Measurement cannot be written."),
            (0x2C, .character("n"), "Body Sensor Location sends no values."),
            (0x2E, .enter, "2A39 cannot be read."), (0x28, .character("w"), "Select a characteristic."),
        ] as [(UInt32, Key, String)] {
            select(handle, in: &state)
            XCTAssertNil(state.press(key))
            XCTAssertEqual(state.message, .init(text: text, isError: true))
        }
    }

    func testAServiceIsFolded() {
        var state = tree()
        let handles: () -> [UInt32?] = {
            state.visibleEntries(of: self.strap, TreeText(page: Page(isColoured: false, glyphs: .ascii))).map(\.handle)
        }
        XCTAssertEqual(handles(), [0x28, 0x29, 0x2B, 0x2C, 0x2E])
        select(0x28, in: &state)
        _ = state.press(.enter)
        XCTAssertEqual(handles(), [0x28])
        _ = state.press(.right)
        XCTAssertEqual(handles().count, 5)
        select(0x2B, in: &state)
        _ = press(.left, .left, .left, in: &state)
        XCTAssertEqual(handles(), [0x28], "left goes to the parent, and folds a service")
    }

    // MARK: The form

    func testAValueIsWrittenAfterItsTypeWasChosen() {
        var state = tree()
        select(0x2E, in: &state)
        XCTAssertNil(state.press(.character("w")))
        XCTAssertEqual(state.form?.form, .hex, "no profile decodes it")
        _ = state.press(.backTab)
        XCTAssertNotEqual(state.form?.form, .hex)
        _ = state.press(.tab)
        write("q1", in: &state)
        _ = press(.left, .backspace, in: &state)
        XCTAssertEqual(state.press(.enter), .write(strap, 0x2E, "1", .hex))
        XCTAssertNil(state.press(.enter), "it is being written")
        XCTAssertNil(state.press(.escape))
        XCTAssertNil(state.form?.handle)
    }

    // MARK: Questions

    func testAQuestionComesBeforeEveryOtherKey() {
        let passkey = Passkey(digits: "123456")
        let rows: [(ExplorerState.Question.Kind, [Key], ExplorerState.Reply?)] = [
            (.agree, [.character("y")], .yes), (.agree, [.character("n")], .no), (.agree, [.escape], .no),
            (.agree, [.character("q")], nil), (.agree, [.enter], nil), (.display, [.enter], .yes),
            (.display, [.escape], .no),
            (.passkey, "123456".map { .character($0) } + [.enter], passkey.map { .passkey($0) }),
            (.passkey, [.enter], nil), (.passkey, [.character("x"), .enter], nil), (.passkey, [.escape], .no),
        ]
        for (kind, keys, answer) in rows {
            var state = table()
            let question = ExplorerState.Question(number: 1, kind: kind, text: "?")
            state.ask(question)
            let effects = keys.compactMap { state.press($0) }
            XCTAssertEqual(effects, answer.map { [.answer(question, $0)] } ?? [], "\(kind) \(keys)")
            XCTAssertEqual(state.questions.isEmpty, answer != nil)
            state.withdrawQuestion(1)
            XCTAssertTrue(state.questions.isEmpty)
        }
    }

    // MARK: Text that is typed

    func testALineIsEdited() {
        var editor = LineEditor("ac")
        for (key, text, cursor) in [
            (Key.left, "ac", 1), (.character("b"), "abc", 2), (.end, "abc", 3), (.right, "abc", 3), (.home, "abc", 0),
            (.backspace, "abc", 0), (.delete, "bc", 0), (.end, "bc", 2), (.character("é"), "bcé", 3),
            (.character("\u{0301}"), "bcé\u{0301}", 3), (.backspace, "bc", 2), (.clear, "", 0),
        ] {
            _ = editor.press(key)
            XCTAssertEqual(editor.text, text, "\(key)")
            XCTAssertEqual(editor.cursor, cursor, "\(key)")
        }
        editor = LineEditor("0123456789")
        XCTAssertEqual(editor.window(5).text, "6789")
        _ = editor.press(.home)
        XCTAssertEqual(editor.window(5).text, "01234")
        XCTAssertEqual(editor.window(5).cursor, 0)
    }

    // MARK: What is drawn

    func testNoFrameIsLargerThanTheTerminal() {
        var states = [table(), tree(), ExplorerState()]
        var state = tree()
        select(0x2E, in: &state)
        _ = state.press(.character("w"))
        states.append(state)
        state = table()
        state.ask(
            .init(number: 1, kind: .passkey, text: "Enter the passkey that Front Door (C0:5A:17:00:10:CC) shows."))
        states.append(state)
        state = table()
        _ = state.press(.character("?"))
        states.append(state)
        state = table()
        _ = state.press(.character("/"))
        states.append(state)
        for size in [(1, 1), (5, 3), (20, 5), (40, 10), (80, 24), (120, 30), (200, 60)] {
            for (number, var state) in states.enumerated() {
                state.size = size
                let page = Page(isColoured: true, glyphs: .unicode)
                let frame = ExplorerView(page, state.layout).frame(&state, at: 3)
                let note = "\(size) \(number)"
                XCTAssertLessThanOrEqual(frame.lines.count, size.1, note)
                for line in frame.lines { XCTAssertLessThanOrEqual(line.width, size.0, "\(note) \(line.text)") }
                if let cursor = frame.cursor {
                    XCTAssertLessThan(cursor.column, max(size.0, 1), note)
                    XCTAssertLessThan(cursor.row, frame.lines.count, note)
                }
            }
        }
    }

    func testTheSelectedRowIsVisibleInEveryHeight() {
        var state = ExplorerState()
        for number in 1...200 {
            let identifier = UUID()
            var sighting = Samples.sighting(UInt8(number % 16), name: "P\(number)", rssi: -50)
            sighting.identifier = identifier
            _ = state.board.see(sighting, at: 0)
        }
        for height in [3, 10, 24, 60, 10] {
            state.size = (80, height)
            for key in [Key.end, .pageUp, .up, .home, .pageDown, .down] {
                _ = state.press(key)
                XCTAssertTrue(
                    state.visibleRows().rows.contains { $0.sighting.identifier == state.selected }, "\(height) \(key)")
            }
        }
    }

    func testTheStrengthsOfTheLastMinutesAreDrawn() {
        var history = StrengthHistory()
        XCTAssertEqual(history.newest(5, at: 0), [])
        for (time, rssi) in [(0.0, -90), (1, -80), (5, -50), (16, -60)] { history.add(rssi, at: time) }
        XCTAssertEqual(history.newest(9, at: 16), [-80, -50, nil, -60])
        XCTAssertEqual(history.newest(3, at: 26), [-60, nil, nil])
        history.add(-40, at: 10_000)
        XCTAssertEqual(history.newest(2, at: 10_000), [nil, -40])
        XCTAssertEqual(history.newest(100, at: 10_000).count, 60)
    }
}
