import BlueZ
import Futures

/// How a manager hangs on to BlueZ: its place among the observers, its adapter, its part in the shared discovery.
struct Link {
    /// What the client discovers for a scan of this manager.
    struct Discovery {
        let adapter: ObjectKey
        let id: ScanID
    }

    var observation: Observation?
    var choice: AdapterChoice
    /// The adapter in use, while there is one.
    var adapter: ObjectKey?
    /// The scans that shall be discovered for: that of `startScanning`, that for beacons, or both.
    var wishes: [ScanNumber: ScanRequest] = [:]
    var discoveries: [ScanNumber: Discovery] = [:]
    /// How many discoveries are being ended, and who waits until none is.
    var stopping = 0
    var waiting: [Promise<Void>] = []

    init(choice: AdapterChoice) { self.choice = choice }
}
