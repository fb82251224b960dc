/// Standard output and standard error of a command that serves, with a line on a terminal that says how things are.
struct ServingOutput: Sendable {
    let progress: Progress

    /// What a terminal shows until the next line.
    func status(_ text: String) async { await progress.stage(text) }

    /// For people, on standard error.
    func remark(_ text: String) async {
        await progress.end()
        Output.error.write("bluecap: \(DisplayText.safe(text))\n")
    }

    /// - Throws: `CancellationError` where the reader has left, ``ToolFailure`` where it cannot be written.
    func write(_ line: String) async throws {
        await progress.end()
        switch Output.standard.write(line + "\n") {
        case .written: break
        case .readerLeft: throw CancellationError()
        case .failed(let code): throw Output.Outcome.failed(code).failure ?? ToolFailure("Cannot write the output.")
        }
    }
}
