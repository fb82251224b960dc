public import BlueCapKit
import BlueZSimulator

extension SimulatedStage: PeripheralStage {
    public var peripheralConfiguration: PeripheralManager.Configuration {
        PeripheralManager.Configuration(
            busAddress: simulator.address, adapter: simulator.adapters.count < 2 ? "hci0" : "hci1")
    }

    public func killDaemon() { simulator.simulateDaemonDeath() }
    public func startDaemon() { simulator.simulateDaemonReturn() }
}
