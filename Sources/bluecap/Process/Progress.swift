import Foundation

/// Says on standard error's terminal what is being waited for, when that takes long, and takes it back in the end.
///
/// Elsewhere it says nothing: logs are not read while they are written.
actor Progress {
    /// Seconds that anything may take without an explanation.
    private static let patience = 0.6

    private let output: Output
    private let isEnabled: Bool
    /// Counts what was waited for, so that the explanation of something that is over never appears.
    private var number = 0
    private var isShown = false

    init(on output: Output, isEnabled: Bool) {
        self.output = output
        self.isEnabled = isEnabled
    }

    /// From now on this is being waited for.
    func stage(_ text: String) {
        guard isEnabled else { return }
        number += 1
        guard !isShown else { return draw(text) }
        let number = number
        Task {
            try? await Task.sleep(for: .seconds(Self.patience))
            if number == self.number { draw(text) }
        }
    }

    /// Nothing is being waited for: the line is the output's again.
    func end() {
        number += 1
        guard isShown else { return }
        isShown = false
        output.write("\r\u{1B}[K")
    }

    private func draw(_ text: String) {
        isShown = true
        output.write("\r\u{1B}[K\(DisplayText.cut(DisplayText.safe(text), to: Terminal.errorWidth - 1))")
    }
}
