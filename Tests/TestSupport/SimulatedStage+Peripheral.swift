import BlueCapKit
import BlueZSimulator

extension SimulatedStage: PeripheralStage {
    public var peripheralOptions: [String: Any] {
        [
            PeripheralManagerOptionBusAddressKey: simulator.address,
            PeripheralManagerOptionAdapterKey: simulator.adapters.count < 2 ? "hci0" : "hci1",
        ]
    }

    public func killDaemon() { simulator.simulateDaemonDeath() }
    public func startDaemon() { simulator.simulateDaemonReturn() }
}
