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
            for finding in diagnosis.findings {
                try await console.write(json.isOn ? finding.json.text : DisplayText.lines("\(finding)"))
            }
            await console.clear()
            if diagnosis.hasProblem { throw ExitCode(ToolFailure.noAdapter) }
        }
    }
}

extension BlueCapDiagnosis.Finding {
    fileprivate var json: JSON {
        ["severity": JSON(severity.rawValue), "subject": JSON(subject), "found": JSON(found), "advice": JSON(advice)]
    }
}
