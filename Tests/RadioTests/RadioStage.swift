import BlueCapKit
import Foundation
import TestSupport

/// Ring 4: real `bluetoothd`. `hci1` advertises, the managers scan on `hci0`.
final class RadioStage: ScanStage {
    init() throws { try RadioLab.reset() }

    var managerOptions: [String: Any] { [CentralManagerOptionAdapterKey: "hci0"] }

    /// btvirt reports every sighting with 127, which means "not available".
    var measuresRSSI: Bool { false }

    func advertise(_ device: StageDevice) throws {
        let data = device.data.map { String(format: "%02x", $0) }.joined()
        let services = device.services.flatMap { ["--service", $0] }
        try RadioLab.run(
            "radio-advertise", arguments: [device.name, "--manufacturer", "\(device.company)=\(data)"] + services)
    }

    func endAdvertising() throws { try RadioLab.run("radio-silence") }

    func setPower(_ isOn: Bool) throws { try RadioLab.run("radio-power", isOn ? "on" : "off") }

    func restartDaemon() throws { try RadioLab.run("radio-bluetoothd", "restart") }

    func isDiscovering() throws -> Bool { try RadioLab.property("Discovering") == "true" }

    func wait(_ journal: Journal, limit: TimeInterval, until isReached: (Journal.Entries) -> Bool) -> Bool {
        // An emulated processor on a busy host has its own idea of a second.
        journal.wait(limit: 3 * limit, until: isReached)
    }
}
