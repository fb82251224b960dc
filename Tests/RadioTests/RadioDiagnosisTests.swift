import BlueCapKit
import TestSupport
import XCTest

/// The diagnosis beside real `bluetoothd`.
final class RadioDiagnosisTests: XCTestCase {
    override func tearDownWithError() throws { try RadioLab.reset() }

    private func subjects(_ diagnosis: BlueCapDiagnosis, _ severity: BlueCapDiagnosis.Severity) -> [String] {
        diagnosis.findings.filter { $0.severity == severity }.map(\.subject)
    }

    func testAHealthyMachineHasNoProblem() async throws {
        let stage = try RadioStage()
        let diagnosis = await BlueCapDiagnosis.report(timeout: .seconds(60))
        XCTAssertEqual(subjects(diagnosis, .problem), [], "\(diagnosis)")
        XCTAssertEqual(
            diagnosis.capabilities.version?.description, ProcessInfo.processInfo.environment["RADIO_BLUEZ"],
            "\(diagnosis)")
        let healthy = subjects(diagnosis, .ok)
        XCTAssertTrue(
            ["bus", "bluetoothd", "adapter hci0", "adapter hci1", "kernel"].allSatisfy(healthy.contains), "\(diagnosis)"
        )
        XCTAssertTrue(diagnosis.findings.contains { $0.subject == "kernel" && $0.found.contains("hci0, hci1") })
        XCTAssertFalse(try stage.isDiscovering())
    }

    func testADaemonThatDoesNotRunIsTheProblem() async throws {
        _ = try RadioStage()
        try RadioLab.order(.server, "bluetoothd", "stop")
        let diagnosis = await BlueCapDiagnosis.report(timeout: .seconds(60))
        XCTAssertEqual(subjects(diagnosis, .problem), ["bluetoothd"], "\(diagnosis)")
    }
}
