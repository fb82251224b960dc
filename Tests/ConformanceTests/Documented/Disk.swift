@testable import BlueCapKit

/// Waits until managers have read and written what they restore. The disk knows no virtual time, which would run out
/// meanwhile. (The only look behind the documented API, which is why it has a file of its own.)
func waitForTheDisk() {
    RestorationKeeper.waitForAll()
}
