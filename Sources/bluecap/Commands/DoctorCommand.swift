import ArgumentParser
import BlueCapKit
import Foundation

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Examine whether Bluetooth can be used here, and say what to do.",
        discussion: """
            It examines the process, the bus and its policy, bluetoothd and its version, the adapters, the kernel and its \
            switches for radios. It does not scan, and changes nothing. Run it as the user, and in the container, that the \
            program runs in.

            A finding is "ok", a "note" that explains a behaviour, a "warning", or a "problem" that prevents the use of \
            Bluetooth. With --json each is an object with "severity", "subject", "found" and "advice".

            Examples:
              bluecap doctor
              sudo -u gateway bluecap doctor --json

            Status: 0 if Bluetooth can be used; 3 if there is a problem; 64 for wrong arguments.
            """)

    @OptionGroup var json: JSONOption

    @OptionGroup var radio: RadioOptions

    @OptionGroup var common: CommonOptions

    func run() async throws {
        try await radio.run(common) { [self] radio in
            let console = radio.console
            await console.stage("Examining Bluetooth …")
            let diagnosis = await BlueCapDiagnosis.report(configuration: radio.centralConfiguration)
            try Task.checkCancellation()
            let page = Terminal.present.widePage
            for finding in diagnosis.findings {
                let lines = json.isOn ? [finding.json.text] : finding.lines(on: page).map(\.text)
                try await console.write(lines.joined(separator: "\n"))
            }
            await console.clear()
            if diagnosis.hasProblem { throw ExitCode(ToolFailure.noAdapter) }
        }
    }
}

extension BlueCapDiagnosis.Finding {
    /// The finding as it describes itself, with a colour.
    func lines(on page: Page) -> [StyledLine] {
        let tint = [.ok: Tint.green, .note: .cyan, .warning: .yellow][severity] ?? .red
        let indent = String(repeating: " ", count: 9)
        let lines = "\(self)".split(separator: "\n").map { DisplayText.safe(String($0)) }
        let word = severity.rawValue
        return page.wrapped(
            [(word, [.bold, tint]), (String(lines[0].dropFirst(word.count)), [])], below: (indent, []))
            + lines.dropFirst().flatMap { page.wrapped([($0, [])], below: (indent + "  ", [])) }
    }

    fileprivate var json: JSON {
        ["severity": JSON(severity.rawValue), "subject": JSON(subject), "found": JSON(found), "advice": JSON(advice)]
    }
}
