/// Prints events: in frames that are drawn in place (`format` is `table`), or as lines. Times are seconds since the command began.
protocol LiveDisplay {
    associatedtype Board

    var format: Format { get }
    var terminal: Terminal { get }
    var view: LiveView { get set }

    /// Returns the lines of a frame.
    /// - Parameters:
    ///   - height: The most lines; `nil` for all that there are.
    ///   - summary: The last line, of the last frame.
    func lines(_ board: Board, width: Int, height: Int?, summary: String?, at now: Double) -> [StyledLine]
}

extension LiveDisplay {
    mutating func begin(_ board: Board) throws {
        guard format == .table else { return }
        try Output.standard.write(LiveScreen.begin)
        try draw(board, at: 0)
    }

    /// Shows a line for people that is no part of the output.
    mutating func remark(_ text: String, at now: Double) {
        guard format == .table else { return Output.remark(text) }
        view.remark(text, at: now)
    }

    /// Draws if it is time, or (`isForced`) because the terminal's size has changed.
    mutating func redraw(_ board: Board, isForced: Bool, at now: Double) throws {
        guard isForced || view.isDue(at: now) else { return }
        try draw(board, at: now)
    }

    /// Draws below the present cursor: the process was stopped, and other programs have written to the terminal.
    mutating func resume(_ board: Board, at now: Double) throws {
        try view.resume()
        try draw(board, at: now)
    }

    /// Draws the last frame, which stays as the result, with all its rows.
    mutating func end(_ board: Board, summary: String?, at now: Double) throws {
        try draw(board, isLast: true, summary: summary, at: now)
        try Output.standard.write(LiveScreen.end)
    }

    /// A frame before the last must not be taller than the terminal, and leaves a line for the cursor.
    private mutating func draw(_ board: Board, isLast: Bool = false, summary: String? = nil, at now: Double) throws {
        let size = Terminal.size()
        let height = isLast ? nil : size.height - 1
        let lines = lines(board, width: size.width, height: height, summary: summary, at: now)
        try view.draw(lines, width: size.width, at: now)
    }
}
