public import BlueCapKit
public import BlueZSimulator
public import Foundation

/// The simulator as a stage: on the loopback bus, where time is virtual, or on a private bus in real time.
public final class SimulatedStage: ScanStage {
    public let simulator: Simulator
    private let isVirtual: Bool
    private let centralAdapter: String
    private var advertisers: [VirtualPeripheral] = []
    var served: StagePeripheral?
    /// How the peripheral pairs.
    var security = VirtualSecurity()
    var hasPrivateAddress = false
    let refusals = StageRefusals()

    private init(_ simulator: Simulator, isVirtual: Bool, centralAdapter: String = "hci0") {
        self.simulator = simulator
        self.isVirtual = isVirtual
        self.centralAdapter = centralAdapter
    }

    /// The same stage for a second central.
    public func withCentral(on adapter: String) -> SimulatedStage {
        SimulatedStage(simulator, isVirtual: isVirtual, centralAdapter: adapter)
    }

    /// Ring 2: in this process, in virtual time.
    /// - Parameter adapters: Managers of the central role take the first of several.
    public static func inProcess(
        room: Room = .empty, adapters: Int = 1, bluez: BlueZVersion = .default
    ) -> SimulatedStage {
        SimulatedStage(.inProcess(room: room, adapters: Self.adapters(adapters), bluez: bluez), isVirtual: true)
    }

    /// Ring 3: through a real `dbus-daemon`.
    public static func onPrivateBus(
        room: Room = .empty, adapters: Int = 1, bluez: BlueZVersion = .default
    ) throws -> SimulatedStage {
        SimulatedStage(
            try .onPrivateBus(room: room, adapters: Self.adapters(adapters), bluez: bluez), isVirtual: false)
    }

    private static func adapters(_ count: Int) -> [VirtualAdapter] { (0..<count).map { VirtualAdapter(index: $0) } }

    public var centralConfiguration: CentralManager.Configuration {
        CentralManager.Configuration(
            busAddress: simulator.address, adapter: simulator.adapters.count < 2 ? nil : centralAdapter)
    }
    public var measuresRSSI: Bool { true }

    public func advertise(_ device: StageDevice) {
        let peripheral = VirtualPeripheral(
            "C0:FF:EE:00:00:01", addressType: .random, rssi: .constant(device.rssi),
            advertisement: Advertisement(
                localName: device.name, serviceUUIDs: device.services,
                manufacturerData: [device.company: device.data]),
            interval: 0.1)
        simulator.add(peripheral)
        advertisers.append(peripheral)
    }

    public func endAdvertising() {
        for peripheral in advertisers { simulator.remove(peripheral.address) }
        advertisers = []
    }

    public func setPower(_ isOn: Bool) {
        if isOn { simulator.simulatePowerOn() } else { simulator.simulatePowerOff() }
    }

    public func restartDaemon() {
        simulator.simulateDaemonDeath()
        simulator.simulateDaemonReturn()
    }

    public func isDiscovering() -> Bool { simulator.adapters.contains(where: \.isDiscovering) }

    public func wait(_ journal: Journal, limit: TimeInterval, until isReached: (Journal.Entries) -> Bool) -> Bool {
        isVirtual
            ? simulator.advance(until: { journal.read(isReached) }, limit: limit)
            : journal.wait(limit: limit, until: isReached)
    }
}
