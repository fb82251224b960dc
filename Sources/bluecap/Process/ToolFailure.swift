import ArgumentParser

/// Why the tool cannot do what it was asked: one line for standard error, and the status to leave with.
struct ToolFailure: Error, Equatable, CustomStringConvertible {
    /// What is wrong and what helps, in whole sentences.
    let description: String

    /// 1, unless it is told otherwise.
    var status: Int32 = 1

    /// Some sentences, made one line: they may quote what others said.
    init(_ sentences: String...) {
        description =
            sentences
            .flatMap { $0.split(whereSeparator: \.isNewline) }
            .map { DisplayText.safe(String($0)) }
            .joined(separator: " ")
    }

    /// What everybody can do who has no radio that works.
    static let wayOut = "Without a radio, try `bluecap scan --simulated`."

    /// The status of the commands that need a peripheral, where there is no adapter to reach one with.
    static let noAdapter: Int32 = 3

    /// Says it, and gives the status to leave with.
    func reported() -> ExitCode {
        Output.error.write("bluecap: \(description)\n")
        return ExitCode(status)
    }
}
