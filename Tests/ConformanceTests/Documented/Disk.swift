@testable import BlueCapKit

/// Waits until managers have read and written their restoration state. Files are read and written in real time; virtual time
/// limits would expire before. It has a file of its own because it alone uses more than the documented API.
func waitForTheDisk() {
    RestorationKeeper.waitForAll()
}
