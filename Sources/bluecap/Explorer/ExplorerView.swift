import BlueCapKit
import Foundation

/// Draws the state of the full-screen program into the lines of the terminal.
struct ExplorerView {
    /// Its width and height are those of the state's layout.
    let page: Page

    typealias Picture = (lines: [StyledLine], cursor: (row: Int, column: Int)?)

    init(_ terminal: Page, _ layout: ExplorerLayout) {
        var page = terminal
        (page.width, page.height) = (layout.width, layout.height)
        self.page = page
    }

    func frame(_ state: inout ExplorerState, at now: Double) -> Picture {
        let layout = state.layout
        var body: [StyledLine] =
            if state.showsHelp {
                help()
            } else {
                switch state.place {
                case .table: table(&state, at: now)
                case .tree(let identifier): tree(of: identifier, &state, at: now)
                }
            }
        let footer = footer(state)
        let space = max(0, layout.height - footer.lines.count)
        body = Array(body.prefix(space)) + Array(repeating: StyledLine(), count: max(0, space - body.count))
        // Of a question that is higher than the terminal, the end is shown, where it is answered.
        let lines = (body + footer.lines).suffix(layout.height)
        let cursor = footer.cursor.map { (row: lines.count - footer.lines.count + $0.row, column: $0.column) }
        return (Array(lines), cursor.flatMap { $0.row >= 0 ? $0 : nil })
    }

    /// From this width on, lines of a tree have UUIDs and handles.
    private static let fullWidth = 120

    private func line(_ parts: [Page.Part]) -> StyledLine { page.line(page.fitted(parts)) }

    // MARK: The table

    private func table(_ state: inout ExplorerState, at now: Double) -> [StyledLine] {
        let (rows, count) = state.visibleRows()
        var table = ScanTable(page: page)
        table.selected = state.selected
        table.connected = Set(state.devices.filter { $0.value.link == .connected }.keys)
        var lines = table.table(rows, at: now)
        if count == 0 {
            let text = state.board.count == 0 ? "  Listening \(page.glyphs.ellipsis)" : "  No peripheral matches."
            lines.append(page.line(text, .dim))
        }
        guard state.layout.paneRows > 0 else { return lines }
        lines += Array(repeating: StyledLine(), count: max(0, state.layout.listRows + 1 - lines.count))
        return lines + (state.selected.flatMap { state.board[$0] }.map { pane($0, state.layout, at: now) } ?? [])
    }

    /// The decoded advertisement of a peripheral.
    private func pane(_ row: ScanBoard.Row, _ layout: ExplorerLayout, at now: Double) -> [StyledLine] {
        let sighting = row.sighting
        var facts: [(String, String)] = [("Signal", signal(row, at: now))]
        facts += sighting.beacons.map { ("Beacon", $0.line) }
        facts += sighting.readings.map { ("Sensor", "\($0.line)  (\($0.format))") }
        if !sighting.services.isEmpty {
            let services = sighting.services.map { uuid in
                Formats.serviceName(uuid).map { "\($0) (\(uuid.uuidString))" } ?? uuid.uuidString
            }
            facts.append(("Services", services.joined(separator: ", ")))
        }
        for (company, data) in sighting.manufacturerData.sorted(by: { $0.key < $1.key }) {
            facts.append((Wording.company(company), data.isEmpty ? "no data" : data.hexStringValue()))
        }
        for (service, data) in sighting.serviceData.sorted(by: { $0.key.uuidString < $1.key.uuidString }) {
            facts.append(("Data of \(Wording.service(service))", data.hexStringValue()))
        }
        let title: [Page.Part] = [
            (sighting.nameText, [.bold]), ("  \(sighting.address)  \(sighting.addressType)", []),
        ]
        let lines = facts.map { name, text in
            line([(DisplayText.padded(name, to: 8) + "  ", [.dim]), (DisplayText.safe(text), [])])
        }
        return [rule(), line(title)] + lines.prefix(max(0, layout.paneRows - 2))
    }

    private func rule() -> StyledLine {
        page.line(String(repeating: page.glyphs.horizontal, count: page.width), .dim)
    }

    /// "-56 dBm  ▂▃▅▅▂", the strengths of the last minutes.
    private func signal(_ row: ScanBoard.Row, at now: Double) -> String {
        let steps = page.glyphs.spark
        let space = max(0, min(60, page.width - 24))
        let plot = row.history.newest(space, at: now).map { strength -> String in
            guard let strength else { return " " }
            return steps[min(Int(SignalBar.share(strength) * Double(steps.count)), steps.count - 1)]
        }.joined()
        let power = row.sighting.txPower.map { "  sent with \($0) dBm" } ?? ""
        return (row.sighting.rssi.map { "\($0) dBm" } ?? "not known") + power + "  " + plot
    }

    // MARK: A tree

    private func tree(of identifier: UUID, _ state: inout ExplorerState, at now: Double) -> [StyledLine] {
        let text = TreeText(page: page, isBrief: page.width < Self.fullWidth)
        let entries = state.visibleEntries(of: identifier, text)
        guard let device = state.devices[identifier] else { return [] }
        let row = state.board[identifier]
        let name = (device.tree?.name ?? row?.sighting.name).map(DisplayText.name) ?? "(no name)"
        var facts = [device.tree?.address ?? row?.sighting.address ?? "", Self.text(of: device.link)]
        if let tree = device.tree {
            if let mtu = tree.mtu { facts.append("MTU \(mtu)") }
            if tree.isBonded || tree.isPaired { facts.append(tree.isBonded ? "bonded" : "paired") }
        }
        if let activity = device.activity { facts.append(activity) }
        let tint: Tint = device.link == .connected ? .green : device.link == .connecting ? .yellow : .red
        var lines = [line([(name, [.bold]), ("  " + facts.joined(separator: "  "), [tint])])]
        lines += entries.map { entry in
            let parts = page.fitted(entry.parts)
            return entry.handle != nil && entry.handle == device.selected ? page.selected(parts) : page.line(parts)
        }
        guard state.layout.detailRows > 0, let tree = device.tree else { return lines }
        lines += Array(repeating: StyledLine(), count: max(0, state.layout.treeRows + 1 - lines.count))
        return lines + [rule()] + detail(device.selected.flatMap { tree.attribute($0) })
    }

    private static func text(of link: ExplorerState.Device.Link) -> String {
        switch link {
        case .connecting: "connecting"
        case .connected: "connected"
        case .lost: "link lost, reconnecting"
        case .ended: "disconnected: c connects"
        }
    }

    /// All that is known of an attribute, in the lines below the tree.
    private func detail(_ attribute: AttributeTree.Attribute?) -> [StyledLine] {
        let (identity, reading): (any TreeAttribute, AttributeTree.Reading)
        switch attribute {
        case .service(let entry): (identity, reading) = (entry, .none)
        case .characteristic(let entry): (identity, reading) = (entry, entry.reading)
        case .descriptor(let entry): (identity, reading) = (entry, entry.reading)
        case nil: return []
        }
        let handle = AttributeArgument.text(of: identity.handle)
        var first = DisplayText.safe("\(identity.label)  \(identity.uuid.uuidString)  \(handle)")
        guard case .value(let value) = reading else { return [page.line(first, .dim)] }
        first += "  \(Wording.count(value.data.count, "byte"))  \(value.data.hexStringValue())"
        return [page.line(value.text, .green), page.line(first, .dim)]
    }

    // MARK: The last lines

    /// What is typed, or a message, or the most important keys.
    private func footer(_ state: ExplorerState) -> (lines: [StyledLine], cursor: (row: Int, column: Int)?) {
        let message = state.message.map { page.line(DisplayText.safe($0.text), $0.isError ? .red : .yellow) }
        if let question = state.questions.first {
            let choices =
                switch question.kind {
                case .agree: "y: yes   n: no"
                case .passkey: "Enter: pair   Esc: reject"
                case .display: "Enter: close   Esc: reject the pairing"
                }
            let words = DisplayText.safe(question.text).split(separator: " ").map {
                page.cut(String($0), to: page.width)
            }
            var lines = page.wrapped([(words.joined(separator: " "), [.bold])], below: ("", []))
            var cursor: (row: Int, column: Int)?
            if question.kind == .passkey {
                let (line, column) = input("Passkey: ", state.passkeyEditor)
                cursor = (lines.count, column)
                lines.append(line)
            }
            return (lines + [message ?? page.line(choices, .dim)], cursor)
        }
        if let form = state.form {
            let title = "Write \(form.label) as \(form.form.rawValue)"
            let (line, column) = input("\(page.cut(DisplayText.safe(title), to: page.width / 2)): ", form.editor)
            let hint = form.isSent ? "Writing \(page.glyphs.ellipsis)" : "Enter: write   Tab: other type   Esc: cancel"
            return ([line, message ?? page.line(hint, .dim)], (0, column))
        }
        if let editor = state.filterEditor {
            let (line, column) = input("/", editor)
            return ([line], (0, column))
        }
        return ([message ?? page.line(hints(state), .dim)], nil)
    }

    private func input(_ prompt: String, _ editor: LineEditor) -> (line: StyledLine, column: Int) {
        let start = DisplayText.width(prompt)
        let (text, cursor) = editor.window(page.width - start - 1)
        return (line([(prompt, [.bold]), (text, [])]), min(start + cursor, page.width - 1))
    }

    private func hints(_ state: ExplorerState) -> String {
        var parts: [String]
        switch state.place {
        case .table:
            parts = state.board.filter.isEmpty ? [] : ["filter \"\(DisplayText.safe(state.board.filter))\""]
            parts += [Wording.count(state.board.count, "peripheral")]
            parts += ["Enter connect", "/ filter", "s sort", "? keys", "q quit"]
        case .tree: parts = ["r read", "n notify", "w write", "p pair", "d disconnect", "q back", "? keys"]
        }
        var text = parts.removeFirst()
        let space = page.width - 2
        for part in parts where DisplayText.width(text + page.glyphs.separator + part) <= space {
            text += page.glyphs.separator + part
        }
        return text
    }

    private static let keys: [(String, String)] = [
        ("up down j k", "move; g G first, last; Page up, Page down"),
        ("Enter", "connect and show; fold a service, or read a value"),
        ("q Esc", "back; from the table: quit"),
        ("Tab", "next connected peripheral, and back to the table"),
        ("/", "filter by name, address, service or maker"),
        ("s", "sort by strength, name, last heard"),
        ("r R", "read the selected value; all values"),
        ("n", "start or stop notifications"),
        ("w", "write a value; Tab chooses its type"),
        ("p", "pair"),
        ("c d", "connect again, disconnect"),
        ("y", "copy the address or the value"),
        ("Ctrl-L", "draw the screen again"),
    ]

    private func help() -> [StyledLine] {
        [page.line("Keys (any key goes back)", .bold)]
            + Self.keys.map { line([(DisplayText.padded($0.0, to: 12), [.cyan]), ($0.1, [])]) }
    }
}
