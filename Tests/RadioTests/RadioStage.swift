import BlueCapKit
import Foundation
import TestSupport

/// Ring 4: real `bluetoothd`. `hci1` advertises, the managers scan on `hci0`.
final class RadioStage: CentralStage, PeripheralStage {
    private let adapter: String
    /// What `hci0` has sent and received about security, in the words of Tests/RadioLab/btmon.py.
    var securityEvents: [String] = []

    init() throws {
        adapter = "hci0"
        try RadioLab.reset()
    }

    /// The same stage for a second central.
    init(centralOn adapter: String) { self.adapter = adapter }

    var centralConfiguration: CentralManager.Configuration { CentralManager.Configuration(adapter: adapter) }
    var peripheralConfiguration: PeripheralManager.Configuration { PeripheralManager.Configuration(adapter: "hci1") }

    var mayEndFirstLink: Bool { true }

    /// btvirt reports every sighting with 127, which means "not available".
    var measuresRSSI: Bool { false }

    func advertise(_ device: StageDevice) throws {
        let data = device.data.map { String(format: "%02x", $0) }.joined()
        let services = device.services.flatMap { ["--service", $0] }
        try RadioLab.order(
            .server, ["advertise", "hci1", device.name, "--manufacturer", "\(device.company)=\(data)"] + services)
    }

    func endAdvertising() throws { try RadioLab.order(.server, "silence", "hci1") }

    func setPower(_ isOn: Bool) throws { try RadioLab.order(.server, "power", "hci0", isOn ? "on" : "off") }

    func restartDaemon() throws { try RadioLab.order(.server, "bluetoothd", "restart") }

    func killDaemon() throws { try RadioLab.order(.server, "bluetoothd", "kill") }

    /// Another daemon that makes links of that MTU, until it is restarted.
    func restartDaemon(mtu: Int) throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("small.conf")
        try Data("[GATT]\nChannels = 1\nExchangeMTU = \(mtu)\n".utf8).write(to: file)
        try RadioLab.order(.server, "bluetoothd", "restart", "--configfile=\(file.path)")
    }

    func startDaemon() throws { try RadioLab.order(.server, "bluetoothd", "start") }

    func isDiscovering() throws -> Bool { try RadioLab.property("Discovering") == "true" }

    // MARK: A peripheral

    func serve(_ peripheral: StagePeripheral) throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("peripheral.json")
        try peripheral.description().write(to: file)
        try RadioLab.order(.server, "peripheral", file.path, "hci1")
    }

    func silence() throws { try RadioLab.order(.peripheral, "silence") }

    func drop() throws { try RadioLab.order(.peripheral, "drop") }

    func unregister(application: Int) throws {
        try RadioLab.order(.peripheral, "unregister", String(application))
    }

    func register(application: Int) throws { try RadioLab.order(.peripheral, "register", String(application)) }

    func value(of key: String) throws -> [UInt8] { bytes(try RadioLab.order(.peripheral, "value", key)) }

    func setValue(_ value: [UInt8], of key: String) throws {
        try RadioLab.order(.peripheral, "value", key, hex(value))
    }

    func refuse(_ operation: StageOperation, of key: String, code: UInt8) throws {
        let text = "0x" + hex([code])
        try RadioLab.order(.peripheral, "refuse", key, operation.rawValue, "org.bluez.Error.Failed", text)
    }

    func notify(_ key: String, _ values: [[UInt8]]) throws {
        try RadioLab.order(.peripheral, ["notify", key] + values.map(hex))
    }

    func count(_ key: String, to count: Int) throws {
        try RadioLab.order(.peripheral, "count", key, String(count), "20", "0")
    }

    // MARK: Time

    func wait(_ journal: Journal, limit: TimeInterval, until isReached: (Journal.Entries) -> Bool) -> Bool {
        // An emulated processor on a busy host has its own idea of a second.
        journal.wait(limit: 3 * limit, until: isReached)
    }
}
