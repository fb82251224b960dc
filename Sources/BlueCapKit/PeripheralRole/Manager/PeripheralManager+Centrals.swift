public import Futures

/// Who is there. Core Bluetooth tells it only of those who subscribe.
extension PeripheralManager {
    /// Who is connected to the adapter, in the order in which they came.
    ///
    /// BlueZ tells who is connected, and not who began it: what this machine has connected to by itself is among them.
    public var centrals: [Central] { session.centrals }

    /// The same, each time that it changes: when one comes or goes, and when `bluetoothd` or the adapter goes.
    ///
    /// Every call answers the same stream, which keeps the newest list alone. It never fails, and it ends with the manager.
    public func whenCentralsChange() -> FutureStream<[Central]> { session.centralStream }
}
