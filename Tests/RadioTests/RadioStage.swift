import BlueCapKit
import Foundation
import TestSupport

/// Ring 4: real `bluetoothd`. `hci1` advertises, the managers scan on `hci0`.
final class RadioStage: CentralStage, PeripheralStage {
    init() throws { try RadioLab.reset() }

    var managerOptions: [String: Any] { [CentralManagerOptionAdapterKey: "hci0"] }
    var peripheralOptions: [String: Any] { [PeripheralManagerOptionAdapterKey: "hci1"] }

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

    func killDaemon() throws { try RadioLab.run("radio-bluetoothd", "kill") }

    /// Another daemon that makes links of that MTU, until it is restarted.
    func restartDaemon(mtu: Int) throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("small.conf")
        try Data("[GATT]\nChannels = 1\nExchangeMTU = \(mtu)\n".utf8).write(to: file)
        try RadioLab.run("env", "RADIO_BLUETOOTHD_OPTIONS=--configfile=\(file.path)", "radio-bluetoothd", "restart")
    }

    func startDaemon() throws { try RadioLab.run("radio-bluetoothd", "start") }

    func isDiscovering() throws -> Bool { try RadioLab.property("Discovering") == "true" }

    // MARK: A peripheral

    func serve(_ peripheral: StagePeripheral) throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("peripheral.json")
        try peripheral.description().write(to: file)
        try RadioLab.run("radio-peripheral", "start", file.path)
    }

    func silence() throws { try RadioLab.run("radio-peripheral", "silence") }

    func drop() throws { try RadioLab.run("radio-peripheral", "drop") }

    func unregister(application: Int) throws {
        try RadioLab.run("radio-peripheral", "unregister", String(application))
    }

    func register(application: Int) throws { try RadioLab.run("radio-peripheral", "register", String(application)) }

    func value(of key: String) throws -> [UInt8] { bytes(try RadioLab.run("radio-peripheral", "value", key)) }

    func setValue(_ value: [UInt8], of key: String) throws {
        try RadioLab.run("radio-peripheral", "value", key, hex(value))
    }

    func refuse(_ operation: StageOperation, of key: String, code: UInt8) throws {
        let text = "0x" + hex([code])
        try RadioLab.run("radio-peripheral", "refuse", key, operation.rawValue, "org.bluez.Error.Failed", text)
    }

    func notify(_ key: String, _ values: [[UInt8]]) throws {
        try RadioLab.run("radio-peripheral", arguments: ["notify", key] + values.map(hex))
    }

    func count(_ key: String, to count: Int) throws {
        try RadioLab.run("radio-peripheral", "count", key, String(count), "20", "0")
    }

    // MARK: Time

    func wait(_ journal: Journal, limit: TimeInterval, until isReached: (Journal.Entries) -> Bool) -> Bool {
        // An emulated processor on a busy host has its own idea of a second.
        journal.wait(limit: 3 * limit, until: isReached)
    }
}
