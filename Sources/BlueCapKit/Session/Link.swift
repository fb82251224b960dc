import BlueZ
import Futures

/// How a manager hangs on to BlueZ: its place among the observers, its adapter, its part in the shared discovery.
struct Link {
    /// A scan that shall be discovered for.
    struct Wish {
        let scan: ScanNumber
        let request: ScanRequest
    }

    /// What the client discovers for this manager.
    struct Discovery {
        let scan: ScanNumber
        let adapter: ObjectKey
        let id: ScanID
    }

    var observation: Observation?
    var choice: AdapterChoice
    /// The adapter in use, while there is one.
    var adapter: ObjectKey?
    var wish: Wish?
    var discovery: Discovery?
    /// How many discoveries are being ended, and who waits until none is.
    var stopping = 0
    var waiting: [Promise<Void>] = []

    init(choice: AdapterChoice) { self.choice = choice }
}
