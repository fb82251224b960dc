import BlueZSimulator
import TestSupport
import XCTest

@testable import BlueCapKit

/// The facts, from files and from the simulator.
final class DiagnosisTests: XCTestCase {
    // MARK: Files

    private func machine(
        _ files: [String: String], environment: [String: String] = [:]
    ) throws -> DiagnosisFacts.Machine {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("diagnosis-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: root) }
        for (name, text) in files {
            let file = root.appendingPathComponent(name)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }
        return DiagnosisFacts.Machine(root: root.path + "/", environment: environment)
    }

    func testTheFilesOfTheSystemAreRead() throws {
        let machine = try machine([
            "proc/sys/kernel/osrelease": "6.1.0-50-arm64\n", "proc/device-tree/model": "Raspberry Pi 4 Model B\0",
            "run/dbus/system_bus_socket": "", "sys/class/bluetooth/hci0/address": "",
            "sys/class/bluetooth/hci0:64/address": "", "sys/class/bluetooth/rfkill": "",
            "sys/class/rfkill/rfkill0/type": "bluetooth\n", "sys/class/rfkill/rfkill0/name": "hci0\n",
            "sys/class/rfkill/rfkill0/soft": "1\n", "sys/class/rfkill/rfkill0/hard": "0\n",
            "sys/class/rfkill/rfkill1/type": "wlan\n",
        ])
        XCTAssertEqual(machine.kernel, "6.1.0-50-arm64")
        XCTAssertEqual(machine.model, "Raspberry Pi 4 Model B")
        XCTAssertEqual(machine.controllers, ["hci0"])
        XCTAssertEqual(
            machine.switches,
            [DiagnosisFacts.Switch(name: "hci0", isBlockedBySoftware: true, isBlockedByHardware: false)])
        XCTAssertEqual(machine.socket?.path, "/run/dbus/system_bus_socket")
        XCTAssertEqual(machine.socket?.exists, true)
        XCTAssertNil(machine.container)
    }

    func testAnEmptySystemIsNoError() throws {
        let machine = try machine(["empty": ""])
        XCTAssertEqual(machine.socket?.exists, false)
        XCTAssertNil(machine.kernel)
        XCTAssertEqual(machine.controllers, [])
        XCTAssertEqual(machine.switches, [])
    }

    func testContainersAreRecognized() throws {
        XCTAssertEqual(try machine([".dockerenv": ""]).container, "docker")
        XCTAssertEqual(try machine(["run/.containerenv": ""]).container, "podman")
        XCTAssertEqual(try machine([:], environment: ["container": "lxc"]).container, "lxc")
    }

    func testTheAddressOfTheBusIsThatOfTheEnvironment() throws {
        let address = "unix:path=/tmp/bus,guid=1"
        let machine = try machine(["tmp/bus": ""], environment: ["DBUS_SYSTEM_BUS_ADDRESS": address])
        XCTAssertEqual(machine.busAddress, address)
        XCTAssertEqual(machine.socket?.path, "/tmp/bus")
        XCTAssertEqual(machine.socket?.exists, true)
        XCTAssertNil(try self.machine([:], environment: ["DBUS_SYSTEM_BUS_ADDRESS": "tcp:host=a,port=1"]).socket)
    }

    // MARK: The simulator

    private func report(of simulator: Simulator, adapter: String? = nil) async -> BlueCapDiagnosis {
        let configuration = CentralManager.Configuration(busAddress: simulator.address, adapter: adapter)
        let task = Task(executorPreference: simulator.taskExecutor) {
            await BlueCapDiagnosis.report(configuration: configuration)
        }
        await simulator.advance(by: 6)
        return await task.value
    }

    func testAnInvalidConfigurationIsAFinding() async {
        let diagnosis = await BlueCapDiagnosis.report(configuration: .init(adapter: "hci 0"))
        XCTAssertEqual(diagnosis.findings.map(\.subject), ["configuration"])
        XCTAssertTrue(diagnosis.hasProblem)
    }

    private func subjects(_ diagnosis: BlueCapDiagnosis, _ severity: BlueCapDiagnosis.Severity) -> [String] {
        diagnosis.findings.filter { $0.severity == severity }.map(\.subject)
    }

    func testASimulatedBlueZHasNoProblemAndShowsOnlyItsBus() async {
        let simulator = Simulator.inProcess(room: .furnished, bluez: .v5_66)
        let diagnosis = await report(of: simulator)
        XCTAssertFalse(diagnosis.hasProblem, "\(diagnosis)")
        XCTAssertEqual(subjects(diagnosis, .ok), ["bus", "bluetoothd", "version", "adapter hci0"])
        XCTAssertEqual(diagnosis.capabilities.version, .init(5, 66))
        XCTAssertTrue(diagnosis.description.contains("BlueZ 5.66"))
    }

    func testAnAdapterThatIsOffIsTheProblem() async {
        let simulator = Simulator.inProcess(room: .empty)
        simulator.simulatePowerOff()
        let diagnosis = await report(of: simulator)
        XCTAssertEqual(subjects(diagnosis, .problem), ["adapter hci0"])
    }

    func testAnAdapterThatIsNotThereIsTheProblem() async {
        let diagnosis = await report(of: Simulator.inProcess(room: .empty), adapter: "hci9")
        XCTAssertEqual(subjects(diagnosis, .problem), ["adapter hci9"])
        XCTAssertNotNil(diagnosis.capabilities.version, "another adapter has the version")
    }

    func testADaemonThatHangsIsTheProblem() async {
        let simulator = Simulator.inProcess(room: .empty)
        simulator.simulateUnansweredCalls(.max, of: "GetManagedObjects")
        let diagnosis = await report(of: simulator)
        XCTAssertEqual(subjects(diagnosis, .problem), ["bluetoothd"], "\(diagnosis)")
    }

    func testADaemonThatDoesNotRunIsTheProblem() async {
        let simulator = Simulator.inProcess(room: .empty)
        simulator.simulateDaemonStop()
        let diagnosis = await report(of: simulator)
        XCTAssertEqual(subjects(diagnosis, .problem), ["bluetoothd"], "\(diagnosis)")
    }

    func testABusThatRefusesTheProcessIsTheProblem() async {
        let simulator = Simulator.inProcess(room: .empty)
        simulator.simulateAccessDenied(true)
        let diagnosis = await report(of: simulator)
        XCTAssertEqual(subjects(diagnosis, .problem), ["bus"], "\(diagnosis)")
    }

    func testAnotherProgramsScanIsNoted() async throws {
        let simulator = Simulator.inProcess(room: .empty)
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
        await simulator.advance(until: { manager.poweredOn }, limit: 5)
        let scan = manager.startScanning()
        await simulator.advance(by: 2)
        let diagnosis = await report(of: simulator)
        XCTAssertTrue(
            diagnosis.findings.contains { $0.severity == .note && $0.found.contains("scans") }, "\(diagnosis)")
        withExtendedLifetime(scan) { manager.stopScanning() }
    }
}
