import BlueCapKit
import BlueCapDBus
import BlueCapReactor
import TestBasics
import TestSupport
import XCTest

/// Uses python-dbusmock's BlueZ, which shares no code with our simulator.
final class ForeignMockTests: XCTestCase {
    private let journal = Journal()

    func testWeFindTheDevicesOfAForeignMock() throws {
        let bus = try PrivateBus()
        defer { bus.stop() }
        let mock = TestProgram.process()
        // Debian's own Python has Debian's python3-dbusmock.
        mock.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        mock.arguments = ["-m", "dbusmock", "--system", "--template", "bluez5"]
        mock.environment = ProcessInfo.processInfo.environment.merging(["DBUS_SYSTEM_BUS_ADDRESS": bus.address]) { $1 }
        try mock.run()
        defer {
            mock.terminate()
            mock.waitUntilExit()
        }
        try waitForBlueZ(on: bus)
        try call(bus, "AddAdapter", "string:hci0", "string:machine")
        try call(bus, "AddDevice", "string:hci0", "string:11:22:33:44:55:66", "string:Foreign Phone")

        let manager = try CentralManager(configuration: .init(busAddress: bus.address))
        journal.watchStates(of: manager)
        XCTAssertTrue(journal.wait(limit: 10) { $0.states.contains(.poweredOn) }, manager.stateExplanation)
        journal.watch(manager.startScanning())
        XCTAssertTrue(journal.wait(limit: 10) { !$0.sightings.isEmpty }, "\(journal.failures)")
        let phone = try XCTUnwrap(journal.sightings.first)
        XCTAssertEqual(phone.name, "Foreign Phone")
        XCTAssertEqual(phone.address, "11:22:33:44:55:66")

        try call(bus, "AddDevice", "string:hci0", "string:11:22:33:44:55:67", "string:Late Phone")
        XCTAssertTrue(journal.wait(limit: 10) { !$0.sightings(named: "Late Phone").isEmpty })
    }

    private func waitForBlueZ(on bus: PrivateBus) throws {
        let connection = Connection.open(.custom(bus.address))
        let watch = connection.watchName("org.bluez") { [journal] owner in
            if owner != nil { journal.write { $0.completions += 1 } }
        }
        defer {
            watch.cancel()
            connection.close()
        }
        guard journal.wait(limit: 20, until: { $0.completions > 0 }) else {
            throw Foreign.Missing(
                description: "python-dbusmock did not come up (Debian: apt-get install python3-dbusmock).")
        }
    }

    private func call(_ bus: PrivateBus, _ method: String, _ arguments: String...) throws {
        let program = try Foreign.program("dbus-send", package: "dbus")
        let outcome = try Foreign.run(
            program,
            ["--system", "--print-reply", "--dest=org.bluez", "/org/bluez", "org.bluez.Mock.\(method)"] + arguments,
            bus: bus.address)
        XCTAssertEqual(outcome.status, 0, outcome.output)
    }
}
