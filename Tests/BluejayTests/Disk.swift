@testable import BlueCapKit

/// Waits until managers have read and written what they restore. The disk knows no virtual time.
func waitForTheDisk() { RestorationKeeper.waitForAll() }
