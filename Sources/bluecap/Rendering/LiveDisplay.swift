/// Draws a board, which is a value, into the lines of a frame.
protocol Drawing {
    associatedtype Board: Sendable

    init(page: Page)

    /// Returns the lines, none wider than the page.
    ///
    /// - Parameters:
    ///   - summary: The last line, of the last frame; `nil` while the command runs.
    ///   - notice: A line for people that is no part of the board.
    ///   - now: Seconds since the display began.
    func lines(_ board: Board, summary: String?, notice: String?, at now: Double) -> [StyledLine]
}

/// Prints a board in frames that are drawn in place, if the format is `table`; otherwise the lines of its events.
struct LiveDisplay<Frame: Drawing>: Sendable {
    let format: Format
    var board: Frame.Board
    /// Where the lines of events go.
    var lines = LineOutput()
    private let send: @Sendable (ScreenEvent, _ delay: Double) -> Void
    private let terminal = Terminal.present
    private var clock = Stopwatch()
    private var screen = LiveScreen()
    private var pace = RedrawPace()
    private var notice: String?

    /// - Parameter event: The event of the loop for which ``handle(_:)`` is to be called.
    init<Event>(
        _ board: Frame.Board, _ format: Format, in loop: EventLoop<Event>,
        _ event: @escaping @Sendable (ScreenEvent) -> Event
    ) {
        (self.board, self.format) = (board, format)
        send = { loop.send(event($0), after: $1) }
    }

    /// The seconds since ``begin()``.
    var seconds: Double { clock.seconds }

    mutating func begin() throws {
        clock = Stopwatch()
        guard format == .table else { return }
        LiveScreen.watchTerminal { [send] in send($0, 0) }
        try LiveScreen.open()
        try draw()
    }

    mutating func handle(_ event: ScreenEvent) throws {
        switch event {
        case .frameIsDue: guard pace.rang(at: seconds) else { return }
        case .resized: break
        case .resumed:
            // Other programs have written to the terminal: the frame is drawn below the present cursor.
            screen = LiveScreen()
            try LiveScreen.open()
        }
        try draw()
    }

    /// Prints the line of an event, or draws the board as it has changed it.
    mutating func show(_ line: (Format) -> String?) throws {
        if format == .table {
            changed()
        } else if let line = line(format) {
            try lines.write(line)
        }
    }

    /// Shows a line for people that is no part of the output.
    mutating func remark(_ text: String) {
        guard format == .table else { return Output.remark(text) }
        notice = DisplayText.safe(text)
        changed()
    }

    /// Draws the last frame, which stays as the result, with all its rows; or prints the last line.
    mutating func end(summary: String?, _ line: (Format) -> String?) throws {
        guard format == .table else { return try show(line) }
        try draw(summary: summary)
        try LiveScreen.close()
    }

    private mutating func changed() {
        if let delay = pace.changed(at: seconds) { send(.frameIsDue, delay) }
    }

    private mutating func draw(summary: String? = nil) throws {
        let now = seconds
        let size = Terminal.size()
        var page = terminal.page
        page.width = size.width
        // A frame before the last must not be taller than the terminal, and leaves a line for the cursor.
        page.height = summary == nil ? size.height - 1 : nil
        if let delay = pace.drew(at: now) { send(.frameIsDue, delay) }
        let lines = Frame(page: page).lines(board, summary: summary, notice: notice, at: now)
        try Output.standard.write(screen.frame(lines, width: page.width))
    }
}
