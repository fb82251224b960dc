import BlueCapKit
import Foundation

/// What the full-screen program shows, and what each key does, as a value.
struct ExplorerState: Sendable {
    /// What a key asks for beyond the screen. Peripherals are given by their identifiers, attributes by their handles.
    enum Effect: Equatable, Sendable {
        case connect(UUID)
        case disconnect(UUID)
        case read(UUID, [UInt32])
        case notify(UUID, UInt32, Bool)
        case write(UUID, UInt32, String, ValueForm)
        case pair(UUID)
        case answer(Question, Reply)
        case copy(String)
        case redraw
        case quit
    }

    /// A question of a pairing, or a passkey to display.
    struct Question: Equatable, Sendable {
        enum Kind: Equatable, Sendable { case agree, passkey, display }

        var number: Int
        var kind: Kind
        var text: String
    }

    enum Reply: Equatable, Sendable {
        case yes, no
        case passkey(Passkey)
    }

    /// A peripheral to which the user has connected.
    struct Device: Sendable {
        enum Link: Equatable, Sendable { case connecting, connected, lost, ended }

        var link = Link.connecting
        /// What it does now: "Reading …".
        var activity: String?
        /// `nil` until it is discovered.
        var tree: AttributeTree?
        /// The characteristics whose values are sent.
        var live: Set<UInt32> = []
        /// The services whose characteristics are not shown.
        var folded: Set<UInt32> = []
        var selected: UInt32?
        fileprivate(set) var top = 0

        mutating func setLive(_ handle: UInt32, _ isLive: Bool) {
            if isLive { live.insert(handle) } else { live.remove(handle) }
        }
    }

    /// A form with a value to write.
    struct Form: Sendable {
        var peripheral: UUID
        var handle: UInt32
        var label: String
        var forms: [ValueForm]
        var form: ValueForm
        var editor: LineEditor
        /// Whether the value is being written.
        var isSent = false
    }

    enum Place: Equatable, Sendable {
        case table
        case tree(UUID)
    }

    struct Message: Equatable, Sendable {
        var text: String
        var isError = false
    }

    var board = ScanBoard()
    var devices: [UUID: Device] = [:]
    private(set) var place = Place.table
    private(set) var selected: UUID?
    private var top = 0
    /// The filter while it is typed.
    private(set) var filterEditor: LineEditor?
    var form: Form?
    private(set) var questions: [Question] = []
    /// The passkey while it is typed.
    private(set) var passkeyEditor = LineEditor()
    private(set) var showsHelp = false
    var message: Message?
    /// In cells.
    var size = (width: 80, height: 24) { didSet { layout = ExplorerLayout(size) } }
    private(set) var layout = ExplorerLayout((80, 24))

    // MARK: What is shown

    /// The connected or connecting peripherals, in an order that does not change.
    private var linked: [UUID] {
        devices.filter { $0.value.link != .ended }.keys.sorted { $0.uuidString < $1.uuidString }
    }

    /// The rows of the table that fit, the selected one among them.
    mutating func visibleRows() -> (rows: ArraySlice<ScanBoard.Row>, count: Int) {
        let rows = board.rows
        let place = rows.firstIndex { $0.sighting.identifier == selected }
        if place == nil { selected = rows.first?.sighting.identifier }
        Self.scroll(&top, to: place ?? 0, of: rows.count, height: layout.listRows)
        return (rows[top..<min(rows.count, top + layout.listRows)], rows.count)
    }

    /// The entries of a tree that fit, the selected one among them.
    mutating func visibleEntries(of identifier: UUID, _ text: TreeText) -> [TreeText.Entry] {
        guard var device = devices[identifier], let tree = device.tree else { return [] }
        let entries = text.entries(tree, folded: device.folded, live: device.live)
        let place = entries.firstIndex { $0.handle == device.selected }
        if place == nil { device.selected = entries.first?.handle }
        Self.scroll(&device.top, to: place ?? 0, of: entries.count, height: layout.treeRows)
        devices[identifier] = device
        return Array(entries[device.top..<min(entries.count, device.top + layout.treeRows)])
    }

    private static func scroll(_ top: inout Int, to place: Int, of count: Int, height: Int) {
        top = max(min(top, place, count - height), place - height + 1, 0)
    }

    // MARK: What happens

    mutating func say(_ text: String, isError: Bool = false) { message = Message(text: text, isError: isError) }

    mutating func ask(_ question: Question) {
        questions.append(question)
        passkeyEditor = LineEditor()
    }

    mutating func withdrawQuestion(_ number: Int) {
        questions.removeAll { $0.number == number }
        passkeyEditor = LineEditor()
    }

    // MARK: Keys

    mutating func press(_ key: Key) -> Effect? {
        if key == .redraw { return .redraw }
        if let question = questions.first { return answer(question, key) }
        if form != nil { return edit(key) }
        message = nil
        if showsHelp {
            showsHelp = false
            return nil
        }
        if filterEditor != nil {
            editFilter(key)
            return nil
        }
        if key == .character("?") {
            showsHelp = true
            return nil
        }
        switch place {
        case .table: return pressInTable(key)
        case .tree(let identifier): return press(key, inTreeOf: identifier)
        }
    }

    private mutating func answer(_ question: Question, _ key: Key) -> Effect? {
        switch (question.kind, key) {
        case (_, .escape), (.agree, .character("n")), (.agree, .character("N")):
            withdrawQuestion(question.number)
            return .answer(question, .no)
        case (.agree, .character("y")), (.agree, .character("Y")), (.display, .enter):
            withdrawQuestion(question.number)
            return .answer(question, .yes)
        case (.passkey, .enter):
            guard let passkey = Passkey(digits: passkeyEditor.text) else {
                say("A passkey has one to six digits.", isError: true)
                return nil
            }
            withdrawQuestion(question.number)
            return .answer(question, .passkey(passkey))
        case (.passkey, _):
            _ = passkeyEditor.press(key)
            return nil
        case (.agree, _), (.display, _): return nil
        }
    }

    private mutating func editFilter(_ key: Key) {
        switch key {
        case .escape:
            board.filter = ""
            filterEditor = nil
        case .enter: filterEditor = nil
        case .up, .down, .pageUp, .pageDown: moveInTable(key)
        default:
            _ = filterEditor?.press(key)
            board.filter = filterEditor?.text ?? ""
        }
    }

    private mutating func edit(_ key: Key) -> Effect? {
        guard var edited = form else { return nil }
        if key == .escape {
            form = nil
            return nil
        }
        defer { form = edited }
        switch key {
        case .enter where !edited.isSent:
            edited.isSent = true
            message = nil
            return .write(edited.peripheral, edited.handle, edited.editor.text, edited.form)
        case .tab, .backTab:
            let place = edited.forms.firstIndex(of: edited.form) ?? 0
            let count = edited.forms.count
            edited.form = edited.forms[(place + (key == .tab ? 1 : count - 1)) % count]
        default: if edited.editor.press(key) { message = nil }
        }
        return nil
    }

    private mutating func pressInTable(_ key: Key) -> Effect? {
        switch key {
        case .character("/"): filterEditor = LineEditor(board.filter)
        case .character("s"):
            let orders = ScanBoard.Order.allCases
            let place = orders.firstIndex(of: board.order) ?? 0
            board.order = orders[(place + 1) % orders.count]
            say("Sorted by \(board.order.rawValue).")
        case .character("q"): return .quit
        case .escape:
            guard !board.filter.isEmpty else { return .quit }
            board.filter = ""
        case .tab, .backTab: showNextTree()
        case .enter, .right, .character("l"), .doubleClick:
            if case .doubleClick(let row) = key { select(row: row) }
            return openSelected()
        case .character("d"):
            if let selected { return disconnection(of: selected) }
        case .character("y"):
            guard let sighting = selected.flatMap({ board[$0]?.sighting }) else { return nil }
            return copy(sighting.address)
        case .click(let row): select(row: row)
        default: moveInTable(key)
        }
        return nil
    }

    private mutating func moveInTable(_ key: Key) {
        selected = Self.next(key, selected, in: board.rows.map(\.sighting.identifier), page: layout.listRows)
    }

    private mutating func select(row: Int) {
        let rows = board.rows
        let place = top + row - ExplorerLayout.listTop
        guard row >= ExplorerLayout.listTop, row < ExplorerLayout.listTop + layout.listRows, place < rows.count else {
            return
        }
        selected = rows[place].sighting.identifier
    }

    private mutating func openSelected() -> Effect? {
        guard let selected else { return nil }
        place = .tree(selected)
        if let device = devices[selected], device.link != .ended { return nil }
        devices[selected] = Device()
        return .connect(selected)
    }

    /// Shows the next peripheral with a link, and after the last one the table.
    private mutating func showNextTree() {
        let linked = linked
        guard case .tree(let shown) = place, let index = linked.firstIndex(of: shown) else {
            if let first = linked.first { place = .tree(first) }
            return
        }
        place = index + 1 < linked.count ? .tree(linked[index + 1]) : .table
    }

    private mutating func disconnection(of identifier: UUID) -> Effect? {
        guard let device = devices[identifier], device.link != .ended else {
            say("There is no link to this peripheral.", isError: true)
            return nil
        }
        return .disconnect(identifier)
    }

    private mutating func press(_ key: Key, inTreeOf identifier: UUID) -> Effect? {
        guard var device = devices[identifier] else {
            place = .table
            return nil
        }
        switch key {
        case .escape, .character("q"):
            place = .table
            return nil
        case .tab:
            showNextTree()
            return nil
        case .backTab:
            place = .table
            return nil
        case .character("d"): return disconnection(of: identifier)
        case .character("c") where device.link == .ended:
            devices[identifier] = Device()
            return .connect(identifier)
        case .character("p"): return .pair(identifier)
        default: break
        }
        guard let tree = device.tree else { return nil }
        let handles = tree.handles(folded: device.folded)
        if case .click(let row) = key { select(row, in: handles, &device) }
        if case .doubleClick(let row) = key { select(row, in: handles, &device) }
        var entry = device.selected.flatMap { tree.attribute($0) }
        if case .descriptor(let descriptor) = entry, key == .character("n") || key == .character("w") {
            entry = tree.parent(of: descriptor.handle).flatMap { tree.attribute($0) }
        }
        var effect: Effect?
        switch (key, entry) {
        case (.enter, .service(let service)), (.doubleClick, .service(let service)),
            (.character(" "), .service(let service)):
            device.folded.formSymmetricDifference([service.handle])
        case (.left, .service(let service)): device.folded.insert(service.handle)
        case (.right, .service(let service)): device.folded.remove(service.handle)
        case (.left, _): device.selected = device.selected.flatMap { tree.parent(of: $0) } ?? device.selected
        case (.character("R"), _): effect = .read(identifier, tree.readable)
        case (.character("r"), .service(let service)):
            effect = .read(identifier, service.characteristics.filter { $0.properties.contains(.read) }.map(\.handle))
        case (.character("r"), .descriptor(let descriptor)), (.enter, .descriptor(let descriptor)):
            effect = .read(identifier, [descriptor.handle])
        case (.character("r"), .characteristic(let entry)), (.enter, .characteristic(let entry)),
            (.doubleClick, .characteristic(let entry)):
            if entry.properties.contains(.read) {
                effect = .read(identifier, [entry.handle])
            } else {
                say("\(entry.label) cannot be read\(entry.canSend ? ": n receives its values" : "").", isError: true)
            }
        case (.character("n"), .characteristic(let entry)):
            if entry.canSend {
                effect = .notify(identifier, entry.handle, !device.live.contains(entry.handle))
            } else {
                say("\(entry.label) sends no values.", isError: true)
            }
        case (.character("w"), .characteristic(let entry)):
            if entry.properties.isDisjoint(with: [.write, .writeWithoutResponse]) {
                say("\(entry.label) cannot be written.", isError: true)
            } else {
                form = Form(identifier, entry)
            }
        case (.character("y"), .characteristic(let entry)): effect = copy(entry.reading, entry)
        case (.character("y"), .descriptor(let entry)): effect = copy(entry.reading, entry)
        case (.character("y"), .service(let entry)): effect = copy(entry.uuid.uuidString)
        case (.character("r"), _), (.character("n"), _), (.character("w"), _):
            say("Select a characteristic.", isError: true)
        default: device.selected = Self.next(key, device.selected, in: handles, page: layout.treeRows)
        }
        devices[identifier] = device
        return effect
    }

    private func select(_ row: Int, in handles: [UInt32], _ device: inout Device) {
        let place = device.top + row - ExplorerLayout.listTop
        guard row >= ExplorerLayout.listTop, row < ExplorerLayout.listTop + layout.treeRows, place < handles.count
        else {
            return
        }
        device.selected = handles[place]
    }

    private mutating func copy(_ text: String) -> Effect {
        say("Copied: \(DisplayText.safe(text))")
        return .copy(text)
    }

    private mutating func copy(_ reading: AttributeTree.Reading, _ attribute: some Named) -> Effect {
        guard case .value(let value) = reading else { return copy(attribute.uuid.uuidString) }
        // As it is printed, without the quotes of a text.
        return copy(value.fields.isEmpty && value.text.first == "\"" ? ValueForm.text.line(of: value) : value.text)
    }

    /// The entry of a list that a key selects.
    private static func next<Item: Equatable>(_ key: Key, _ selected: Item?, in items: [Item], page: Int) -> Item? {
        guard !items.isEmpty else { return selected }
        let place = items.firstIndex { $0 == selected } ?? 0
        let next: Int
        switch key {
        case .up, .character("k"): next = place - 1
        case .down, .character("j"): next = place + 1
        case .wheelUp: next = place - 3
        case .wheelDown: next = place + 3
        case .pageUp: next = place - max(1, page - 1)
        case .pageDown: next = place + max(1, page - 1)
        case .home, .character("g"): next = 0
        case .end, .character("G"): next = items.count - 1
        default: return selected
        }
        return items[min(max(next, 0), items.count - 1)]
    }
}

extension ExplorerState.Form {
    fileprivate init(_ peripheral: UUID, _ entry: AttributeTree.Characteristic) {
        (self.peripheral, handle, label) = (peripheral, entry.handle, entry.label)
        forms = ValueForm.allCases.filter { $0 != .auto && ($0 != .profile || entry.isDecoded) }
        form = entry.isDecoded ? .profile : .hex
        editor = LineEditor()
    }
}

/// How the lines of the terminal are divided.
struct ExplorerLayout: Equatable, Sendable {
    /// The row of the first entry, below the title.
    static let listTop = 1

    let width: Int
    let height: Int
    /// The lines of the pane below the table; 0 if there is no space for it.
    let paneRows: Int
    /// The lines of the pane below a tree.
    let detailRows: Int

    init(_ size: (width: Int, height: Int)) {
        (width, height) = (max(1, size.width), max(1, size.height))
        paneRows = height < 16 ? 0 : min(9, height / 3)
        detailRows = height < 16 ? 0 : 3
    }

    /// In addition to the entries there are the title, the pane, and the line of messages.
    var listRows: Int { max(1, height - 2 - paneRows) }
    var treeRows: Int { max(1, height - 2 - detailRows) }
}
